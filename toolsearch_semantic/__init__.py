"""Semantic search over an LLM agent's tools: a large catalogue stays out of the prompt."""

from toolsearch_semantic.encoders.base import Encoder
from toolsearch_semantic.errors import (
    CatalogueFileError,
    EncodingError,
    InvalidOptionError,
    InvalidToolError,
    MissingDependencyError,
    ModelError,
    ModelNotFoundError,
    SavedIndexError,
    ToolNameConflictError,
    ToolNotFoundError,
    ToolSearchError,
    UnknownToolShapeError,
)
from toolsearch_semantic.formats.read import as_tool, as_tools
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.options import SearchOptions
from toolsearch_semantic.search import ToolSearch
from toolsearch_semantic.tool import Tool

__all__ = [
    "CatalogueFileError",
    "Encoder",
    "EncodingError",
    "InvalidOptionError",
    "InvalidToolError",
    "MissingDependencyError",
    "ModelError",
    "ModelNotFoundError",
    "SavedIndexError",
    "SearchHit",
    "SearchOptions",
    "Tool",
    "ToolNameConflictError",
    "ToolNotFoundError",
    "ToolSearch",
    "ToolSearchError",
    "UnknownToolShapeError",
    "as_tool",
    "as_tools",
]
