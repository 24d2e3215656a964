from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from toolsearch_semantic import Tool
from toolsearch_semantic.encoders.bundled import BundledEncoder


@pytest.fixture(scope="session")
def demo() -> list[dict[str, Any]]:
    """The demo catalogue as records."""
    text = files("toolsearch_semantic.demo").joinpath("tools.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


class BreakableEncoder:
    """The bundled encoder, which counts what it encodes and can be made to fail."""

    def __init__(self) -> None:
        self._inner = BundledEncoder("static")
        self.documents: list[str] = []
        self.failing: Exception | None = None
        self.scoring = self._inner.scoring
        self.fingerprint = self._inner.fingerprint
        self.dimension = self._inner.dimension

    def encode_queries(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        if self.failing:
            raise self.failing
        return self._inner.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        if self.failing:
            raise self.failing
        self.documents.extend(texts)
        return self._inner.encode_documents(texts)


@pytest.fixture
def encoder() -> BreakableEncoder:
    return BreakableEncoder()


@pytest.fixture
def few() -> list[Tool]:
    """Five tools that have little in common."""
    return [
        Tool("get_weather", "Forecast of temperature and rain for a city"),
        Tool("refund_payment", "Give a customer their money back", namespace="billing"),
        Tool("createIssue", "Open a new bug report in the tracker"),
        Tool("files.delete", "Remove a file for good"),
        Tool("translate_text", "Put a text into another language"),
    ]


@pytest.fixture
def broken_model(tmp_path: Path) -> Path:
    """The folder of a model that cannot be loaded."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "toolsearch.json").write_text("{}")
    return folder
