"""A model as a folder: what ``toolsearch.json`` says of it, and whether its files are whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from toolsearch_semantic.checksums import FileEntry, what_differs
from toolsearch_semantic.errors import ModelError, ModelNotFoundError
from toolsearch_semantic.scores import UNCALIBRATED, Scoring
from toolsearch_semantic.validation import read_json

__all__ = ["MANIFEST", "ModelManifest", "OnnxManifest", "StaticManifest", "fingerprint_of", "kind_of", "read_manifest"]

MANIFEST = "toolsearch.json"

_CURE = "Copy the folder again, or reinstall toolsearch-semantic."


@dataclass(frozen=True, slots=True)
class StaticManifest:
    """A table of token vectors. Paths are relative to the folder."""

    format_version: Literal[1]
    kind: Literal["static"]
    dimension: int
    weights: str
    tensor: str
    tokenizer: str
    files: Mapping[str, FileEntry]
    scoring: Scoring = UNCALIBRATED


@dataclass(frozen=True, slots=True)
class OnnxManifest:
    """A transformer as an ONNX graph, and how many tokens of a text it is given. Paths are relative to the folder.

    ``latin_only`` says that it makes nothing of texts that are mostly in another script.
    """

    format_version: Literal[1]
    kind: Literal["onnx"]
    dimension: int
    weights: str
    tokenizer: str
    max_tokens: int
    files: Mapping[str, FileEntry]
    latin_only: bool = False
    scoring: Scoring = UNCALIBRATED


ModelManifest = StaticManifest | OnnxManifest


Kind = Literal["static", "onnx"]


@dataclass(frozen=True, slots=True)
class _OfKind:
    kind: Kind


def kind_of(folder: Path) -> Kind:
    """Tell what kind of model a folder with a manifest holds, without checking its files.

    Raises:
        ModelError: The manifest cannot be read.
    """
    path = folder / MANIFEST
    try:
        return read_json(_OfKind, path.read_bytes()).kind
    except (ValueError, OSError) as error:
        raise ModelError(f"{str(path)!r} is not a model manifest: {error}. {_CURE}") from error


def read_manifest(folder: Path) -> ModelManifest:
    """Read a model folder's manifest and check every file that it names.

    Raises:
        ModelNotFoundError: The folder or its manifest is not there.
        ModelError: The manifest cannot be read, or a file is missing or not the one that it describes.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise ModelNotFoundError(f"No model in {str(folder)!r}: {MANIFEST} is not there. Give the folder of a model.")
    kind = kind_of(folder)
    try:
        data = path.read_bytes()
        manifest: ModelManifest = read_json(StaticManifest, data) if kind == "static" else read_json(OnnxManifest, data)
    except (ValueError, OSError) as error:
        raise ModelError(f"{str(path)!r} is not a model manifest of format 1: {error}. {_CURE}") from error
    for name, entry in manifest.files.items():
        file = folder / name
        if not file.is_file():
            raise ModelError(f"The model in {str(folder)!r} lacks its file {name!r}. {_CURE}")
        try:
            difference = what_differs(file, entry)
        except OSError as error:
            raise ModelError(f"{str(file)!r} cannot be read: {error}. {_CURE}") from error
        if difference:
            raise ModelError(f"{str(file)!r} is not the file that its manifest describes: {difference}. {_CURE}")
    unlisted = {manifest.weights, manifest.tokenizer} - set(manifest.files)
    if unlisted:
        raise ModelError(f"{str(path)!r} gives no checksum for {sorted(unlisted)!r}. {_CURE}")
    return manifest


def fingerprint_of(manifest: ModelManifest) -> str:
    """Identify the vectors that a model gives, by what it is and the checksums of its files."""
    files = [f"{name}={manifest.files[name].sha256}" for name in sorted(manifest.files)]
    if isinstance(manifest, StaticManifest):
        setting = manifest.tensor
    else:
        setting = f"{manifest.max_tokens}, {manifest.latin_only}"
    parts = [manifest.kind, setting, *files]
    return f"{manifest.kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"
