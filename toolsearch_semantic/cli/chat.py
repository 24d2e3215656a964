"""The chat command: a person plays the model's part, and sees at each step what a model would be given."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from toolsearch_semantic.cli.app import app
from toolsearch_semantic.cli.options import Ranking, Sources, command
from toolsearch_semantic.cli.show import escaped, one_line, print_table, say
from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.formats.openai_chat import to_openai_chat
from toolsearch_semantic.options import SearchOptions
from toolsearch_semantic.processor import StepResult, ToolSearchProcessor
from toolsearch_semantic.sources import STDIN
from toolsearch_semantic.tool import Tool

__all__ = ["chat"]

_CHARACTERS_A_TOKEN = 4
_PROMPT = "> "
_HELP = """\
search WORDS      call search_tools
load NAME...      call load_tool
call NAME JSON    call a tool of this step, with arguments as JSON: call get_weather {"city": "Oslo"}
tools             list the tools of this step
step              show all that a model is sent at this step, as OpenAI is sent it
help              show this
quit              end, as the end of input does
Each call ends a step: what it loaded can be called from the next one on."""

_AutoLoad = Annotated[bool, typer.Option("--auto-load", help="Load what a search finds at once.")]


@command(app)
def chat(sources: Sources, ranking: Ranking, auto_load: _AutoLoad = False) -> None:
    """Play the model's part: search, load and call tools step by step, and see what each step costs.

    toolsearch chat --demo
    """
    if STDIN in (sources.tools or []):
        raise InvalidOptionError("The chat reads its commands from standard input. Give --tools a file, not -.")
    catalogue = ranking.searchable(sources.required("To try it without any, give --demo."))
    options = SearchOptions(top_k=ranking.top_k, min_score=ranking.min_score, auto_load=auto_load)
    player = _Player(ToolSearchProcessor(catalogue, search=options), tokens([*catalogue.tools]))
    typer.echo(
        f"{len(catalogue)} tools. 'help' lists the commands. Tokens are guessed from the JSON, at four characters."
    )
    player.begin()
    for line in _lines():
        word, _, rest = line.strip().partition(" ")
        if word in {"quit", "exit"}:
            return
        if word:
            player.obey(word, rest.strip())


def tokens(tools: list[Tool], *texts: str) -> int:
    """Guess how many tokens tools and texts take in a prompt: a quarter of their characters, tools as JSON."""
    written = (json.dumps(to_openai_chat([tool]), ensure_ascii=False, separators=(",", ":")) for tool in tools)
    return -(-sum(map(len, [*written, *texts])) // _CHARACTERS_A_TOKEN)


class _Player:
    """The steps so far.

    Args:
        processor: What prepares them.
        whole: The tokens of the whole catalogue.
    """

    def __init__(self, processor: ToolSearchProcessor, whole: int) -> None:
        self._processor = processor
        self._whole = whole
        self._number = 0
        self._step: StepResult

    def begin(self) -> None:
        """Begin a step, and say what it costs."""
        self._step = self._processor.process_input_step_sync(thread_id="chat")
        self._number += 1
        count = tokens([*self._step.tools.values()], *self._step.system_messages)
        names = ", ".join(one_line(name) for name in self._step.tools)
        typer.echo(f"step {self._number}: about {count:,} tokens, not {self._whole:,}: {names}")

    def obey(self, word: str, rest: str) -> None:
        """Do what a line says."""
        if word == "search" and rest:
            self._call("search_tools", {"query": rest})
        elif word == "load" and rest:
            self._call("load_tool", {"tool_names": rest.split()})
        elif word == "call" and rest:
            name, _, arguments = rest.partition(" ")
            self._call(name, arguments.strip() or None)
        elif word == "tools":
            tools = [*self._step.tools.values()]
            columns = {"name": [tool.name for tool in tools], "tokens": [f"{tokens([tool]):,}" for tool in tools]}
            print_table(columns, last=("description", [tool.description for tool in tools]))
        elif word == "step":
            for text in self._step.system_messages:
                typer.echo(f"system: {one_line(text)}")
            _show(to_openai_chat(self._step.tools.values()))
        elif word == "help":
            typer.echo(_HELP)
        elif word in {"search", "load", "call"}:
            say("error", f"{word} what? 'help' lists the commands.")
        else:
            say("error", f"There is no command {word!r}. 'help' lists the commands.")

    def _call(self, name: str, arguments: object) -> None:
        _show(self._step.call_sync(name, arguments))
        self.begin()


def _show(result: Any) -> None:
    text = json.dumps(result, ensure_ascii=False, indent=2, default=str)
    typer.echo("\n".join(map(escaped, text.split("\n"))))


def _lines() -> Iterator[str]:
    """Give what is typed; where nobody types, each line is shown as if somebody had."""
    typed = sys.stdin.isatty()
    while True:
        if typed:
            typer.echo(_PROMPT, nl=False)
            sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            if typed:
                typer.echo()
            return
        if not typed:
            typer.echo(f"{_PROMPT}{one_line(line)}")
        yield line
