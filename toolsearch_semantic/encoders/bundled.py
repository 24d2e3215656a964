"""The model that comes with the package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.encoders.folder import MANIFEST
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.errors import ModelNotFoundError
from toolsearch_semantic.scores import Scoring

__all__ = ["BundledEncoder", "bundled_folder"]

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


class BundledEncoder:
    """The encoder that the package carries: no torch, no network, ready in a few hundredths of a second.

    Args:
        model: ``"static"``, a distilled table of token vectors.

    Raises:
        ModelError: The model is missing or damaged.
    """

    def __init__(self, model: Literal["static"] = "static") -> None:
        self._runtime = StaticEncoder(bundled_folder(f"toolsearch-{model}"))

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
