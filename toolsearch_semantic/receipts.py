"""What a conversation proves to be loaded: the results of its meta-tool calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolsearch_semantic.formats.names import written_names
from toolsearch_semantic.messages.read import ToolExchange
from toolsearch_semantic.meta_tools import MetaTools

__all__ = ["Receipt", "receipts_in", "replay"]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Names that were loaded, unloaded and called at one place of a conversation."""

    position: int
    loaded: tuple[str, ...] = ()
    unloaded: tuple[str, ...] = ()
    called: str | None = None


def receipts_in(exchanges: Iterable[ToolExchange], meta_tools: MetaTools) -> Iterator[Receipt]:
    """Read what calls of the meta-tools loaded, and which other tools were called.

    A load counts whole or in part; a search counts where it says itself that its results were loaded, or where the
    provider loads by reference. What is marked as an error counts for nothing.
    """
    load_names, search_names = written_names(meta_tools.load_name), written_names(meta_tools.search_name)
    for exchange in exchanges:
        result = exchange.result if exchange.answered and not exchange.is_error else None
        by_reference = exchange.references if exchange.answered and not exchange.is_error else ()
        if exchange.kind == "tool_search":
            yield Receipt(exchange.position, loaded=by_reference)
        elif exchange.tool_name in load_names:
            yield _receipt(exchange.position, result, among=None)
        elif exchange.tool_name in search_names:
            receipt = _receipt(exchange.position, result, among=_found(result))
            yield Receipt(exchange.position, (*receipt.loaded, *by_reference), receipt.unloaded)
        else:
            yield Receipt(exchange.position, called=exchange.tool_name)


def replay(receipts: Iterable[Receipt], named: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Play receipts in order: the names that are loaded in the end, in load order, and in order of last use.

    Args:
        receipts: In any order.
        named: Gives the tool's own name for one that the model was shown.
    """
    loaded: dict[str, None] = {}
    used: dict[str, None] = {}
    names: dict[str, str] = {}  # by each name that a provider may have been given
    for receipt in sorted(receipts, key=lambda receipt: receipt.position):
        now = [named(name) for name in receipt.loaded]
        for name in now:
            if name not in loaded:
                loaded[name] = None
                names |= dict.fromkeys(written_names(name), name)
        called = [] if receipt.called is None else [names.get(receipt.called, receipt.called)]
        for name in (*now, *called):
            if name in loaded:
                used.pop(name, None)
                used[name] = None
        for name in map(named, receipt.unloaded):
            loaded.pop(name, None)
            used.pop(name, None)
    return list(loaded), list(used)


def _receipt(position: int, result: Any, *, among: set[str] | None) -> Receipt:
    if not isinstance(result, Mapping):
        return Receipt(position)
    loaded = [*_names(result.get("loaded")), *_names(result.get("already_loaded"))]
    if among is not None:
        loaded = [name for name in loaded if name in among]
    return Receipt(position, tuple(loaded), tuple(_names(result.get("unloaded"))))


def _found(result: Any) -> set[str]:
    results = result.get("results") if isinstance(result, Mapping) else None
    if not isinstance(results, list | tuple):
        return set()
    return {hit["name"] for hit in results if isinstance(hit, Mapping) and isinstance(hit.get("name"), str)}


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str) and name.strip()] if isinstance(value, list | tuple) else []
