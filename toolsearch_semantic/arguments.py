"""Checking the arguments that a model wrote against a tool's input schema."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
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
            arguments = json.loads(arguments, parse_constant=_refuse) if arguments.strip() else {}
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
    return dict(arguments)


def _unknown(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    properties = tool.input_schema.get("properties")
    if not isinstance(properties, Mapping) or any(key in tool.input_schema for key in _OPEN_ENDED):
        return []
    return [f"there is no argument {name!r}" for name in arguments if name not in properties][:_MOST_COMPLAINTS]


def _broken(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        validator = _validator(json.dumps(tool.input_schema, default=dict))
        complaints = []
        for error in validator.iter_errors(dict(arguments)):
            where = ".".join(map(str, error.absolute_path))
            complaints.append(_cut(f"{where}: {error.message}" if where else error.message))
            if len(complaints) == _MOST_COMPLAINTS:
                break
    except (SchemaError, Unresolvable, TypeError, ValueError, RecursionError) as error:
        # What the schema's author got wrong is not the model's fault: the executor decides.
        logger.debug("The input schema of tool %r cannot be checked against: %s", tool.name, error)
        return []
    return complaints


@lru_cache(maxsize=1_000)
def _validator(schema: str) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    read = json.loads(schema)
    kind = validator_for(read, default=Draft202012Validator)
    kind.check_schema(read)
    return kind(read, registry=Registry())  # an empty registry: references elsewhere are never fetched


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


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


def _shown(arguments: object) -> str:
    try:
        return _cut(json.dumps(arguments))
    except (TypeError, ValueError, RecursionError):
        return type(arguments).__name__


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_COMPLAINT else text[: _LONGEST_COMPLAINT - 3] + "..."
