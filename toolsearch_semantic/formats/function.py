"""Plain callables as tools: their signature, annotations and docstring are the definition."""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from toolsearch_semantic.errors import InvalidToolError
from toolsearch_semantic.formats.docstrings import parsed_docstring
from toolsearch_semantic.formats.execution import AsyncExecute, SyncExecute
from toolsearch_semantic.formats.fields import made_tool, shown
from toolsearch_semantic.tool import Tool

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.json_schema import GenerateJsonSchema

__all__ = ["is_function", "read_function"]

_LONGEST_CHAIN = 100
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_CURE = "Annotate it with a type that Pydantic can describe, bind it with functools.partial, or give a Tool instead."


@dataclass(frozen=True, slots=True)
class _Argument:
    """One parameter as a field of the arguments model, whose own field names cannot clash with Pydantic's."""

    field: str
    parameter: inspect.Parameter
    annotation: Any

    @property
    def is_passed_always(self) -> bool:
        """Whether the function has no default of its own that it could fall back on."""
        default = self.parameter.default
        return default is inspect.Parameter.empty or _is_field_info(default)


def is_function(obj: object) -> bool:
    """Return whether it can be called and is no class: a function, method, partial or callable instance."""
    return callable(obj) and not isinstance(obj, type)


def read_function(obj: Any, *, key: str | None) -> Tool:
    """Read one callable; running it validates and converts the arguments to their annotated types first.

    The key names it, or without one its ``__name__`` (a callable instance's class). Parameters become the schema:
    one without annotation takes anything; ``*args`` is left out, because a JSON object cannot fill it; with
    ``**kwargs`` further arguments are allowed, and passed on as they are; what `functools.partial` has bound is left
    out. A parameter's description is that of ``Field`` in its annotation, else a string or ``Doc`` there, else the
    docstring's.

    Args:
        obj: What `is_function` accepts.
        key: Its name.

    Raises:
        InvalidToolError: It has no name or no signature, or a parameter's annotation cannot be resolved or described.
    """
    function = _definition(obj)
    name = _name(obj, function) if key is None else key
    documented = parsed_docstring(_docstring(obj, function))
    parameters = _parameters(obj, name)
    arguments = [
        _Argument(f"arg_{position}", parameter, _annotation(parameter, function, name))
        for position, parameter in enumerate(p for p in parameters if p.kind not in _VARIADIC)
    ]
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    model, schema = _model(name, arguments, open_ended, documented.parameters)

    def call(given: Mapping[str, Any]) -> Any:
        positional, keywords = _bound(model.model_validate(dict(given)), arguments)
        return obj(*positional, **keywords)

    return made_tool(
        obj,
        key,
        name=name,
        description=documented.description,
        schema=schema,
        execute=(AsyncExecute if _is_async(obj) else SyncExecute)(obj, call),
    )


def _definition(obj: Any) -> Any:
    """Return the function that a callable comes down to, which has the annotations' globals and the docstring."""
    for _ in range(_LONGEST_CHAIN):
        if isinstance(obj, functools.partial):
            obj = obj.func
        elif inspect.ismethod(obj):
            obj = obj.__func__
        elif hasattr(obj, "__wrapped__"):
            obj = obj.__wrapped__
        elif inspect.isroutine(obj) or isinstance(obj, type):
            return obj
        else:
            obj = type(obj).__call__
    raise InvalidToolError(f"It wraps itself, or too many others to follow: {shown(obj)}. Give the function itself.")


def _name(obj: Any, function: Any) -> str:
    while isinstance(obj, functools.partial):
        obj = obj.func
    name = getattr(obj, "__name__", None)
    if not isinstance(name, str):
        name = type(obj).__name__
    if name == "<lambda>":
        raise InvalidToolError(
            f"A lambda has no name: {shown(function)}. Give the tools as a mapping whose keys name them, or use def."
        )
    return name


def _docstring(obj: Any, function: Any) -> str | None:
    while isinstance(obj, functools.partial):
        obj = obj.func
    documented = inspect.getdoc(function)
    # A callable instance is often documented at its class.
    return documented if documented or inspect.isroutine(obj) else type(obj).__doc__


def _is_async(obj: Any) -> bool:
    while isinstance(obj, functools.partial):
        obj = obj.func
    return inspect.iscoroutinefunction(obj) or inspect.iscoroutinefunction(getattr(obj, "__call__", None))  # noqa: B004


def _parameters(obj: Any, name: str) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(obj)
    except (TypeError, ValueError) as error:
        raise InvalidToolError(
            f"The callable {shown(name)} has no signature to read its arguments from: {error}. "
            "Wrap it in a function with annotated parameters."
        ) from error
    bound = _bound_keywords(obj)
    return [parameter for parameter in signature.parameters.values() if parameter.name not in bound]


