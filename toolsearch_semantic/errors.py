"""The errors of this package.

::

    ToolSearchError
    ├── UnknownToolShapeError   (TypeError)          an object that no format reads as a tool
    ├── InvalidToolError        (ValueError)         a known shape with a bad name, description or schema
    ├── ToolNameConflictError   (ValueError)         two different tools under one name
    ├── ToolNotFoundError       (LookupError)        a name that is not in the catalogue
    ├── InvalidOptionError      (ValueError)         an option out of range, of a wrong type, or unknown
    ├── CatalogueFileError      (ValueError)         a file or a server that gives no tools
    ├── ModelError              (RuntimeError)       an embedding model that cannot be loaded
    │   └── ModelNotFoundError  (FileNotFoundError)  … because it is not there
    ├── EncodingError           (RuntimeError)       an encoder that failed, or answered nonsense
    ├── SavedIndexError         (ValueError)         a saved index that is damaged or does not match
    ├── TuningError             (ValueError)         a tuning that cannot be made, read, or used here
    └── MissingDependencyError  (ImportError)        an extra that is not installed

Each message says what was given, what was expected and what to do. Every class also derives from the
built-in in brackets, so code that does not know this package can still catch it.
"""

from __future__ import annotations

__all__ = [
    "CatalogueFileError",
    "EncodingError",
    "InvalidOptionError",
    "InvalidToolError",
    "MissingDependencyError",
    "ModelError",
    "ModelNotFoundError",
    "SavedIndexError",
    "ToolNameConflictError",
    "ToolNotFoundError",
    "ToolSearchError",
    "TuningError",
    "UnknownToolShapeError",
]


class ToolSearchError(Exception):
    """Base of every error that this package raises on purpose."""


class UnknownToolShapeError(ToolSearchError, TypeError):
    """An object was given as a tool, and no format reads its shape."""


class InvalidToolError(ToolSearchError, ValueError):
    """A tool of a known shape has a name, description or schema that cannot be used."""


class ToolNameConflictError(ToolSearchError, ValueError):
    """Two different tools answer to one name, or a key is another tool's name."""


class ToolNotFoundError(ToolSearchError, LookupError):
    """A tool was named that is not in the catalogue."""


class InvalidOptionError(ToolSearchError, ValueError):
    """An option is unknown, of a wrong type, or out of range."""


class CatalogueFileError(ToolSearchError, ValueError):
    """A file, folder or server was named as a source of tools and gives none."""


class ModelError(ToolSearchError, RuntimeError):
    """An embedding model is damaged, incomplete or of an unknown kind."""


class ModelNotFoundError(ModelError, FileNotFoundError):
    """An embedding model is not where it was looked for."""


class EncodingError(ToolSearchError, RuntimeError):
    """An encoder failed, or returned something other than finite (n, d) float rows."""


class SavedIndexError(ToolSearchError, ValueError):
    """A saved index is missing, damaged, or made by another encoder or version."""


class TuningError(ToolSearchError, ValueError):
    """A tuning cannot be made of these requests, or cannot be read."""


class MissingDependencyError(ToolSearchError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f"Install it with: pip install 'toolsearch-semantic[{extra}]'"
        )
