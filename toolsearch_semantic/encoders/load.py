"""From what a caller gives as an encoder to the encoder."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.encoders.bundled import BundledEncoder, BundledModel
from toolsearch_semantic.encoders.folder import MANIFEST, kind_of
from toolsearch_semantic.encoders.onnx import OnnxEncoder
from toolsearch_semantic.encoders.sentence_transformer import SentenceTransformerEncoder
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.errors import InvalidOptionError

__all__ = ["load_encoder"]


def load_encoder(encoder: Encoder | str | Path | None) -> Encoder:
    """Give an encoder: the one given, that of a local model's folder, or a bundled one.

    Raises:
        InvalidOptionError: It is none of them.
        ModelError: The model cannot be loaded.
    """
    if encoder is None:
        return BundledEncoder()
    if isinstance(encoder, str) and encoder in get_args(BundledModel):
        return BundledEncoder(cast(BundledModel, encoder))
    if isinstance(encoder, str | Path):
        if not Path(encoder).is_dir():
            raise InvalidOptionError(
                f"No model at {str(encoder)!r}: looked for a folder at {str(Path(encoder).absolute())!r}. encoder "
                "takes an Encoder, the folder of a local model, or 'mini' or 'static', which come with the package."
            )
        if (Path(encoder) / MANIFEST).is_file():
            return StaticEncoder(encoder) if kind_of(Path(encoder)) == "static" else OnnxEncoder(encoder)
        return SentenceTransformerEncoder(encoder)
    if isinstance(encoder, Encoder) and not isinstance(encoder, type):
        return encoder
    raise InvalidOptionError(
        f"encoder must be an Encoder or the path of a local model, or 'mini' or 'static', not {encoder!r}. An Encoder "
        "has fingerprint, dimension, encode_queries and encode_documents."
    )
