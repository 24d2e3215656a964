"""The README's examples run, and print what their comments say."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(python|python no-run|sh)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
PYTHON = [code for kind, code in BLOCKS if kind == "python"]
SHELL = [line for kind, code in BLOCKS if kind == "sh" for line in code.splitlines()]


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_a_python_example_prints_what_its_comments_say(code: str, tmp_path: Path) -> None:
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == expected


def test_there_are_examples_and_two_commands_to_set_up() -> None:
    assert len(PYTHON) >= 3
    assert sum(line.startswith("python3 -m venv") for line in SHELL) == 2


def test_every_option_of_a_shell_example_exists() -> None:
    commands = [part for line in SHELL for part in re.split(r" && ", line) if part.startswith("toolsearch ")]
    assert len(commands) >= 5
    for command in commands:
        name, *rest = shlex.split(command)[1:]
        shown = subprocess.run(
            [sys.executable, "-m", "toolsearch_semantic.cli", name, "--help"],
            capture_output=True, text=True, check=True, env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
        ).stdout  # fmt: skip
        for option in (word for word in rest if word.startswith("--")):
            assert option in shown, f"{command}: no {option}"


def test_the_main_command_finds_what_the_readme_says() -> None:
    [command] = [line for line in SHELL if "toolsearch demo" in line]
    query = shlex.split(command)[-1]
    done = subprocess.run(
        [sys.executable, "-m", "toolsearch_semantic.cli", "demo", query, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert '"refund_payment"' in done.stdout.split('"description"', 1)[0]
