"""Files and what they should be."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FileEntry", "file_sha256", "what_differs"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file's size in bytes and its SHA-256 in hexadecimal digits."""

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileEntry:
        """Describe a file as it is now."""
        return cls(path.stat().st_size, file_sha256(path))


def file_sha256(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def what_differs(path: Path, entry: FileEntry) -> str | None:
    """Say how a file differs from its entry; None where it is the same.

    Raises:
        FileNotFoundError: It is not there.
    """
    size = path.stat().st_size
    if size != entry.bytes:
        return f"it has {size} bytes, and should have {entry.bytes}"
    if file_sha256(path) != entry.sha256:
        return "its SHA-256 differs"
    return None
