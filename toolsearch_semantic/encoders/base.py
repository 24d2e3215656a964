"""What an encoder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.errors import EncodingError
from toolsearch_semantic.scores import UNCALIBRATED, Scoring

__all__ = ["CalibratedEncoder", "Encoder", "checked_rows", "scoring_of"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors whose inner product is their likeness.

    Queries and documents are different kinds of input: many models want a prompt before one of them.
    """

    @property
    def fingerprint(self) -> str:
        """Identify the weights and the settings: equal only where vectors are, but for a device's rounding."""
        ...

    @property
    def dimension(self) -> int:
        """Length d of each vector."""
        ...

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode what is searched for: n texts to float32 of shape (n, d), unit rows."""
        ...

    def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Encode what is searched in: n texts to float32 of shape (n, d), unit rows."""
        ...


@runtime_checkable
class CalibratedEncoder(Encoder, Protocol):
    """An encoder that brings the scoring that was fitted to it."""

    @property
    def scoring(self) -> Scoring:
        """How its cosines become scores."""
        ...


def scoring_of(encoder: Encoder) -> Scoring:
    """Give the scoring that an encoder brings, or the uncalibrated one."""
    return encoder.scoring if isinstance(encoder, CalibratedEncoder) else UNCALIBRATED


def checked_rows(rows: object, *, count: int, dimension: int, encoder: str) -> NDArray[np.float32]:
    """Check what an encoder returned and normalise it; rows of zeros stay as they are.

    Raises:
        EncodingError: Not a finite array of shape (count, dimension).
    """
    array = np.asarray(rows)
    if array.shape != (count, dimension) or array.dtype.kind != "f":
        raise EncodingError(
            f"Encoder {encoder!r} returned {array.dtype} of shape {array.shape} for {count} texts; "
            f"expected float rows of shape ({count}, {dimension})."
        )
    array = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(array).all():
        raise EncodingError(f"Encoder {encoder!r} returned NaN or infinite values; its weights may be damaged.")
    lengths = np.linalg.norm(array.astype(np.float64), axis=1, keepdims=True)  # squares leave float32 early
    return (array / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
