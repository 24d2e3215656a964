"""The table in the tests' README: each behaviour has its test, and each test named is there."""

from __future__ import annotations

import ast
import hashlib
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LINES = TESTS.parent.parent / "shared" / "CONFORMANCE.md"
ROW = re.compile(r"\| (?P<section>[^|]+) \| `(?P<digest>[0-9a-f]{8})` \| (?P<about>[^|]+) \| (?P<ids>[^|]+) \|")


def rows() -> list[tuple[str, str, list[str]]]:
    """Section, digest and test ids of each row."""
    table = (TESTS / "README.md").read_text(encoding="utf-8").split("|---|---|---|---|\n")[1]
    found = [ROW.fullmatch(line) for line in table.splitlines()]
    assert all(found), "a row that cannot be read"
    return [(row["section"], row["digest"], re.findall(r"`([^`]+)`", row["ids"])) for row in found if row]


@cache
def names_in(path: str) -> set[str]:
    """The tests of a file, those of a class after its name."""
    found = set()
    for node in ast.parse((TESTS / path).read_text(encoding="utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {prefix + each.name for each in inner if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}


def test_every_row_names_tests_and_each_of_them_exists() -> None:
    assert len(rows()) > 50
    for section, digest, ids in rows():
        assert ids, f"{section} {digest} names no test"
        for test in ids:
            path, _, name = test.partition("::")
            assert (TESTS / path).is_file(), f"{section} {digest}: no file {path}"
            assert name in names_in(path), f"{section} {digest}: no test {test}"


@pytest.mark.skipif(not LINES.is_file(), reason="CONFORMANCE.md is kept outside the repository")
def test_every_line_has_a_row_and_every_row_a_line() -> None:
    section, wanted = "", []
    for line in LINES.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").strip()
        elif line.startswith("- "):
            wanted.append((section, hashlib.sha256(line[2:].strip().encode()).hexdigest()[:8], line))
    there = [(section, digest) for section, digest, _ in rows()]
    assert len(there) == len(set(there))
    assert [line for section, digest, line in wanted if (section, digest) not in there] == []
    assert set(there) - {(section, digest) for section, digest, _ in wanted} == set()
