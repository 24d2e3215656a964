"""From what a caller gives as an encoder to the encoder."""

from __future__ import annotations

from pathlib import Path

from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.encoders.bundled import BundledEncoder
from toolsearch_semantic.encoders.folder import MANIFEST, kind_of
from toolsearch_semantic.encoders.onnx import OnnxEncoder
from toolsearch_semantic.encoders.sentence_transformer import SentenceTransformerEncoder
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.errors import InvalidOptionError

__all__ = ["load_encoder"]


def load_encoder(encoder: Encoder | str | Path | None) -> Encoder:
    """Give an encoder: the one given, that of a local model's folder, or the bundled one.

    Raises:
        InvalidOptionError: It is neither.
        ModelError: The model cannot be loaded.
    """
    if encoder is None:
        return BundledEncoder()
    if isinstance(encoder, str | Path):
        if (Path(encoder) / MANIFEST).is_file():
            return StaticEncoder(encoder) if kind_of(Path(encoder)) == "static" else OnnxEncoder(encoder)
        return SentenceTransformerEncoder(encoder)
    if isinstance(encoder, Encoder) and not isinstance(encoder, type):
        return encoder
    raise InvalidOptionError(
        f"encoder must be an Encoder or the path of a local model, not {encoder!r}. An Encoder has fingerprint, "
        "dimension, encode_queries and encode_documents."
    )
