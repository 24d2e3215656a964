"""Checking the arguments that a model wrote against a tool's input schema."""

from __future__ import annotations

import copy
import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from toolsearch_semantic.meta_tools import printable, shown_name
from toolsearch_semantic.tool import Tool

__all__ = ["ArgumentsError", "read_arguments"]

logger = logging.getLogger(__name__)

_MOST_COMPLAINTS = 5
_LONGEST_COMPLAINT = 300
# With these at its root, a schema's own list of properties need not be all that it allows.
_OPEN_ENDED = ("additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "$ref")


_WITH_PATTERNS = ("pattern", "patternProperties", "additionalProperties", "unevaluatedProperties", "multipleOf")


class ArgumentsError(Exception):
    """The arguments do not fit; the message is for the model."""


def read_arguments(tool: Tool, arguments: object, *, null_is_absent: bool = False) -> dict[str, Any]:
    """Read arguments as a model's call brings them: an object, JSON text of one, or None for none.

    An argument that the schema does not name is refused, unless the schema says more about others than nothing.

    Args:
        tool: What is called.
        arguments: What the model wrote.
        null_is_absent: Leave out an optional argument that is null, as some models write what they do not give.

    Raises:
        ArgumentsError: They are no object, or break the schema; says which argument and what was expected.
    """
    if isinstance(arguments, str | bytes | bytearray):
        try:
            arguments = json.loads(arguments, parse_constant=_refuse, parse_float=_finite) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise _wrong(tool, f"The arguments for {shown_name(tool.name)} are not valid JSON: {error}") from error
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
        raise _wrong(tool, f"The arguments for {shown_name(tool.name)} must be an object, not {_shown(arguments)}")
    if null_is_absent:
        required = tool.input_schema.get("required", ())
        arguments = {name: value for name, value in arguments.items() if value is not None or name in required}
    complaints = [*_unknown(tool, arguments), *_broken(tool, arguments)]
    if complaints:
        raise _wrong(tool, f"Wrong arguments for {shown_name(tool.name)}: {'; '.join(complaints)}")
    try:
        return copy.deepcopy(dict(arguments))  # a tool may change what it is given, and not the host's messages
    except Exception:  # of a host's own objects some cannot be copied
        return dict(arguments)


def _unknown(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    properties = tool.input_schema.get("properties")
    if not isinstance(properties, Mapping) or any(key in tool.input_schema for key in _OPEN_ENDED):
        return []
    return [_cut(f"there is no argument {name!r}") for name in arguments if name not in properties][:_MOST_COMPLAINTS]


def _broken(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    complaints: list[str] = []
    try:
        validator = _validator(json.dumps(tool.input_schema, default=dict))
        for error in validator.iter_errors(dict(arguments)):
            where, what = _reason(error)
            complaints.append(_cut(f"{where}: {what}" if where else what))
            if len(complaints) == _MOST_COMPLAINTS:
                break
    except RecursionError:
        # What the model wrote was not checked to its end, whoever's recursion it is: nothing unchecked is run.
        complaints.append("the arguments are nested too deeply to be checked")
    except OverflowError:
        complaints.append("a number is too large")
    except Exception as error:
        # What the schema's author got wrong is not the model's fault: the executor decides on the rest.
        logger.warning("The input schema of tool %r cannot be checked against: %s", tool.name, error)
    return complaints


def _reason(error: Any) -> tuple[str, str]:
    """Say where an argument is wrong, and what was expected; of several branches, what the nearest one did."""
    from jsonschema.exceptions import best_match

    if error.validator in {"anyOf", "oneOf"} and error.context:
        nearer = [one for one in error.context if one.validator != "type" or one.relative_path]
        if not nearer:
            kinds = dict.fromkeys(str(one.validator_value) for one in error.context)
            return ".".join(map(str, error.absolute_path)), f"{error.instance!r} is not of type {' or '.join(kinds)}"
        error = best_match(nearer) or error
    return ".".join(map(str, error.absolute_path)), error.message


@lru_cache(maxsize=1_000)
def _validator(schema: str) -> Any:
    from jsonschema import FormatChecker
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing import Registry

    read = json.loads(schema)
    kind = validator_for(read, default=Draft202012Validator)
    kind.check_schema(read, format_checker=FormatChecker(()))  # a pattern of another language is no error
    known = {keyword: _tolerant(check) for keyword, check in kind.VALIDATORS.items() if keyword in _WITH_PATTERNS}
    return extend(kind, known)(read, registry=Registry())  # an empty registry: references are never fetched


def _tolerant(check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Pass over a pattern that Python cannot read, or its keyword: schemas are written for other languages as well."""

    def tolerant(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if isinstance(value, Mapping) and value is schema.get("patternProperties"):
            value = {pattern: within for pattern, within in value.items() if _is_readable(pattern)}
        try:
            yield from check(validator, value, instance, schema) or ()
        except (re.error, ZeroDivisionError) as error:
            logger.debug("A keyword of a schema cannot be read: %s", error)

    return tolerant


def _is_readable(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def _expected(tool: Tool) -> str:
    properties = tool.input_schema.get("properties")
    names = list(properties) if isinstance(properties, Mapping) else []
    required = tool.input_schema.get("required")
    required = [name for name in names if name in required] if isinstance(required, list) else []
    if not names:
        return "It takes no arguments."
    optional = [name for name in names if name not in required]
    parts = [f"required {', '.join(required)}"] if required else []
    parts += [f"optional {', '.join(optional)}"] if optional else []
    return f"It takes: {'; '.join(parts)}."


def _wrong(tool: Tool, what: str) -> ArgumentsError:
    return ArgumentsError(printable(f"{what}. {_expected(tool)}"))


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{_cut(digits)} is too large a number")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


def _shown(arguments: object) -> str:
    try:
        return _cut(json.dumps(arguments))
    except (TypeError, ValueError, RecursionError):
        return type(arguments).__name__


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_COMPLAINT else text[: _LONGEST_COMPLAINT - 3] + "..."
