from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from toolsearch_semantic.errors import InvalidToolError, UnknownToolShapeError
from toolsearch_semantic.formats.openai_chat import to_openai_chat
from toolsearch_semantic.formats.read import as_tool, as_tools

if TYPE_CHECKING:
    from decimal import Decimal


class Unit(Enum):
    CELSIUS = "c"
    KELVIN = "k"


class Place(BaseModel):
    city: str


class Opaque:
    pass


def forecast(place: Place, day: date, unit: Unit = Unit.CELSIUS, tags: set[str] | None = None) -> str:
    """Forecast the weather.

    Works for ten days.

    Args:
        place: Where.
        day: When.

    Returns:
        A sentence.
    """
    return f"{place.city} {day:%d.%m.} {unit.name} {sorted(tags or ())}"


def properties(tool):
    return tool.input_schema["properties"]


def test_a_function_is_read_and_run_with_converted_arguments():
    tool = as_tool(forecast)
    assert (tool.name, tool.description) == ("forecast", "Forecast the weather.\n\nWorks for ten days.")
    assert tool.input_schema == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place", "description": "Where."},
            "day": {"type": "string", "format": "date", "description": "When."},
            "unit": {"$ref": "#/$defs/Unit", "default": "c"},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}, "uniqueItems": True}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["place", "day"],
        "$defs": {
            "Place": {
                "type": "object",
                "title": "Place",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
            "Unit": {"enum": ["c", "k"], "title": "Unit", "type": "string"},
        },
        "additionalProperties": False,
    }
    assert tool.execute(place={"city": "Rome"}, day="2024-02-01") == "Rome 01.02. CELSIUS []"
    assert tool.execute(place={"city": "Rome"}, day="2024-02-01", unit="k", tags=["b", "a", "a"]) == (
        "Rome 01.02. KELVIN ['a', 'b']"
    )
    assert tool.source is forecast


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(ValidationError, match="for forecast") as caught:
        as_tool(forecast).execute(place={"city": "Rome"}, day="soon", more=1)
    assert [error["loc"] for error in caught.value.errors()] == [("day",), ("more",)]


def test_a_description_in_the_annotation_goes_before_the_docstring():
    def f(
        a: Annotated[int, Field(description="By field.", ge=1)],
        b: Annotated[int, "By string."],
        c: int = Field(description="By default.", default=3),
    ) -> list[int]:
        """Do it.

        Args:
            a: By docstring.
            b: By docstring.
            c: By docstring.
        """
        return [a, b, c]

    tool = as_tool(f)
    assert {name: part["description"] for name, part in properties(tool).items()} == {
        "a": "By field.",
        "b": "By string.",
        "c": "By default.",
    }
    assert tool.input_schema["required"] == ["a", "b"]
    assert tool.execute(a=1, b="2") == [1, 2, 3]


def test_a_function_without_docstring_and_parameters_is_a_tool():
    def now():
        return 5

    tool = as_tool(now)
    assert (tool.name, tool.description) == ("now", "")
    assert tool.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert tool.execute() == 5


def test_an_async_function_is_awaited():
    async def double(a: int) -> int:
        return a * 2

    tool = as_tool(double)
    assert inspect.iscoroutinefunction(tool.execute.__call__)
    assert asyncio.run(tool.execute(a="4")) == 8


def test_a_bound_method_leaves_out_self():
    class Counter:
        def __init__(self):
            self.count = 0

        def add(self, by: int) -> int:
            """Count on."""
            self.count += by
            return self.count

    counter = Counter()
    tool = as_tool(counter.add)
    assert (tool.name, tool.description, list(properties(tool))) == ("add", "Count on.", ["by"])
    assert (tool.execute(by=2), tool.execute(by="3")) == (2, 5)
    assert as_tools([counter.add, counter.add]) == [tool]


def test_a_partial_leaves_out_what_is_bound():
    def send(client: Opaque, text: str, to: str = "all") -> tuple[str, str, str]:
        """Send it.

        Args:
            text: What.
        """
        return type(client).__name__, text, to

    by_keyword = as_tool(functools.partial(send, client=Opaque()))
    by_position = as_tool(functools.partial(functools.partial(send, Opaque()), to="me"))
    assert (by_keyword.name, by_keyword.description) == ("send", "Send it.")
    assert list(properties(by_keyword)) == ["text", "to"]
    assert list(properties(by_position)) == ["text"]
    assert properties(by_position)["text"] == {"type": "string", "description": "What."}
    assert by_keyword.execute(text="hi") == ("Opaque", "hi", "all")
    assert by_position.execute(text="hi") == ("Opaque", "hi", "me")


def test_a_callable_instance_is_named_by_its_class():
    class Greeter:
        """Greets."""

        def __call__(self, name: str) -> str:
            return f"hi {name}"

    class AsyncGreeter:
        async def __call__(self, name: str) -> str:
            """Greet later."""
            return f"hi {name}"

    tool, later = as_tools([Greeter(), AsyncGreeter()])
    assert (tool.name, tool.description, tool.execute(name="a")) == ("Greeter", "Greets.", "hi a")
    assert (later.name, later.description) == ("AsyncGreeter", "Greet later.")
    assert asyncio.run(later.execute(name="b")) == "hi b"


