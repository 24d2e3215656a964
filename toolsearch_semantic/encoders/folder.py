"""A model as a folder: what ``toolsearch.json`` says of it, and whether its files are whole."""

from __future__ import annotations

import hashlib
import json
import re
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

_PARTNER = re.compile(r"[\w-]+")

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

    ``latin_only`` says that it makes nothing of texts that are mostly in another script. A model of English names its
    partner for other languages, a folder beside it whose vectors are in the same space, and ``english``, the weight of
    each token as a sign of English.
    """

    format_version: Literal[1]
    kind: Literal["onnx"]
    dimension: int
    weights: str
    tokenizer: str
    max_tokens: int
    files: Mapping[str, FileEntry]
    latin_only: bool = False
    english: str | None = None
    partner: str | None = None
    scoring: Scoring = UNCALIBRATED

    def __post_init__(self) -> None:
        if (self.english is None) != (self.partner is None):
            raise ValueError("english and partner go together: both or neither")
        if self.partner is not None and not _PARTNER.fullmatch(self.partner):
            raise ValueError(f"partner must be the name of a folder beside the model's, not {self.partner!r}")


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


def read_manifest(folder: Path, *, check_files: bool = True) -> ModelManifest:
    """Read a model folder's manifest and, unless told otherwise, check every file that it names.

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
    for name, entry in manifest.files.items() if check_files else ():
        file = folder / name
        if not file.is_file():
            raise ModelError(f"The model in {str(folder)!r} lacks its file {name!r}. {_CURE}")
        try:
            difference = what_differs(file, entry)
        except OSError as error:
            raise ModelError(f"{str(file)!r} cannot be read: {error}. {_CURE}") from error
        if difference:
            raise ModelError(f"{str(file)!r} is not the file that its manifest describes: {difference}. {_CURE}")
    named = {manifest.weights, manifest.tokenizer}
    if isinstance(manifest, OnnxManifest) and manifest.english is not None:
        named.add(manifest.english)
    unlisted = named - set(manifest.files)
    if unlisted:
        raise ModelError(f"{str(path)!r} gives no checksum for {sorted(unlisted)!r}. {_CURE}")
    return manifest


def fingerprint_of(manifest: ModelManifest) -> str:
    """Identify the vectors that a model gives, by what it is and the checksums of its files."""
    files = [f"{name}={manifest.files[name].sha256}" for name in sorted(manifest.files)]
    if isinstance(manifest, StaticManifest):
        setting = manifest.tensor
    else:
        setting = f"{manifest.max_tokens}, {manifest.latin_only}, {manifest.partner}"
    parts = [manifest.kind, setting, *files]
    return f"{manifest.kind}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"
