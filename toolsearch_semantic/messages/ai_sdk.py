"""Vercel AI SDK: the tool parts of UI messages, and the content parts of model messages.

A UI message keeps a call and its result in one part of the assistant's message. What the provider itself runs
(``providerExecuted``) is not read, and a preliminary output is no result yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from toolsearch_semantic.messages.events import Answer, Call, Event
from toolsearch_semantic.messages.results import Outcome, content_outcome, value_outcome
from toolsearch_semantic.messages.values import field_of, is_marked, items_of, named, word_of

__all__ = ["answers", "calls", "holder_of", "ui_events"]

_STATIC = "tool-"
_FAILED = {"error-text", "error-json", "execution-denied"}


def holder_of(message: object) -> object:
    """Return what holds a UI message's parts: the message, or its content where that is an object."""
    content = field_of(message, "content")
    return content if isinstance(content, Mapping) else message


def ui_events(message: object) -> list[Event]:
    """Return the calls in an assistant's UI message, each followed by its result where it has one."""
    holder = holder_of(message)
    found = [event for part in items_of(field_of(holder, "parts")) for event in _of_part(part)]
    if found:
        return found
    invocations = items_of(field_of(holder, "toolInvocations")) or items_of(field_of(message, "toolInvocations"))
    return [event for invocation in invocations for event in _of_invocation(invocation)]


def _of_part(part: object) -> Iterator[Event]:
    kind = word_of(part, "type") or ""
    if kind == "tool-invocation" and field_of(part, "toolInvocation") is not None:
        yield from _of_invocation(field_of(part, "toolInvocation"))
        return
    name = word_of(part, "toolName") if kind == "dynamic-tool" else kind[len(_STATIC) :]
    if kind != "dynamic-tool" and not kind.startswith(_STATIC):
        return
    call_id = word_of(part, "toolCallId")
    if not call_id or not name or named(part, "toolName") not in {None, name} or _by_provider(part):
        return
    yield Call(call_id, name, field_of(part, "input"))
    state = word_of(part, "state")
    if state == "output-available" and not is_marked(field_of(part, "preliminary")):
        yield Answer(call_id, None, field_of(part, "output"))
    elif state == "output-error":
        yield Answer(call_id, None, field_of(part, "errorText"), is_error=True)
    elif state == "output-denied":
        yield Answer(call_id, None, None, is_error=True)


def _by_provider(part: object) -> bool:
    return is_marked(field_of(part, "providerExecuted"))


def _of_invocation(invocation: object) -> Iterator[Event]:
    call_id, name = word_of(invocation, "toolCallId"), word_of(invocation, "toolName")
    if call_id and name:
        yield Call(call_id, name, field_of(invocation, "args"))
        if word_of(invocation, "state") == "result":
            yield Answer(call_id, None, field_of(invocation, "result"))


def calls(message: object) -> list[Event]:
    """Return the calls in the content of an assistant's model message."""
    found: list[Event] = []
    for part in items_of(field_of(message, "content")):
        if word_of(part, "type") != "tool-call" or _by_provider(part):
            continue
        call_id, name = word_of(part, "toolCallId"), word_of(part, "toolName")
        if call_id and name:
            arguments = field_of(part, "input")
            found.append(Call(call_id, name, field_of(part, "args") if arguments is None else arguments))
    return found


def answers(message: object) -> list[Event]:
    """Return the results in the content of a model message of role ``tool``."""
    found: list[Event] = []
    for part in items_of(field_of(message, "content")):
        call_id = word_of(part, "toolCallId") if word_of(part, "type") == "tool-result" else None
        if call_id:
            output = field_of(part, "output")
            is_error = is_marked(field_of(part, "isError")) or word_of(output, "type") in _FAILED
            old = output is None
            raw, read = (field_of(part, "result"), value_outcome) if old else (output, _output_outcome)
            found.append(Answer(call_id, named(part, "toolName"), raw, is_error=is_error, read=read))
    return found


def _output_outcome(output: object) -> Outcome:
    kind = word_of(output, "type")
    if kind == "content":
        return content_outcome(field_of(output, "value"))
    if kind in {"text", "json", "error-text", "error-json"}:
        return value_outcome(field_of(output, "value"))
    return Outcome(field_of(output, "reason")) if kind == "execution-denied" else value_outcome(output)
