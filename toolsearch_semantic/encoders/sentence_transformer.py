"""Any local sentence-transformers model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.checksums import file_sha256
from toolsearch_semantic.encoders.base import checked_rows
from toolsearch_semantic.errors import (
    EncodingError,
    InvalidOptionError,
    MissingDependencyError,
    ModelError,
    ModelNotFoundError,
)
from toolsearch_semantic.scores import UNCALIBRATED, Scoring

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["SentenceTransformerEncoder"]

_SETTINGS = ("modules.json", "config_sentence_transformers.json")
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_HEADER_LENGTH = 8


class SentenceTransformerEncoder:
    """A model folder that ``SentenceTransformer`` loads, with the prompts that its configuration declares.

    The folder is checked before torch is imported, so a wrong path fails at once; nothing is ever downloaded, no
    code of the model is run, and pickled weights are refused. Reading a large model's checksum takes a moment.

    Args:
        path: Folder of a model saved by sentence-transformers, with safetensors weights.
        device: Where it runs, as torch names it (``"cpu"``, ``"cuda"``, ``"mps"``).
        batch_size: Texts that are encoded at once.
        query_prompt: Put before each query, in place of what the model declares.
        document_prompt: Put before each document, in place of what the model declares.
        scoring: How its cosines become scores; by default the cosine itself.

    Raises:
        ModelNotFoundError: There is no model at the path.
        ModelError: A file is missing or cut short, or the weights are pickled.
        MissingDependencyError: sentence-transformers is not installed.
        InvalidOptionError: The batch size is not a positive integer.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "cpu",
        batch_size: int = 32,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        scoring: Scoring = UNCALIBRATED,
    ) -> None:
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InvalidOptionError(f"batch_size must be an integer of at least 1, not {batch_size!r}.")
        folder = Path(path)
        _check_folder(folder)
        self._model = _load(folder, device)
        self._batch_size = batch_size
        self._query_prompt = query_prompt
        self._document_prompt = document_prompt
        self._scoring = scoring
        self._dimension = int(self._model.get_embedding_dimension() or 0) or self._probe()
        self._fingerprint = _fingerprint(folder, query_prompt, document_prompt)

    @property
    def fingerprint(self) -> str:
        """Identify the model by its files, and by the prompts that were given."""
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length d of each vector."""
        return self._dimension

    @property
    def scoring(self) -> Scoring:
        """How its cosines become scores."""
        return self._scoring

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode n texts with the query prompt to unit rows of shape (n, d)."""
        return self._encode(self._model.encode_query, texts, self._query_prompt)

    def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode n texts with the document prompt to unit rows of shape (n, d)."""
        return self._encode(self._model.encode_document, texts, self._document_prompt)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str], prompt: str | None) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self._dimension), np.float32)
        try:
            rows = encode(list(texts), prompt=prompt, batch_size=self._batch_size, show_progress_bar=False)
        except Exception as error:
            raise EncodingError(f"The sentence-transformers model failed on {len(texts)} texts: {error}") from error
        rows = np.asarray(rows, np.float32)
        return checked_rows(rows, count=len(texts), dimension=self._dimension, encoder=self._fingerprint)

    def _probe(self) -> int:
        return int(np.asarray(self._model.encode_document(["dimension"])).shape[1])


def _load(folder: Path, device: str) -> SentenceTransformer:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingDependencyError(
            "sentence-transformers", "sentence-transformers", "SentenceTransformerEncoder"
        ) from error
    import torch

    try:
        return SentenceTransformer(
            str(folder),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            # Half-precision checkpoints would else be computed in half precision, which is slow on a CPU.
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        )
    except Exception as error:
        raise ModelError(f"sentence-transformers cannot load the model in {str(folder)!r}: {error}") from error


def _check_folder(folder: Path) -> None:
    where = repr(str(folder))
    if not folder.is_dir():
        raise ModelNotFoundError(
            f"No model at {where}: looked for a folder at {str(folder.absolute())!r}. Give the path of a local "
            "sentence-transformers model; names of models on a hub are not looked up."
        )
    present = [name for name in _SETTINGS if (folder / name).is_file()]
    if not present:
        raise ModelNotFoundError(
            f"The folder {where} is not a sentence-transformers model: it has neither {' nor '.join(_SETTINGS)}. "
            "Save a model of transformers with SentenceTransformer(path).save(folder) first."
        )
    for name in _SETTINGS:
        # Without them the model would load, with another pooling or without its prompts, and give other vectors.
        if name not in present:
            raise ModelError(f"The model in {where} is incomplete: {name} is missing. Copy or save it again.")
    if not any(next(folder.rglob(pattern), None) for pattern in _TOKENIZERS):
        raise ModelError(f"The model in {where} has no tokenizer ({', '.join(_TOKENIZERS)}). Copy it again.")
    for module in _declared_modules(folder):
        if not (folder / module).is_dir():
            raise ModelError(f"The model in {where} is incomplete: modules.json names {module!r}, which is missing.")
    weights = sorted(folder.rglob("*.safetensors"))
    if not weights:
        pickled = any(next(folder.rglob(pattern), None) for pattern in _PICKLED)
        raise ModelError(
            f"The model in {where} has no safetensors weights"
            + (": only pickled ones, which can run code and are not loaded. Save it again as safetensors." if pickled
               else ". Copy the folder again.")
        )  # fmt: skip
    for file in weights:
        _check_safetensors(file)


def _declared_modules(folder: Path) -> Iterator[str]:
    path = folder / "modules.json"
    if not path.is_file():
        return
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        # Modules without settings of their own have no folder (Normalize), and the first one lies at the top.
        yield from (m["path"] for m in modules if m["path"] and not m["type"].endswith("Normalize"))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(f"{str(path)!r} is not a list of modules ({error}). Copy the folder again.") from error


def _check_safetensors(file: Path) -> None:
    """Compare a file's size with what its header promises, without reading the tensors."""
    size = file.stat().st_size
    try:
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(_HEADER_LENGTH), "little")
            if length > size:
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            header = json.loads(opened.read(length))
        promised = max(t["data_offsets"][1] for name, t in header.items() if name != "__metadata__")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{str(file)!r} is not a whole safetensors file: {error}. Copy it again.") from error
    if size != _HEADER_LENGTH + length + promised:
        raise ModelError(
            f"{str(file)!r} has {size} bytes, and its header promises {_HEADER_LENGTH + length + promised}. "
            "It was cut short or damaged: copy it again."
        )


def _fingerprint(folder: Path, query_prompt: str | None, document_prompt: str | None) -> str:
    files = sorted(p for p in folder.rglob("*") if p.suffix in {".json", ".safetensors", ".txt", ".model"})
    parts = [f"{file.relative_to(folder).as_posix()}={file_sha256(file)}" for file in files]
    identity = json.dumps([parts, query_prompt, document_prompt])
    return f"sentence-transformers-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"
