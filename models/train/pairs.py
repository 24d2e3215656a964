"""Training pairs: what is asked for, and the tool that answers it.

Three kinds: labelled requests; requests that nothing answers (their service's tools are all wrong); and the tools' own
texts, the first sentence of a description against the name and the rest. What asks for a held-out tool, and what
nearly repeats a request or a tool of the sets that only report, is left out.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from toolsearch_semantic.text import TextFields, searchable_text

from .api_docs import read_api_docs
from .data import Request, ToolSet, held_out, read_requests, read_sets, read_tools, service_of
from .overlap import near_duplicates

__all__ = ["Pair", "PairSources", "Pairs", "build_pairs", "read_pairs", "write_pairs"]

SHARES = {"clinc": 2_000, "apibench": 800}
"""Requests that are taken of a set: intents without descriptions, and one of many models of a topic, teach little."""

TEXTS_PER_COLLECTION = 4_000
FIRST_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_SHORTEST = 20


@dataclass(frozen=True, slots=True)
class Pair:
    """One example: a query, the tool that answers it (None: nothing does), and others that do as well.

    ``batch`` names the pool that the pair is batched with: texts of one style are each other's harder negatives.
    ``hard`` are wrong tools that look right.
    """

    query: str
    tool: str | None
    also: tuple[str, ...]
    batch: str
    service: str = ""
    hard: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs, the fields of every tool that they name, and how many were left out for which reason."""

    pairs: list[Pair]
    tools: dict[str, TextFields]
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class PairSources:
    """Where pairs come from. ``without`` names sets to pass over; ``reported`` is the folder that is kept apart."""

    sets: Path
    reported: Path | None = None
    corpus: Path | None = None
    own: tuple[Path, ...] = ()
    wheels: tuple[Path, ...] = ()
    without: frozenset[str] = frozenset()


def _pool(name: str) -> str:
    if name in {"mcp_requests", "own"}:
        return "mcp"
    return name if name in {"sealtools", "toolbench", "bfcl", "clinc", "apibench"} else "apis"


def labelled_pairs(name: str, requests: Iterable[Request], tools: dict[str, TextFields]) -> list[Pair]:
    """Make a pair of each request and each of its right tools."""
    pairs = []
    for request in requests:
        wanted = [one for one in request.relevant if one in tools]
        if not wanted and request.service:
            pairs.append(Pair(request.query, None, (), _pool(name), request.service))
        for one in wanted:
            also = tuple(other for other in wanted if other != one)
            pairs.append(Pair(request.query, one, also, _pool(name), service_of(one)))
    return pairs


def text_pairs(tools: dict[str, TextFields], batch: str) -> tuple[list[Pair], dict[str, TextFields]]:
    """Ask for each tool by its description's first sentence; the tool is then known by its name and the rest."""
    pairs, shortened = [], {}
    for one, fields in tools.items():
        first, _, rest = _first_sentence(fields.description)
        if len(first) >= _SHORTEST and len(fields.name) > 1:
            key = f"text:{one}"
            shortened[key] = replace(fields, description=rest)
            pairs.append(Pair(first, key, (), batch, service_of(key)))
    return pairs, shortened


def _first_sentence(description: str) -> tuple[str, str, str]:
    match = FIRST_SENTENCE.search(description)
    if match is None:
        return description, "", ""
    return description[: match.start()], match.group(), description[match.end() :]


