from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolsearch_semantic.errors import (
    InvalidOptionError,
    InvalidToolError,
    ToolNameConflictError,
    ToolSearchError,
    UnknownToolShapeError,
)
from toolsearch_semantic.formats.names import provider_name, provider_names, tools_by_written_name
from toolsearch_semantic.tool import Tool

ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
SAFE_NAMES = st.text("abcXYZ019_-", min_size=1, max_size=64)
ANY_NAMES = st.text(min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("get_weather", "get_weather"),
        ("Get-Weather2", "Get-Weather2"),
        ("github.create_issue", "github_create_issue"),
        ("files/read file", "files_read_file"),
        ("a::b", "a__b"),
        ("wetter_für_heute", "wetter_fur_heute_aeba6aec"),
        ("天気", "tool_bc79d84d"),
        ("c++", "c_cedb1bac"),
        ("x" * 65, "x" * 55 + "_" + "9537c5fd"),
    ],
)
def test_a_name_is_written_the_same_way_each_time(name, written):
    assert provider_name(name, max_length=64) == written


def test_dots_stay_where_the_provider_allows_them():
    assert provider_name("github.create issue", max_length=128, allow_dots=True) == "github.create_issue"
    assert provider_name("a.b", max_length=128, allow_dots=True) == "a.b"


def test_a_name_is_the_same_in_a_process_with_another_hash_seed():
    code = "from toolsearch_semantic.formats.names import provider_name; print(provider_name('é' * 90, max_length=64))"
    here = provider_name("é" * 90, max_length=64)
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == here


def test_an_empty_name_and_a_maximum_without_room_are_refused():
    with pytest.raises(InvalidToolError, match="non-empty string, not ''"):
        provider_name("", max_length=64)
    with pytest.raises(InvalidToolError, match="non-empty string, not 3"):
        provider_name(3, max_length=64)
    with pytest.raises(InvalidOptionError, match="16 or more, not 15"):
        provider_name("a", max_length=15)


def test_names_map_what_was_written_to_the_tool():
    assert provider_names(["a.b", "c"], max_length=64) == {"a_b": "a.b", "c": "c"}


def test_two_names_that_become_one_are_both_named():
    with pytest.raises(ToolNameConflictError, match=r"'a\.b' and 'a/b' would both be written as 'a_b'"):
        provider_names(["a.b", "a/b"], max_length=64)


def test_one_name_twice_is_a_conflict():
    with pytest.raises(ToolNameConflictError, match="Two tools are named 'a'"):
        provider_names(["a", "a"], max_length=64)


def test_long_names_that_differ_only_at_the_end_stay_apart():
    names = ["x" * 100 + str(number) for number in range(200)]
    assert list(provider_names(names, max_length=64).values()) == names


def test_only_tools_are_written():
    with pytest.raises(UnknownToolShapeError, match=r"tools\[1\] must be a Tool to be written, not dict"):
        tools_by_written_name([Tool("a"), {"name": "b"}], max_length=64)


@given(SAFE_NAMES)
def test_a_safe_name_is_itself(name):
    assert provider_name(name, max_length=64) == name


@given(ANY_NAMES, st.integers(16, 128))
def test_every_name_is_written_within_the_rule_and_once_and_for_all(name, max_length):
    written = provider_name(name, max_length=max_length)
    assert ALLOWED.fullmatch(written)
    assert len(written) <= max_length
    assert provider_name(written, max_length=max_length) == written


@given(st.lists(ANY_NAMES, unique=True, max_size=20))
def test_names_can_be_read_back_or_are_refused(names):
    try:
        written = provider_names(names, max_length=64)
    except ToolSearchError:
        return
    assert list(written.values()) == names
    assert [provider_name(name, max_length=64) for name in names] == list(written)
