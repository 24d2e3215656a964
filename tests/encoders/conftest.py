from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolsearch_semantic.encoders.bundled import bundled_folder


@pytest.fixture
def model_copy(tmp_path: Path) -> Path:
    """A copy of the bundled model, to be damaged."""
    return Path(shutil.copytree(bundled_folder("toolsearch-static"), tmp_path / "model"))
