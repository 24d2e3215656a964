"""Hard negatives: wrong tools that a model takes for right ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_semantic.text import searchable_text

from .data import service_of
from .pairs import Pair, Pairs

__all__ = ["mine"]

SIBLINGS = 4
OTHERS = 5
GUARD = 0.95
"""A tool outside the service this near to the right one's cosine may be right as well, and is not called wrong."""

_QUERIES_AT_ONCE = 512

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def mine(pairs: Pairs, encode: Encode) -> Pairs:
    """Give each pair the wrong tools that the encoder ranks highest.

    They are looked for within the collection that the right tool is of. Siblings, tools of the same service, are
    taken as they are: the request was written for that tool and not for them. Others only where their cosine is
    under ``GUARD`` of the right tool's.
    """
    keys = list(pairs.tools)
    texts = [searchable_text(pairs.tools[key]) for key in keys]
    vectors = encode(texts)
    rows = {key: row for row, key in enumerate(keys)}
    names = _Names(rows, texts)
    collections: dict[str, list[int]] = defaultdict(list)
    services: dict[str, list[int]] = defaultdict(list)
    for key, row in rows.items():
        collections[_collection(key)].append(row)
        services[service_of(key)].append(row)
    queries = list({pair.query: None for pair in pairs.pairs})
    query_vectors = dict(zip(queries, encode(queries), strict=True))
    by_collection: dict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs.pairs):
        by_collection[_collection(pair.tool or pair.service + "/")].append(number)
    hard: dict[int, tuple[str, ...]] = {}
    for collection, numbers in by_collection.items():
        within = np.array(collections[collection], dtype=np.int64)
        for start in range(0, len(numbers), _QUERIES_AT_ONCE):
            part = numbers[start : start + _QUERIES_AT_ONCE]
            asked = np.stack([query_vectors[pairs.pairs[number].query] for number in part])
            for number, scores in zip(part, asked @ vectors[within].T, strict=True):
                pair = pairs.pairs[number]
                near = np.zeros(len(keys), np.float32)
                near[within] = scores
                siblings = services[pair.service] if pair.service else ()
                found = _wrong(pair, near, within, siblings, names)
                hard[number] = tuple(keys[row] for row in found)
    return replace(pairs, pairs=[replace(pair, hard=hard[number]) for number, pair in enumerate(pairs.pairs)])


class _Names(NamedTuple):
    """Row by key, and text by row."""

    rows: dict[str, int]
    texts: Sequence[str]


def _collection(key: str) -> str:
    """Name what a key is searched among: the set of its id, or all those without one; shortened texts by themselves."""
    if key.startswith("text:"):
        return "text:"
    return key.split("/", maxsplit=1)[0] if "/" in key else ""


def _wrong(
    pair: Pair, near: NDArray[np.float32], within: NDArray[np.int64], siblings: Sequence[int], names: _Names
) -> list[int]:
    right = {names.rows[one] for one in (pair.tool, *pair.also) if one in names.rows}
    said = {names.texts[row] for row in right}

    def usable(row: int) -> bool:
        return row not in right and names.texts[row] not in said

    best_siblings = sorted(siblings, key=lambda row: -near[row])
    chosen = [row for row in best_siblings if usable(row)][: SIBLINGS if pair.tool else SIBLINGS + OTHERS]
    if pair.tool is None:
        return chosen
    bound = GUARD * near[names.rows[pair.tool]]
    depth = min(4 * OTHERS + len(chosen), len(within) - 1)
    nearest = within[np.argpartition(-near[within], depth)[: depth + 1]]
    order = nearest[np.argsort(-near[nearest], kind="stable")]
    others = [int(row) for row in order if near[row] < bound and usable(int(row)) and int(row) not in chosen]
    return chosen + others[:OTHERS]
