"""What holds for the package as a whole."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import toolsearch_semantic

PACKAGE = Path(toolsearch_semantic.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py"))

# Lower layers first; a module imports from its own layer's part and from layers before it.
LAYERS = [
    {"errors", "tool", "text", "scores", "options", "checksums", "hits", "validation", "locks"},
    {"formats", "encoders", "indexes", "stores"},
    {"fitting"},
    {"tuning"},
    {"catalogue", "saved", "embedding", "merging"},
    {"search", "messages"},
    {"meta_tools", "executing", "near", "bridge", "checks"},
    {"access", "request_catalogue", "arguments"},
    {"receipts", "session"},
    {"processor"},
    {"integrations"},
    {"sources"},
    {"cli"},
]
HEAVY = {"torch", "sentence_transformers", "faiss", "onnxruntime", "mcp", "tokenizers", "safetensors", "typer", "rich"}


def part(module: str) -> str:
    return module.split(".")[1]


def imports(path: Path, *, only_at_the_top: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if only_at_the_top else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_one_way(path: Path) -> None:
    relative = path.relative_to(PACKAGE)
    if relative == Path("__init__.py"):
        return
    own = relative.parts[0].removesuffix(".py")
    if own == "demo":
        assert imports(path) == set()
        return
    [layer] = [i for i, names in enumerate(LAYERS) if own in names]
    siblings = LAYERS[layer] if layer == 0 else {own}
    allowed = siblings.union(*LAYERS[:layer])
    ours = {part(name) for name in imports(path) if name.startswith("toolsearch_semantic.")}
    assert ours <= allowed
    assert "toolsearch_semantic" not in imports(path) or own in {"integrations", "sources", "cli"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_file_is_short_and_a_package_marker_holds_no_code(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= 400
    body = ast.parse(text).body
    if path.name == "__init__.py" and path != PACKAGE / "__init__.py":
        assert len(body) == 1
    assert ast.get_docstring(ast.parse(text))


def test_the_public_names_are_these() -> None:
    assert toolsearch_semantic.__all__ == sorted(toolsearch_semantic.__all__)
    assert set(toolsearch_semantic.__all__) == {
        "CatalogueFileError", "ContextStore", "Encoder", "EncodingError", "ErrorResult", "FilterArgs",
        "InMemoryStore", "InvalidOptionError", "InvalidToolError", "MetaTools", "MissingDependencyError",
        "ModelError", "ModelNotFoundError", "SavedIndexError", "SearchHit", "SearchOptions", "StateStats",
        "StateStore", "StepResult", "Tool", "ToolNameConflictError", "ToolNotFoundError", "ToolSearch",
        "ToolSearchError", "ToolSearchProcessor", "TuningError", "UnknownToolShapeError", "as_tool", "as_tools",
    }  # fmt: skip
    assert all(hasattr(toolsearch_semantic, name) for name in toolsearch_semantic.__all__)


def test_importing_the_package_loads_no_heavy_library() -> None:
    code = "import sys, toolsearch_semantic; print(*{name.split('.')[0] for name in sys.modules})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(out.split())
    assert "toolsearch_semantic" in loaded
    assert (
        loaded
        & (
            HEAVY
            | {
                "pydantic",
                "asyncio",
                "jsonschema",
                "rapidfuzz",
                "langchain_core",
                "pydantic_ai",
                "haystack",
                "openai",
                "anthropic",
            }
        )
        == set()
    )


def test_every_error_derives_from_the_base_and_from_a_builtin() -> None:
    errors = [getattr(toolsearch_semantic, name) for name in toolsearch_semantic.__all__ if name.endswith("Error")]
    for error in errors:
        assert issubclass(error, toolsearch_semantic.ToolSearchError)
        if error is not toolsearch_semantic.ToolSearchError:
            assert any(base.__module__ == "builtins" for base in error.__mro__ if base not in {Exception, object})


def test_everything_works_with_sockets_blocked() -> None:
    code = """
import socket
class Blocked(socket.socket):
    def __init__(self, *args, **kwargs):
        raise AssertionError("a socket was opened")
socket.socket = Blocked
from toolsearch_semantic import ToolSearch
hits = ToolSearch([{"name": "get_weather", "description": "Forecast for a city"}, {"name": "refund"}]).search("rain")
print(hits[0].tool.name, hits[0].source)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "get_weather hybrid\n"
