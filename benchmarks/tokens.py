"""Count the prompt tokens that tools take at each step: all of them, against search with what it loaded.

    python benchmarks/tokens.py
    python benchmarks/tokens.py --catalogues ../shared/data/catalogues

Counted is the JSON of the ``tools`` of a Chat Completions request, and, with search, the system message too; a
provider renders tools in a form of its own before it counts. The tokenizer is o200k_base where ``bpe-openai`` is
installed, which ships it; otherwise that of the bundled model, a proxy, to be taken for proportions alone.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import Any

from toolsearch_semantic import Tool, ToolSearchProcessor, as_tools
from toolsearch_semantic.formats.openai_chat import to_openai_chat

CATALOGUES = Path(__file__).parents[2] / "shared" / "data" / "catalogues"
LOADED = 5
PART = 500
QUERIES = [
    "tell the team the build broke",
    "give the customer their money back",
    "who is on call right now",
    "is it going to rain in Lisbon",
    "open a bug report for the login page",
    "turn this paragraph into Spanish",
    "list the files that were shared with me last week",
    "why is the checkout service slow",
]
Count = Callable[[str], int]


def tokenizer() -> tuple[str, Count]:
    """Give a tokenizer that is on this machine: its name, and what counts."""
    try:
        ranks = importlib.import_module("bpe_openai").get_encoding("o200k_base")
    except ImportError:
        from tokenizers import Tokenizer

        from toolsearch_semantic.encoders.bundled import bundled_folder

        own = Tokenizer.from_file(str(bundled_folder("toolsearch-static") / "tokenizer.json"))
        own.no_truncation()
        return "the bundled model's WordPiece, a proxy", lambda text: len(own.encode(text, add_special_tokens=False))
    return f"o200k_base of bpe-openai {version('bpe-openai')}", lambda text: len(ranks.encode(text))


def records(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Read a catalogue; its ids are the names, where it has any, since names repeat from server to server."""
    read = [json.loads(line) for line in lines]
    return [{**record, "name": record.get("id", record["name"])} for record in read]


def catalogues(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Read the demo catalogue, and those of the folder where there is one, each in part and whole."""
    with as_file(files("toolsearch_semantic.demo") / "tools.jsonl") as path:
        found = {"demo": records(path.read_text(encoding="utf-8").splitlines())}
    for path in sorted(folder.glob("*/tools.jsonl")):
        with path.open(encoding="utf-8") as lines:
            part = records(islice(lines, PART))
            rest = records(lines)
        if rest:
            found[f"{path.parent.name}, in part"] = part
        found[path.parent.name] = part + rest
    return found


def tokens(tools: Iterable[Tool], count: Count) -> int:
    """Count tools as the client of OpenAI sends them: one by one, as a tokenizer may bound the length of a text."""
    written = (json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in to_openai_chat(tools))
    return sum(count(f"{text},") for text in written)


def measured(tools: Sequence[Tool], count: Count) -> dict[str, float]:
    """Count for one catalogue; what is loaded is what each query finds, and the figure is the mean."""
    processor = ToolSearchProcessor(tools, search={"top_k": LOADED})
    loaded, talk = [], []
    for query in QUERIES:
        step = processor.process_input_step_sync(thread_id=query)
        instructions = "\n\n".join(step.system_messages)
        nothing = tokens(step.tools.values(), count) + count(instructions)
        found = step.call_sync("search_tools", {"query": query})
        names = {"tool_names": [hit["name"] for hit in found["results"]]}
        result = step.call_sync("load_tool", names)
        step = processor.process_input_step_sync(thread_id=query)
        loaded.append(tokens(step.tools.values(), count) + count(instructions))
        talk.append(count("".join(json.dumps(said) for said in ({"query": query}, found, names, result))))
    return {
        "all": tokens(tools, count),
        "meta": nothing,
        "loaded": statistics.mean(loaded),
        "talk": statistics.mean(talk),
    }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description="Count the tokens of tools, all and with search.")
    parser.add_argument("--catalogues", type=Path, default=CATALOGUES, help="folder of */tools.jsonl")
    name, count = tokenizer()
    print(f"prompt tokens of tools per step, by {name}; means over {len(QUERIES)} queries\n")
    print(f"| catalogue | tools | all tools | nothing loaded | {LOADED} loaded | share | search and load, once |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for label, catalogue in catalogues(parser.parse_args().catalogues).items():
        tools = as_tools(catalogue)
        row = measured(tools, count)
        print(
            f"| {label} | {len(tools):,} | {row['all']:,.0f} | {row['meta']:,.0f} | {row['loaded']:,.0f} "
            f"| {row['loaded'] / row['all']:.1%} | {row['talk']:,.0f} |"
        )


if __name__ == "__main__":
    main()
