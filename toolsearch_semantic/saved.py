"""A searchable catalogue on disk: a folder whose manifest names the files that belong together.

A save writes new files under new names, forces them to the disk, and then replaces the manifest in one step. So
a reader finds the old index or the new one, a save that was killed leaves the old one, and of two saves at once
the later one wins whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.checksums import FileEntry, what_differs
from toolsearch_semantic.errors import SavedIndexError
from toolsearch_semantic.options import Mode
from toolsearch_semantic.text import TEXT_VERSION
from toolsearch_semantic.tuning import Tuning
from toolsearch_semantic.validation import read_json

__all__ = ["REBUILD", "SavedIndex", "check_target", "read_saved", "write_saved"]

MANIFEST = "manifest.json"
_FORMAT_VERSION = 1
_TOOLS, _VECTORS = "tools-*.jsonl", "vectors-*.npy"
_ABANDONED_AFTER = 3600.0  # seconds; a save that is still writing must not lose its files to another
_READ_ATTEMPTS = 5
REBUILD = "Build it again: ToolSearch(tools).save(path), or `toolsearch index`."


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """What is saved: tools as JSON records in catalogue order, and vectors of shape (n, d) whose rows follow them.

    ``encoder`` is the fingerprint of what made the vectors; None, as ``vectors``, for a lexical catalogue.
    ``tuning`` is what its scores were tuned with.
    """

    mode: Mode
    records: Sequence[Mapping[str, Any]]
    aliases: Mapping[str, str]
    encoder: str | None
    vectors: NDArray[np.float32] | None
    tuning: Tuning | None = None


@dataclass(frozen=True, slots=True)
class _Manifest:
    format_version: int
    text_version: int
    mode: Mode
    encoder: str | None
    tools: int
    aliases: Mapping[str, str]
    files: Mapping[str, FileEntry]
    tuning: Tuning | None = None
    digest: str = ""

    def own_digest(self) -> str:
        """Hash everything else that the manifest says."""
        rest = {name: value for name, value in asdict(self).items() if name != "digest"}
        return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def check_target(folder: Path) -> None:
    """Check that a folder may take an index: it is new, empty, or holds one.

    Raises:
        SavedIndexError: It holds something else.
    """
    if folder.exists() and not (folder / MANIFEST).is_file():
        # A save that was killed before its first manifest leaves such files.
        ours = (_TOOLS, _VECTORS, f"{MANIFEST}.*")
        if not folder.is_dir() or any(not any(p.match(pattern) for pattern in ours) for p in folder.iterdir()):
            raise SavedIndexError(
                f"{str(folder)!r} holds something else than a saved index, and is left as it is. "
                "Give a new or an empty folder."
            )


def write_saved(folder: Path, saved: SavedIndex) -> None:
    """Save atomically; the folder is made where it does not exist.

    Raises:
        SavedIndexError: The folder holds something else than a saved index.
        OSError: The disk is full, or the folder may not be written; an index that was there is still whole.
    """
    check_target(folder)
    folder.mkdir(parents=True, exist_ok=True)
    before = _files_of(folder)
    unique = uuid.uuid4().hex
    written: list[Path] = []
    try:
        tools = folder / _TOOLS.replace("*", unique)
        written.append(tools)
        with tools.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(record, ensure_ascii=True) + "\n" for record in saved.records)
        if saved.vectors is not None:
            vectors = folder / _VECTORS.replace("*", unique)
            written.append(vectors)
            with vectors.open("wb") as array:
                np.save(array, saved.vectors, allow_pickle=False)
        for path in written:
            _force_to_disk(path)
        manifest = _Manifest(
            _FORMAT_VERSION,
            TEXT_VERSION,
            saved.mode,
            saved.encoder,
            len(saved.records),
            saved.aliases,
            {path.name: FileEntry.of(path) for path in written},
            saved.tuning,
        )
        new = folder / f"{MANIFEST}.{unique}"
        written.append(new)
        manifest = replace(manifest, digest=manifest.own_digest())
        new.write_text(json.dumps(asdict(manifest), indent=1), encoding="utf-8")
        _force_to_disk(new)
        new.replace(folder / MANIFEST)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    _force_to_disk(folder)
    _remove_old(folder, before)


def read_saved(folder: Path) -> SavedIndex:
    """Read what was saved, checked against its checksums.

    Raises:
        SavedIndexError: It is missing, damaged, or of another version, with the way to build it again.
    """
    for _ in range(_READ_ATTEMPTS):
        manifest = _read_manifest(folder)
        try:
            return _read_files(folder, manifest)
        except (OSError, ValueError) as error:
            if not isinstance(error, FileNotFoundError):
                raise SavedIndexError(f"The index in {str(folder)!r} cannot be read: {error}. {REBUILD}") from error
            # A save that ended meanwhile removes the files of the manifest before it.
            if _read_manifest(folder) == manifest:
                raise SavedIndexError(f"The index in {str(folder)!r} lacks {error.filename!r}. {REBUILD}") from error
    raise SavedIndexError(f"The index in {str(folder)!r} is replaced faster than it can be read. Try again later.")


def _read_manifest(folder: Path) -> _Manifest:
    path = folder / MANIFEST
    try:
        manifest = read_json(_Manifest, path.read_bytes())
    except FileNotFoundError as error:
        raise SavedIndexError(f"No saved index in {str(folder)!r}: {MANIFEST} is not there. {REBUILD}") from error
    except (ValueError, OSError) as error:
        raise SavedIndexError(f"{str(path)!r} is not the manifest of a saved index: {error}. {REBUILD}") from error
    versions = {"format": (manifest.format_version, _FORMAT_VERSION), "text": (manifest.text_version, TEXT_VERSION)}
    for what, (found, expected) in versions.items():
        if found != expected:
            raise SavedIndexError(
                f"The index in {str(folder)!r} has {what} version {found}; this release reads {expected}. {REBUILD}"
            )
    if manifest.digest != manifest.own_digest():
        raise SavedIndexError(f"{str(path)!r} is damaged: its digest differs. {REBUILD}")
    return manifest


def _read_files(folder: Path, manifest: _Manifest) -> SavedIndex:
    records: list[Mapping[str, Any]] = []
    vectors = None
    for name, entry in manifest.files.items():
        path = folder / Path(name).name  # a manifest must not lead out of its folder
        difference = what_differs(path, entry)
        if difference:
            raise SavedIndexError(f"The index in {str(folder)!r} is damaged: of {name!r}, {difference}. {REBUILD}")
        if path.match(_TOOLS):
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        else:
            vectors = np.load(path, allow_pickle=False)
    counts = {manifest.tools, len(records)} | (set() if vectors is None else {len(vectors)})
    if len(counts) > 1 or (vectors is None) != (manifest.encoder is None):
        raise SavedIndexError(f"The index in {str(folder)!r} contradicts its manifest. {REBUILD}")
    return SavedIndex(manifest.mode, records, manifest.aliases, manifest.encoder, vectors, manifest.tuning)


def _files_of(folder: Path) -> set[str]:
    try:
        return set(_read_manifest(folder).files)
    except SavedIndexError:
        return set()


def _remove_old(folder: Path, before: set[str]) -> None:
    now = _files_of(folder)
    for path in [*folder.glob(_TOOLS), *folder.glob(_VECTORS), *folder.glob(f"{MANIFEST}.*")]:
        with suppress(OSError):  # another process removed it, or still maps it (Windows)
            abandoned = time.time() - path.stat().st_mtime > _ABANDONED_AFTER
            if path.name not in now and (path.name in before or abandoned):
                path.unlink()


def _force_to_disk(path: Path) -> None:
    if path.is_dir() and os.name == "nt":
        return  # Windows has no fsync of folders
    # Windows flushes only what is open for writing.
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