def build_pairs(sources: PairSources, *, seed: int, say: Callable[[str], None] = print) -> Pairs:
    """Read every source, leave out what must not be seen, and say how many pairs each gave."""
    chance = random.Random(seed)
    sets = [one for one in read_sets(sources.sets) if one.name not in sources.without]
    corpus = read_tools(sources.corpus / "tools.jsonl") if sources.corpus else {}
    sets += [ToolSet("own", corpus, read_requests(path)) for path in sources.own]
    pairs: list[Pair] = []
    tools: dict[str, TextFields] = {}
    left_out: Counter[str] = Counter()
    for one in sets:
        tools.update(one.tools)
        kept = [request for request in one.requests if not held_out(request.relevant)]
        left_out["asks for a held-out tool"] += len(one.requests) - len(kept)
        if one.name in SHARES:
            kept = chance.sample(kept, min(SHARES[one.name], len(kept)))
        made = labelled_pairs(one.name, kept, one.tools)
        say(f"{one.name}: {len(kept)} requests, {len(made)} pairs")
        pairs += made
    collections = {one.name: one.tools for one in sets if not one.requests}
    if sources.corpus is not None:
        collections["mcp_corpus"] = corpus
    for wheel in sources.wheels:
        collections[wheel.name.partition("-")[0]] = read_api_docs(wheel, seed=seed)
    for name, texts in collections.items():
        open_ones = {key: fields for key, fields in texts.items() if not held_out([key])}
        left_out["text of a held-out tool"] += len(texts) - len(open_ones)
        made, shortened = text_pairs(open_ones, f"texts of {name}")
        made = chance.sample(made, min(TEXTS_PER_COLLECTION, len(made)))
        tools.update({pair.tool: shortened[pair.tool] for pair in made if pair.tool})
        say(f"texts of {name}: {len(made)} pairs")
        pairs += made
    # A held-out tool is not shown as a wrong one either.
    tools = {key: fields for key, fields in tools.items() if key.startswith("text:") or not held_out([key])}
    if sources.reported is not None:
        pairs = without_reported(pairs, tools, read_sets(sources.reported), left_out)
    for reason, count in left_out.items():
        say(f"left out, {reason}: {count}")
    return Pairs(pairs, tools, left_out)


def without_reported(
    pairs: Sequence[Pair], tools: dict[str, TextFields], reported: Sequence[ToolSet], left_out: Counter[str]
) -> list[Pair]:
    """Leave out pairs whose query or tool is nearly one of the reported sets'; also from among the tools."""
    requests = [request.query for one in reported for request in one.requests]
    texts = [text for one in reported for text in one.texts()]
    # What a description says counts whatever the tool is called, so it is compared alone as well.
    texts += [fields.description for one in reported for fields in one.tools.values() if fields.description]
    keys = list(tools)
    whole = near_duplicates([searchable_text(tools[key]) for key in keys], texts)
    said = near_duplicates([tools[key].description for key in keys], texts)
    same_tools = {key for key, a, b in zip(keys, whole, said, strict=True) if a or (b and tools[key].description)}
    same_queries = near_duplicates([pair.query for pair in pairs], requests + texts)
    kept = []
    for pair, same in zip(pairs, same_queries, strict=True):
        if same:
            left_out["query nearly the same as one of a reported set"] += 1
        elif pair.tool in same_tools:
            left_out["tool nearly the same as one of a reported set"] += 1
        else:
            kept.append(replace(pair, also=tuple(one for one in pair.also if one not in same_tools)))
    for key in same_tools:
        del tools[key]
    left_out["tools of reported sets, also as negatives"] += len(same_tools)
    return kept


def write_pairs(folder: Path, pairs: Pairs) -> None:
    """Write pairs and tools as JSON lines."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "tools.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(
            json.dumps({"id": key, **asdict(f)}, ensure_ascii=False) + "\n" for key, f in pairs.tools.items()
        )
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs.pairs)


def read_pairs(folder: Path) -> Pairs:
    """Read what `write_pairs` wrote."""
    tools, pairs = {}, []
    with (folder / "tools.jsonl").open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            key = record.pop("id")
            tools[key] = TextFields(**{**record, "cut": tuple(record["cut"])})
    with (folder / "pairs.jsonl").open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            pairs.append(Pair(**{**record, "also": tuple(record["also"]), "hard": tuple(record["hard"])}))
    return Pairs(pairs, tools)


def document_text(fields: TextFields, chance: np.random.Generator) -> str:
    """Put a tool into words as the package does, now and then with less of it, as other catalogues give less."""
    kind = chance.random()
    if kind < DROP_PARAMETERS:
        fields = replace(fields, parameter_names="")
    elif kind < DROP_PARAMETERS + FIRST_SENTENCE_ONLY:
        fields = replace(fields, description=_first_sentence(fields.description)[0])
    return searchable_text(fields)


DROP_PARAMETERS = 0.2
FIRST_SENTENCE_ONLY = 0.15
