from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from toolsearch_semantic.cli.main import app
from toolsearch_semantic.encoders import bundled
from toolsearch_semantic.scores import LEXICAL
from toolsearch_semantic.text import TEXT_VERSION

WEATHER = {"name": "get_weather", "description": "Forecast for a city.", "namespace": "met"}
REFUND = {"name": "refund", "description": "Pay a customer back.", "parameters": {"properties": {"order_id": {}}}}
MAIL = {"name": "send_mail", "description": "Write to somebody by electronic mail."}

HIT_KEYS = {"name", "namespace", "score", "source", "cosine", "lexical", "words", "description"}


@pytest.fixture(autouse=True)
def width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([WEATHER, REFUND, MAIL]))
    return str(path)


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundled, "_PACKAGE", tmp_path / "nowhere" / "package")


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=given, prog_name="toolsearch")


def answer(*arguments: str, given: str | None = None) -> str:
    result = run(*arguments, given=given)
    assert (result.stderr, result.exit_code) == ("", 0)
    return result.stdout


def error(*arguments: str, given: str | None = None) -> str:
    """Check that it fails with one line, and give that line."""
    result = run(*arguments, given=given)
    assert result.exit_code == 2
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def shell(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | options.pop("env", {})
    command = [sys.executable, "-m", "toolsearch_semantic.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)


def test_words_are_one_query_and_hits_are_a_table(tools: str) -> None:
    lines = answer("search", "pay", "my", "customer", "back", "--tools", tools, "--mode", "lexical").splitlines()

    assert lines[0].split() == ["#", "score", "name", "why", "description"]
    assert lines[2].split()[0] == "1"
    assert lines[2].split()[2:] == ["refund", "pay,", "customer,", "back", "Pay", "a", "customer", "back."]
    assert 0.0 < float(lines[2].split()[1]) < 1.0
    assert lines[-1] == "1 of 3 tools, by lexical search."


def test_the_namespace_and_the_cosine_are_shown_where_there_are_some(tools: str) -> None:
    lines = answer("search", "will it rain in the city", "--tools", tools, "--mode", "semantic").splitlines()

    assert lines[0].split() == ["#", "score", "name", "namespace", "why", "description"]
    assert lines[2].split()[2:5] == ["get_weather", "met", "city;"]
    assert lines[2].split()[5] == "cosine"


def test_json_is_pure_and_has_these_keys(tools: str) -> None:
    found = json.loads(answer("search", "forecast", "--tools", tools, "--json"))

    assert found.keys() == {"query", "mode", "active_mode", "hits"}
    assert (found["query"], found["mode"], found["active_mode"]) == ("forecast", "hybrid", "hybrid")
    first = found["hits"][0]
    assert first.keys() == HIT_KEYS
    assert (first["name"], first["namespace"], first["source"]) == ("get_weather", "met", "hybrid")
    assert (first["words"], first["description"]) == (["forecast"], "Forecast for a city.")
    assert 0 < first["score"] <= 1
    assert -1 <= first["cosine"] <= 1
    assert 0 < first["lexical"] < 1


def test_what_did_not_run_is_null_in_json(tools: str) -> None:
    [hit] = json.loads(answer("search", "forecast", "--tools", tools, "--json", "--mode", "lexical"))["hits"]

    assert hit["cosine"] is None
    assert hit["score"] == pytest.approx(float(LEXICAL(np.zeros(1), np.array([hit["lexical"]]))[0]), abs=1e-6)


def test_a_name_is_found_by_itself(tools: str) -> None:
    found = json.loads(answer("search", "send mail", "--tools", tools, "--json"))["hits"][0]

    assert (found["name"], found["score"]) == ("send_mail", 1.0)
    assert " its name " in answer("search", "send mail", "--tools", tools)


def test_nothing_found_is_said_and_is_no_error(tools: str) -> None:
    assert answer("search", "zzz", "--tools", tools, "--mode", "lexical", "--min-score", "0.5") == (
        "No tool was found among 3 (lowest score: 0.5), for: zzz\n"
    )
    assert json.loads(answer("search", "zzz", "--tools", tools, "--mode", "lexical", "--json"))["hits"] == []


def test_a_blank_query_finds_nothing(tools: str) -> None:
    assert answer("search", " ", "--tools", tools).startswith("No tool was found among 3")


def test_top_k_bounds_the_hits(tools: str) -> None:
    assert (
        len(json.loads(answer("search", "customer city mail", "--tools", tools, "--json", "--top-k", "2"))["hits"]) == 2
    )


def test_tools_come_from_several_sources_and_from_standard_input(tools: str) -> None:
    line = json.dumps({"name": "translate", "description": "Into another language."})

    found = json.loads(
        answer("search", "select:translate,refund", "--tools", tools, "--tools", "-", "--json", given=line)
    )

    assert [hit["name"] for hit in found["hits"]] == ["translate", "refund"]


def test_files_without_tools_are_noted_on_standard_error(tools: str) -> None:
    folder = Path(tools).parent
    (folder / "queries.jsonl").write_text('{"query": "x"}\n')

    result = run("search", "forecast", "--tools", str(folder), "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["hits"][0]["name"] == "get_weather"
    assert result.stderr == f"note: passed over in '{folder}', without tools: {folder}/queries.jsonl\n"


def test_the_demo_needs_no_file() -> None:
    found = json.loads(answer("demo", "who is on call tonight", "--json"))

    assert found["hits"][0]["name"] == "get_on_call"
    assert found["hits"][0]["namespace"] == "monitoring"


def test_rankings_stand_side_by_side(tools: str) -> None:
    lines = answer("compare", "will it rain in the city", "--tools", tools).splitlines()

    assert lines[0].split() == ["#", "semantic", "lexical", "hybrid"]
    assert lines[2].split()[2::2] == ["get_weather"] * 3


def test_compared_rankings_are_those_of_the_modes() -> None:
    compared = json.loads(answer("compare", "give the customer their money back", "--demo", "--json"))

    assert list(compared) == ["query", "semantic", "lexical", "hybrid"]
    for mode in ("semantic", "lexical", "hybrid"):
        alone = json.loads(answer("demo", "give the customer their money back", "--mode", mode, "--json"))
        assert compared[mode] == alone["hits"]
        assert {hit["source"] for hit in compared[mode]} == {mode}


def test_an_index_finds_what_its_files_find(tools: str, tmp_path: Path) -> None:
    told = answer("index", "--tools", tools, "--out", str(tmp_path / "saved"))

    assert told.startswith("3 tools, hybrid index, ")
    assert told.endswith(f" s: {tmp_path / 'saved'}\n")
    by_index = answer("search", "pay back", "--index", str(tmp_path / "saved"), "--json")
    assert by_index == answer("search", "pay back", "--tools", tools, "--json")
    other = answer("search", "pay back", "--index", str(tmp_path / "saved"), "--mode", "lexical", "--json")
    assert other == answer("search", "pay back", "--tools", tools, "--mode", "lexical", "--json")
    compared = answer("compare", "pay back", "--index", str(tmp_path / "saved"), "--json")
    assert compared == answer("compare", "pay back", "--tools", tools, "--json")
    shown = answer("inspect", "refund", "--index", str(tmp_path / "saved"), "--json")
    assert json.loads(shown)["embedded"] == "refund. Pay a customer back. order id"


def test_a_lexical_index_is_searched_lexically(tools: str, tmp_path: Path) -> None:
    answer("index", "--tools", tools, "--out", str(tmp_path / "saved"), "--mode", "lexical")

    found = json.loads(answer("search", "pay back", "--index", str(tmp_path / "saved"), "--json"))

    assert (found["mode"], found["active_mode"]) == ("lexical", "lexical")


def test_a_large_catalogue_is_indexed_in_batches_whole(tmp_path: Path) -> None:
    records = [{"name": f"tool_{i}", "description": f"Does number {i}."} for i in range(700)]
    (tmp_path / "tools.json").write_text(json.dumps(records))

    told = answer("index", "--tools", str(tmp_path / "tools.json"), "--out", str(tmp_path / "saved"))

    assert told.startswith("700 tools")
    found = json.loads(answer("search", "tool_699", "--index", str(tmp_path / "saved"), "--json"))
    assert found["hits"][0]["name"] == "tool_699"


def test_a_damaged_index_is_refused(tools: str, tmp_path: Path) -> None:
    answer("index", "--tools", tools, "--out", str(tmp_path / "saved"))
    for file in (tmp_path / "saved").glob("tools-*"):
        file.write_text("")

    assert "is damaged" in error("search", "x", "--index", str(tmp_path / "saved"))


def test_a_folder_of_something_else_is_not_overwritten(tools: str) -> None:
    folder = str(Path(tools).parent)

    assert error("index", "--tools", tools, "--out", folder).startswith(f"'{folder}' holds something else")
    assert Path(tools).exists()


def test_what_is_indexed_of_a_tool_is_shown() -> None:
    shown = dict(line.split(":", 1) for line in answer("inspect", "get_on_call").splitlines() if line[:1].isalpha())

    assert shown["name"].strip() == "get on call"
    assert shown["namespace"].strip() == "monitoring"
    assert shown["embedded"].strip().startswith("monitoring get on call. Who is on call")
    assert shown["terms"].split()[:4] == ["get", "on", "call", "monitor"]
    assert shown["text version"].strip() == str(TEXT_VERSION)
    assert shown["cut"].strip() == "-"
    assert '"name": "get_on_call"' in answer("inspect", "get_on_call", "--demo")


def test_what_was_cut_is_shown(tmp_path: Path) -> None:
    (tmp_path / "long.json").write_text(json.dumps([{"name": "long", "description": "word " * 200_000}]))

    assert json.loads(answer("inspect", "long", "--tools", str(tmp_path / "long.json"), "--json"))["cut"] == [
        "description"
    ]


def test_a_wrong_name_gives_near_ones(tools: str) -> None:
    assert error("inspect", "get_wether", "--tools", tools) == (
        "There is no tool 'get_wether' among the 3. Near it are 'get_weather'."
    )
    assert error("inspect", "MAIL", "--tools", tools).endswith("Near it are 'send_mail'.")
    assert error("inspect", "qqq", "--tools", tools).endswith("Search for it by what it does.")


def test_a_fallback_is_told_in_one_line(no_model: None, tools: str) -> None:
    result = run("search", "forecast", "--tools", tools, "--json")

    assert result.exit_code == 0
    [line] = result.stderr.splitlines()
    assert line.startswith("warning: Searching by keyword only, because the encoder failed: The bundled model")
    found = json.loads(result.stdout)
    assert (found["mode"], found["active_mode"], found["hits"][0]["source"]) == ("hybrid", "lexical", "lexical")


def test_a_comparison_that_fell_back_says_so_in_its_columns(no_model: None, tools: str) -> None:
    result = run("compare", "forecast", "--tools", tools)

    assert len(result.stderr.splitlines()) == 1
    assert result.stdout.count("(fell back)") == 2


def test_an_index_is_not_made_without_its_model(no_model: None, tools: str, tmp_path: Path) -> None:
    assert error("index", "--tools", tools, "--out", str(tmp_path / "saved")).startswith("The bundled model")
    assert not (tmp_path / "saved").exists()


def test_a_model_that_was_asked_for_must_be_there(tools: str) -> None:
    assert error("search", "x", "--tools", tools, "--model", "no/such").startswith("No model at 'no/such'")
    assert "no part in --mode lexical" in error("search", "x", "--tools", tools, "--model", "m", "--mode", "lexical")


def test_a_model_in_a_folder_is_used(tools: str) -> None:
    def asked(*model: str) -> Any:
        return json.loads(answer("search", "forecast", "--tools", tools, *model, "--json"))

    folder = str(bundled.bundled_folder("toolsearch-static"))
    assert asked("--model", folder) == asked("--model", "static")
    assert asked("--model", "mini") == asked()
    assert asked()["hits"][0]["cosine"] != asked("--model", "static")["hits"][0]["cosine"]


@pytest.fixture
def labelled(tmp_path: Path) -> tuple[str, str]:
    """A catalogue whose tools are told apart by a number alone, and requests for them."""
    kinds = ["emails", "refunds", "weather", "translation", "bugs"]
    tools = [{"name": f"unit_{i}", "description": f"Takes care of {kinds[i % 5]}, unit {i}"} for i in range(60)]
    asked = [
        {"query": f"somebody who knows about {kinds[(i + 1) % 5]}: unit {i}", "relevant": [f"unit_{i}"]}
        for i in range(60)
    ]
    paths = []
    for name, rows in (("tools", tools), ("requests", asked)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(str(path))
    return paths[0], paths[1]


def test_scores_are_tuned_reported_and_used(labelled: tuple[str, str], tmp_path: Path) -> None:
    tools, requests = labelled
    out = str(tmp_path / "tuning.json")
    asked = ["tune", "--tools", tools, "--queries", requests, "--out", out]
    report = json.loads(answer(*asked, "--json"))
    hybrid = report["modes"]["hybrid"]
    assert hybrid["taken"]
    assert hybrid["after"]["ndcg"] > hybrid["before"]["ndcg"]
    assert hybrid["after"]["calibration_error"] < hybrid["before"]["calibration_error"]
    table = answer(*asked)
    assert f"{hybrid['before']['ndcg']:.3f} > {hybrid['after']['ndcg']:.3f}" in table
    assert "five-fold cross-validation over 60 requests" in table
    query = "somebody who knows about refunds: unit 10"
    plain, tuned = (
        json.loads(answer("search", query, "--tools", tools, "--json", *more)) for more in ([], ["--tuning", out])
    )
    assert tuned["hits"][0]["name"] == "unit_10"
    assert tuned["hits"][0]["score"] != plain["hits"][0]["score"]


def test_requests_without_a_right_tool_are_counted_where_scores_are_tuned(
    labelled: tuple[str, str], tmp_path: Path
) -> None:
    tools, requests = labelled
    more = tmp_path / "more.jsonl"
    more.write_text(Path(requests).read_text() + '{"query": "hire a vet", "relevant": []}\n' * 3)
    out = answer("tune", "--tools", tools, "--queries", str(more), "--out", str(tmp_path / "t.json"))
    assert " requests. 3 without text or a right tool took no part. Wrote " in " ".join(out.split())


def test_too_few_requests_are_not_tuned_to(labelled: tuple[str, str], tmp_path: Path) -> None:
    tools, requests = labelled
    few = tmp_path / "few.jsonl"
    few.write_text("".join(Path(requests).read_text().splitlines(keepends=True)[:19]))
    message = error("tune", "--tools", tools, "--queries", str(few), "--out", str(tmp_path / "t.json"))
    assert message.startswith("19 requests have a right tool; tuning needs at least 20")
    assert not (tmp_path / "t.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["search", "x"],
            "No tools were given: use --tools, --mcp or --mcp-url. To try it without any: toolsearch demo",
        ),
        (["compare", "x"], "No tools were given: use --tools, --mcp or --mcp-url. To try it without any, give --demo."),
        (["index", "--out", "x"], "No tools were given"),
        (["index", "--tools", "x"], "Missing option '--out'. See: toolsearch index --help"),
        (["search"], "Missing argument 'QUERY'. See: toolsearch search --help"),
        (["inspect"], "Missing argument 'NAME'."),
        (["serch", "x"], "No such command 'serch'. Did you mean 'search'? See: toolsearch --help"),
        (["demo", "x", "--tols", "y"], "No such option: --tols"),
        (["demo", "x", "--mode", "psychic"], "Invalid value for '--mode'"),
        (["demo", "x", "--top-k", "NaN"], "Invalid value for '--top-k'"),
        (["demo", "x", "--top-k", "0"], "top_k must be at least 1, not 0."),
        (["demo", "x", "--min-score", "nan"], "min_score must be in 0..1, not nan."),
        (["demo", "x", "--min-score", "2"], "min_score must be in 0..1, not 2.0."),
        (["search", "x", "--tools", "no.json"], "'no.json' is not there."),
        (["search", "x", "--tools", "-", "--tools", "-"], "Standard input can be read only once"),
        (["search", "x", "--tools", "a", "--index", "b"], "Give --tools, --mcp and --mcp-url together, or --index"),
        (["compare", "x", "--demo", "--index", "b"], "Give --tools, --mcp and --mcp-url together, or --index"),
        (["search", "x", "--index", "no/index"], "No saved index in 'no/index'"),
        (["demo", "x", "--tuning", "no.json"], "The tuning 'no.json' cannot be read"),
        (["tune", "--tools", "x"], "Missing option '--out'. See: toolsearch tune --help"),
        (["search", "x", "--mcp", "no-such-server"], "MCP server 'no-such-server' cannot be started"),
        (["search", "x", "--mcp", "run 'it"], "The MCP server's command cannot be split: No closing quotation"),
        (["search", "x", "--mcp-url", "localhost"], "The MCP server has no http or https URL."),
        (["search", "x", "--mcp", "y", "--mcp-timeout", "0"], "timeout must be a positive number of seconds, not 0.0."),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(arguments: list[str], message: str) -> None:
    assert error(*arguments).startswith(message)


def test_a_message_of_several_lines_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")

    assert "is not the manifest of a saved index" in error("search", "x", "--index", str(tmp_path))


def test_a_deeply_nested_schema_is_no_traceback(tmp_path: Path) -> None:
    deep = '{"name": "deep", "parameters": ' + '{"properties": {"a": ' * 450 + "{}" + "}}" * 450 + "}"
    (tmp_path / "deep.json").write_text(deep)

    for command in (["search", "deep"], ["inspect", "deep"], ["index", "--out", str(tmp_path / "saved")]):
        assert run(*command, "--tools", str(tmp_path / "deep.json")).exit_code in {0, 2}


EVIL = {
    "name": "a[bold]b[/bold]\x1b[31m",
    "description": "x [link=http://evil]y[/link] :smile:\n\u202egnp.exe \ud800 \x07\r\x9b",
    "namespace": "[red]\u200b",
}


def test_text_of_tools_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    (tmp_path / "evil.json").write_text(json.dumps([EVIL]))

    table = answer("search", "y", "--tools", str(tmp_path / "evil.json"))
    side_by_side = answer("compare", "y", "--tools", str(tmp_path / "evil.json"))
    sheet = answer("inspect", EVIL["name"], "--tools", str(tmp_path / "evil.json"))

    assert r"a[bold]b[/bold]\x1b[31m" in table
    assert r"[red]\u200b" in table
    assert r"x [link=http://evil]y[/link]" in table
    assert r"a[bold]b[/bold]\x1b[" in side_by_side
    assert r"\u202e" in sheet
    for text in (table, side_by_side, sheet):
        assert {c for c in text if not c.isprintable()} == {"\n"}


def test_errors_that_quote_tools_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "evil.json").write_text(json.dumps([EVIL]))

    message = error("inspect", "a\x1b[31mbold", "--tools", str(tmp_path / "evil.json"))

    assert "\x1b" not in message
    assert message.isprintable()


@pytest.mark.parametrize("columns", ["40", "60", "72", "100", "200", "wide", "5"])
def test_the_table_keeps_to_its_width(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    width = {"wide": 100, "5": 40}.get(columns) or int(columns)

    lines = answer("demo", "give the customer their money back").splitlines()

    assert max(map(len, lines)) <= width
    assert ("description" in lines[0]) == (width >= 100)
    assert ("why" in lines[0]) == (width >= 60)
    assert len([line for line in lines if line[:1] in set("12345") and line[1:2] == " "]) == 6


def test_without_a_command_the_help_is_shown() -> None:
    assert answer() == answer("--help")
    assert 'toolsearch demo "give the customer' in answer("--help")


@pytest.mark.parametrize("command", ["search", "demo", "compare", "index", "inspect"])
def test_each_command_has_help_with_an_example(command: str) -> None:
    assert f" toolsearch {command} " in answer(command, "--help").split("Usage", 1)[1].split("\n", 1)[1]


def test_the_process_prints_json_and_nothing_else() -> None:
    done = shell("demo", "tell", "the", "team", "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["query"] == "tell the team"


def test_the_process_ends_with_status_2_and_one_line() -> None:
    done = shell("search", "x", "--tools", "no.json")

    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "error: 'no.json' is not there. Give the path of a file or a folder, or '-' for standard input.\n"
    )


def test_a_terminal_of_few_characters_gets_escapes(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"name": "wetter", "description": "Für Köln 天気"}]))

    done = shell("search", "wetter", "--tools", str(tmp_path / "x.json"), env={"PYTHONIOENCODING": "ascii"})

    assert (done.returncode, done.stderr) == (0, "")
    assert r"F\xfcr K\xf6ln \u5929" in done.stdout


def test_a_pipe_that_closes_early_is_quiet() -> None:
    command = [sys.executable, "-m", "toolsearch_semantic.cli", "demo", "the build", "--top-k", "200", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.close()

    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 1
    process.stderr.close()


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[tuple[str, Callable[[], int]]]:
    """A server that does not answer, and what tells its process id once it runs."""
    note = tmp_path / "pid"
    server = tmp_path / "server.py"
    server.write_text(f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(120)\n")

    def pid() -> int:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if note.exists() and note.read_text():
                return int(note.read_text())
            time.sleep(0.05)
        raise AssertionError("the server did not start")

    yield f"'{sys.executable}' '{server}'", pid


def test_an_interrupt_ends_with_130_and_stops_the_servers(hanging: tuple[str, Callable[[], int]]) -> None:
    server, pid = hanging
    # Where the tests run in the background, a shell has SIGINT ignored, and children inherit that.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from toolsearch_semantic.cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, "search", "x", "--mcp", server]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        started = pid()
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=30)

    assert (process.returncode, output) == (130, (b"", b""))
    with pytest.raises(ProcessLookupError):
        os.kill(started, 0)


def test_a_server_that_does_not_answer_is_an_error_in_time(hanging: tuple[str, Callable[[], int]]) -> None:
    server, pid = hanging

    assert "did not list its tools within 1 seconds" in error("search", "x", "--mcp", server, "--mcp-timeout", "1")
    with pytest.raises(ProcessLookupError):
        os.kill(pid(), 0)


def test_servers_of_a_configuration_are_searched_together_with_files(tools: str, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "from mcp.server import MCPServer\nserver = MCPServer('clock')\n\n\n@server.tool()\n"
        "def now(zone: str) -> str:\n    'What time it is.'\n    return zone\n\n\nserver.run()\n"
    )
    config = {"mcpServers": {"time": {"command": sys.executable, "args": [str(server)], "env": {"K": "v"}}}}
    (tmp_path / "mcp.json").write_text(json.dumps(config))

    found = json.loads(
        answer("search", "what time is it", "--tools", str(tmp_path / "mcp.json"), "--tools", tools, "--json")
    )

    assert (found["hits"][0]["name"], found["hits"][0]["namespace"]) == ("now", "time")


def test_nothing_heavy_is_imported_that_is_not_used() -> None:
    code = (
        "import sys; from toolsearch_semantic.cli.main import app\n"
        "try: app(['demo', 'the build', '--json'])\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert loaded & {"mcp", "torch", "sentence_transformers", "transformers", "anyio", "asyncio", "httpx2"} == set()