def _bound_keywords(obj: Any) -> set[str]:
    bound: set[str] = set()
    while isinstance(obj, functools.partial):
        bound |= set(obj.keywords)
        obj = obj.func
    return bound


def _annotation(parameter: inspect.Parameter, function: Any, name: str) -> Any:
    if parameter.annotation is inspect.Parameter.empty:
        return Any

    def holder() -> None: ...

    # One parameter at a time, so that the message can name the one; the return annotation is not asked for at all.
    holder.__annotations__ = {parameter.name: parameter.annotation}
    type_parameters = {kind.__name__: kind for kind in getattr(function, "__type_params__", ())}
    try:
        hints = typing.get_type_hints(
            holder, getattr(function, "__globals__", {}), type_parameters, include_extras=True
        )
    except Exception as error:  # an annotation in quotes is code of the user's, and may fail in any way
        raise InvalidToolError(
            f"The annotation {shown(parameter.annotation)} of parameter {parameter.name!r} of the function "
            f"{shown(name)} cannot be resolved: {error}. Define or import it at the top of the function's module."
        ) from error
    return hints[parameter.name]


def _model(
    name: str, arguments: list[_Argument], open_ended: bool, documented: Mapping[str, str]
) -> tuple[type[BaseModel], dict[str, Any]]:
    from pydantic import ConfigDict, create_model

    names = {argument.field: argument.parameter.name for argument in arguments}
    fields: dict[str, Any] = {
        argument.field: (
            argument.annotation,
            ... if argument.parameter.default is inspect.Parameter.empty else argument.parameter.default,
        )
        for argument in arguments
    }
    config = ConfigDict(
        title=name, extra="allow" if open_ended else "forbid", alias_generator=lambda field: names[field]
    )
    try:
        model: type[BaseModel] = create_model("_Arguments", __config__=config, **fields)
        generated = model.model_json_schema(schema_generator=_schema_generator())
    except Exception as error:  # Pydantic and the user's own schema hooks run here
        raise InvalidToolError(_undescribed(name, arguments, error)) from error
    properties = generated.get("properties", {})
    for argument in arguments:
        alias = model.model_fields[argument.field].alias
        described = properties.get(alias)
        if described is None:
            continue
        text = _annotated_text(argument.annotation) or documented.get(argument.parameter.name)
        if text and "description" not in described:
            described["description"] = text
        default = described.get("default")
        if isinstance(default, float) and not math.isfinite(default):
            del described["default"]  # JSON has no form for it
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema |= {part: generated[part] for part in ("required", "$defs") if part in generated}
    return model, schema | {"additionalProperties": open_ended}


def _undescribed(name: str, arguments: list[_Argument], error: Exception) -> str:
    from pydantic import TypeAdapter

    for argument in arguments:
        try:
            TypeAdapter(argument.annotation).json_schema(schema_generator=_schema_generator())
        except Exception as cause:
            reason = str(cause).partition("\n")[0]
            return (
                f"The parameter {argument.parameter.name!r} of the function {shown(name)} has a type with no JSON "
                f"Schema, {shown(argument.annotation)}: {reason}. {_CURE}"
            )
    return f"The parameters of the function {shown(name)} have no JSON Schema: {error}. {_CURE}"


def _bound(validated: BaseModel, arguments: list[_Argument]) -> tuple[list[Any], dict[str, Any]]:
    positional: list[Any] = []
    keywords = dict(validated.model_extra or {})
    given = validated.model_fields_set
    last = max(
        (
            position
            for position, argument in enumerate(arguments)
            if argument.parameter.kind is inspect.Parameter.POSITIONAL_ONLY
            and (argument.field in given or argument.is_passed_always)
        ),
        default=-1,
    )
    for position, argument in enumerate(arguments):
        if argument.parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            if position <= last:
                positional.append(getattr(validated, argument.field))
        elif argument.field in given or argument.is_passed_always:
            keywords[argument.parameter.name] = getattr(validated, argument.field)
    return positional, keywords


def _annotated_text(annotation: Any) -> str | None:
    if typing.get_origin(annotation) is not Annotated:
        return None
    for metadata in typing.get_args(annotation)[1:]:
        text = metadata if isinstance(metadata, str) else getattr(metadata, "documentation", None)
        if isinstance(text, str):
            return text
    return None


def _is_field_info(default: object) -> bool:
    from pydantic.fields import FieldInfo

    return isinstance(default, FieldInfo)


@functools.cache
def _schema_generator() -> type[GenerateJsonSchema]:
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Leaves out the titles, which only repeat names, and defaults that JSON has no form for."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - Pydantic's own form

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Untitled
