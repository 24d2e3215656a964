from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from toolsearch_semantic.cli.main import app

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"name": "get_weather", "description": "Forecast for a city.", "parameters": CITY},
    {"name": "refund", "description": "Pay a customer back."},
    {"name": "evil", "description": "Wipe \x1b[2J[red]the screen\u202e clean."},
]


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


def run(tools: str, *lines: str, options: tuple[str, ...] = (), end: str = "\n") -> Result:
    arguments = ["chat", "--tools", tools, "--mode", "lexical", *options]
    return CliRunner().invoke(app, arguments, input="\n".join(lines) + end, prog_name="toolsearch")


def results(result: Result) -> list[Any]:
    """What was shown of each call, in order."""
    assert result.exit_code == 0
    parts = ("\n" + result.stdout).split("\n> ")[1:]
    return [json.loads(part.split("\n", 1)[1].rsplit("\nstep ", 1)[0]) for part in parts if "\nstep " in part]


def steps(result: Result) -> list[str]:
    return [line for line in result.stdout.splitlines() if line.startswith("step ")]


def test_a_tool_is_searched_loaded_and_called_which_needs_an_executor(tools: str) -> None:
    done = run(tools, "search forecast city", "load get_weather", 'call get_weather {"city": "Oslo"}', "quit")

    found, loaded, called = results(done)
    assert found["results"][0]["name"] == "get_weather"
    assert loaded["loaded"] == ["get_weather"]
    assert called["success"] is False
    assert "cannot be run here" in called["message"]
    assert [line.rsplit(": ", 1)[1] for line in steps(done)] == [
        "search_tools, load_tool", "search_tools, load_tool", *["search_tools, load_tool, get_weather"] * 2,
    ]  # fmt: skip
    assert done.stderr == ""


def test_each_step_says_how_many_tokens_it_takes_and_how_they_are_counted(tools: str) -> None:
    done = run(tools, "load get_weather")

    counts = [int(line.split()[3].replace(",", "")) for line in steps(done)]
    assert 200 < counts[0] < counts[1] < 600
    assert "four characters" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("call get_wether", "There is no tool named"),
        ("call get_weather", "not loaded"),
        ("call load_tool {", "not valid JSON"),
        ('call search_tools {"words": 1}', "'query' is a required property"),
        ("load nothing", "No tool is named"),
        ("search zzz", "No tool was found"),
    ],
)
def test_what_goes_wrong_is_answered_as_a_model_is_answered(tools: str, line: str, said: str) -> None:
    [result] = results(run(tools, line))
    assert said in result["message"]


def test_wrong_commands_are_one_line_each_and_the_chat_goes_on(tools: str) -> None:
    done = run(tools, "dance \x1b[2J", "search", "", "load get_weather")

    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "error"]
    assert [result["loaded"] for result in results(done)] == [["get_weather"]]


def test_the_tools_and_all_that_is_sent_are_shown(tools: str) -> None:
    done = run(tools, "load refund", "tools", "step", "help")

    assert done.exit_code == 0
    table, sent, commands = ("\n" + done.stdout).split("\n> ")[2:]
    assert "Pay a customer back." in table
    system, shown = sent.split("\n", 2)[1:]
    assert system.startswith("system: You have more tools than are listed.")
    names = [tool["function"]["name"] for tool in json.loads(shown)]
    assert names == ["search_tools", "load_tool", "refund"]
    assert "call NAME JSON" in commands


def test_with_auto_load_what_is_found_is_loaded(tools: str) -> None:
    done = run(tools, "search forecast", options=("--auto-load",))
    assert [line.rsplit(": ", 1)[1] for line in steps(done)] == ["search_tools", "search_tools, get_weather"]


def test_text_of_tools_and_of_lines_never_reaches_the_terminal_raw(tools: str) -> None:
    done = run(tools, "search wipe the screen", "load evil", "tools", "step", "call \x1b]0;x\x07 {}")

    assert "evil" in done.stdout
    assert "[red]" in done.stdout
    for raw in ("\x1b", "\x07", "\u202e"):
        assert raw not in done.stdout + done.stderr


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_end_of_input_ends_it(tools: str, end: str) -> None:
    done = run(tools, "load refund", end=end)
    assert (done.exit_code, done.stderr) == (0, "")
    assert len(steps(done)) == 2
    assert run(tools, end="").exit_code == 0


def test_commands_and_tools_cannot_both_come_from_standard_input() -> None:
    done = run("-", "[]")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert "standard input" in done.stderr


def test_without_a_source_it_says_what_to_give() -> None:
    done = CliRunner().invoke(app, ["chat"], prog_name="toolsearch")
    assert done.exit_code == 2
    assert "--demo" in done.stderr
