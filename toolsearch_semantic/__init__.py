"""Semantic search over an LLM agent's tools: a large catalogue stays out of the prompt."""

from toolsearch_semantic.access import FilterArgs
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
    TuningError,
    UnknownToolShapeError,
)
from toolsearch_semantic.formats.read import as_tool, as_tools
from toolsearch_semantic.hits import SearchHit
from toolsearch_semantic.meta_tools import ErrorResult, MetaTools
from toolsearch_semantic.options import SearchOptions
from toolsearch_semantic.processor import StepResult, ToolSearchProcessor
from toolsearch_semantic.search import ToolSearch
from toolsearch_semantic.stores.base import StateStats, StateStore
from toolsearch_semantic.stores.context import ContextStore
from toolsearch_semantic.stores.in_memory import InMemoryStore
from toolsearch_semantic.tool import Tool

__all__ = [
    "CatalogueFileError",
    "ContextStore",
    "Encoder",
    "EncodingError",
    "ErrorResult",
    "FilterArgs",
    "InMemoryStore",
    "InvalidOptionError",
    "InvalidToolError",
    "MetaTools",
    "MissingDependencyError",
    "ModelError",
    "ModelNotFoundError",
    "SavedIndexError",
    "SearchHit",
    "SearchOptions",
    "StateStats",
    "StateStore",
    "StepResult",
    "Tool",
    "ToolNameConflictError",
    "ToolNotFoundError",
    "ToolSearch",
    "ToolSearchError",
    "ToolSearchProcessor",
    "TuningError",
    "UnknownToolShapeError",
    "as_tool",
    "as_tools",
]
