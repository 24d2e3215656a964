import json
import re
from collections import Counter
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolsearch_semantic.tool import Tool

FIELDS = {"namespace", "name", "description", "parameters"}
LINES = resources.files("toolsearch_semantic.demo").joinpath("tools.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LINES]


@pytest.mark.parametrize("number", range(1, len(LINES) + 1))
def test_every_line_is_a_json_object_with_the_four_fields(number: int) -> None:
    entry = json.loads(LINES[number - 1])

    assert isinstance(entry, dict)
    assert entry.keys() == FIELDS


def test_there_are_about_two_hundred_tools(entries: list[dict[str, Any]]) -> None:
    assert 190 <= len(entries) <= 210


def test_there_are_twenty_services_of_eight_to_twelve_tools(entries: list[dict[str, Any]]) -> None:
    sizes = Counter(entry["namespace"] for entry in entries)

    assert len(sizes) == 20
    assert {service: size for service, size in sizes.items() if not 8 <= size <= 12} == {}


def test_no_two_tools_share_a_name(entries: list[dict[str, Any]]) -> None:
    names = Counter(entry["name"] for entry in entries)

    assert [name for name, count in names.items() if count > 1] == []


def test_every_name_is_one_that_a_provider_could_carry(entries: list[dict[str, Any]]) -> None:
    assert [entry["name"] for entry in entries if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", entry["name"])] == []


def test_every_description_says_something_and_stays_short(entries: list[dict[str, Any]]) -> None:
    wrong = [entry["name"] for entry in entries if not 1 <= len(entry["description"].strip()) <= 400]

    assert wrong == []


def test_no_two_tools_share_a_description(entries: list[dict[str, Any]]) -> None:
    descriptions = Counter(entry["description"].strip().casefold() for entry in entries)

    assert [description for description, count in descriptions.items() if count > 1] == []


def test_every_parameter_schema_is_valid_json_schema(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        Draft202012Validator.check_schema(entry["parameters"])


def test_every_required_parameter_is_declared(entries: list[dict[str, Any]]) -> None:
    undeclared = {
        entry["name"]: missing
        for entry in entries
        if (missing := set(entry["parameters"].get("required", ())) - entry["parameters"]["properties"].keys())
    }

    assert undeclared == {}


def test_every_entry_makes_a_tool(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        Tool(entry["name"], entry["description"], entry["parameters"], namespace=entry["namespace"])