def test_a_decorated_function_keeps_its_signature_and_runs_its_decorator():
    def loud(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs).upper()

        return wrapper

    @loud
    def greet(name: str) -> str:
        """Greet."""
        return f"hi {name}"

    tool = as_tool(greet)
    assert list(properties(tool)) == ["name"]
    assert tool.execute(name="a") == "HI A"


def test_a_cached_function_is_a_tool():
    @functools.lru_cache
    def double(a: int) -> int:
        """Double."""
        return a * 2

    tool = as_tool(double)
    assert (tool.name, tool.description, tool.execute(a="2")) == ("double", "Double.", 4)


def test_positional_only_parameters_are_passed_by_position():
    def f(a: int, b: int = 10, /, c: int = 100) -> tuple[int, int, int]:
        return a, b, c

    tool = as_tool(f)
    assert tool.execute(a=1) == (1, 10, 100)
    assert tool.execute(a=1, c=3) == (1, 10, 3)
    assert tool.execute(b=2, a="1") == (1, 2, 100)


def test_an_earlier_positional_only_default_fills_the_gap():
    def f(a: int = 1, b: int = 2, /) -> tuple[int, int]:
        return a, b

    assert as_tool(f).execute(b=5) == (1, 5)


def test_variadic_parameters_are_left_out_or_passed_on():
    def f(a: int, *args: int, **kwargs: Any) -> tuple[Any, ...]:
        return a, args, kwargs

    tool = as_tool(f)
    assert list(properties(tool)) == ["a"]
    assert tool.input_schema["additionalProperties"] is True
    assert tool.execute(a="1", arg_0=2, b=[3]) == (1, (), {"arg_0": 2, "b": [3]})


def test_an_unannotated_parameter_takes_anything():
    def f(a, b=None):
        """Do it.

        Args:
            a: Anything.
        """
        return a, b

    tool = as_tool(f)
    assert properties(tool) == {"a": {"description": "Anything."}, "b": {"default": None}}
    assert tool.execute(a={"x": 1}) == ({"x": 1}, None)


def test_parameters_may_have_names_that_pydantic_keeps_for_itself():
    def f(self: int, schema: int, model_config: int, _private: int, json: int) -> list[int]:
        return [self, schema, model_config, _private, json]

    tool = as_tool(f)
    assert list(properties(tool)) == ["self", "schema", "model_config", "_private", "json"]
    assert tool.execute(self="1", schema=2, model_config=3, _private=4, json=5) == [1, 2, 3, 4, 5]


def test_an_alias_in_a_field_is_what_the_model_calls_it():
    def f(from_: Annotated[str, Field(alias="from")]) -> str:
        return from_

    tool = as_tool(f)
    assert list(properties(tool)) == ["from"]
    assert tool.execute(**{"from": "a"}) == "a"


def test_a_default_that_json_cannot_hold_is_left_out_of_the_schema():
    opaque = Opaque()

    def f(limit: float = float("inf"), other: Any = opaque) -> tuple[float, object]:
        return limit, other

    tool = as_tool(f)
    assert properties(tool) == {"limit": {"type": "number"}, "other": {}}
    assert tool.execute() == (float("inf"), opaque)
    assert to_openai_chat([tool])[0]["function"]["parameters"]["properties"] == properties(tool)


def test_a_mutable_default_is_the_functions_own():
    shared: list[int] = []

    def f(items: list[int] = shared) -> list[int]:
        return items

    assert as_tool(f).execute() is shared


def test_an_annotation_that_cannot_be_resolved_names_the_parameter():
    def f(a: int, price: Decimal) -> int:
        return a

    with pytest.raises(InvalidToolError, match=r"tools\[0\]: The annotation 'Decimal' of parameter 'price' of the fun"):
        as_tools([f])


def test_a_return_annotation_that_cannot_be_resolved_does_not_matter():
    def f(a: int) -> Decimal:
        return a

    assert as_tool(f).execute(a=1) == 1


@pytest.mark.parametrize("kind", [Opaque, Callable[[], int]])
def test_a_type_without_a_schema_names_the_parameter(kind):
    def f(a: int, odd) -> int:
        return a

    f.__annotations__["odd"] = kind
    with pytest.raises(InvalidToolError, match=r"tools\['x'\]: The parameter 'odd' of the function 'x' has a type"):
        as_tools({"x": f})


def test_a_lambda_is_named_by_its_key_only():
    tool = as_tools({"double": lambda a: a * 2})[0]
    assert (tool.name, tool.execute(a=2)) == ("double", 4)
    with pytest.raises(InvalidToolError, match=r"tools\[0\]: A lambda has no name"):
        as_tools([lambda a: a])


def test_a_callable_without_a_signature_is_an_error():
    with pytest.raises(InvalidToolError, match=r"tools\[0\]: The callable 'iter' has no signature"):
        as_tools([iter])


def test_a_built_in_with_a_signature_is_a_tool():
    assert as_tool(len).execute(obj=[1, 2]) == 2


def test_a_class_is_no_tool():
    @dataclass
    class Point:
        x: int

    with pytest.raises(UnknownToolShapeError, match=r"tools\[0\] .* A class is no tool"):
        as_tools([Point])
