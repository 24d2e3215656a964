"""The models that come with the package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.base import CalibratedEncoder
from toolsearch_semantic.encoders.folder import MANIFEST, kind_of
from toolsearch_semantic.encoders.onnx import OnnxEncoder
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.errors import InvalidOptionError, ModelNotFoundError
from toolsearch_semantic.scores import Scoring

__all__ = ["BundledEncoder", "BundledModel", "bundled_folder"]

BundledModel = Literal["mini", "static"]

_PACKAGE = Path(__file__).resolve().parents[1]


def bundled_folder(name: str) -> Path:
    """Find a bundled model: inside the installed package, or in ``models/`` of a checkout.

    Raises:
        ModelNotFoundError: It is in neither place.
    """
    places = (_PACKAGE / "models" / name, _PACKAGE.parent / "models" / name)
    for place in places:
        if (place / MANIFEST).is_file():
            return place
    raise ModelNotFoundError(
        f"The bundled model {name!r} is not installed; looked in {' and '.join(repr(str(p)) for p in places)}. "
        "Reinstall toolsearch-semantic."
    )


@lru_cache(maxsize=4)
def _loaded(folder: Path, threads: int | None) -> CalibratedEncoder:
    return StaticEncoder(folder) if kind_of(folder) == "static" else OnnxEncoder(folder, threads=threads)


class BundledEncoder:
    """The encoder that the package carries: no torch, no network. A process holds a model once for each ``threads``.

    Args:
        model: ``"mini"``, a small transformer trained to find tools, which runs on onnxruntime; or ``"static"``, a
            table of token vectors, which needs no runtime, encodes more than ten times as fast and finds less.
        threads: For ``"mini"``, texts that are encoded at once; by default one a processor, at most
            four.

    Raises:
        InvalidOptionError: There is no such model, or it takes no threads.
        ModelError: The model is missing or damaged; or ``"mini"`` is asked for and onnxruntime is not installed.
    """

    def __init__(self, model: BundledModel = "mini", *, threads: int | None = None) -> None:
        if model not in get_args(BundledModel):
            names = " or ".join(map(repr, get_args(BundledModel)))
            raise InvalidOptionError(f"The bundled models are {names}, not {model!r}.")
        if model == "static" and threads is not None:
            raise InvalidOptionError("threads is for the model 'mini'; 'static' runs in the caller's thread.")
        self._runtime = _loaded(bundled_folder(f"toolsearch-{model}"), threads)

    @property
    def fingerprint(self) -> str:
        """Identify the model by the checksums of its files."""
        return self._runtime.fingerprint

    @property
    def dimension(self) -> int:
        """Length d of each vector."""
        return self._runtime.dimension

    @property
    def scoring(self) -> Scoring:
        """The scoring that was fitted to this model."""
        return self._runtime.scoring

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode n texts to unit rows of shape (n, d)."""
        return self._runtime.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode n texts to unit rows of shape (n, d)."""
        return self._runtime.encode_documents(texts)
