"""Reading a conversation, of any provider's shape or of several at once.

Messages are dicts or client objects of OpenAI Chat Completions and Responses, Anthropic, LangChain, Pydantic AI and the
Vercel AI SDK, recognised by their fields alone. What matters is who wrote them: a tool call counts only in what the
assistant wrote, and a result only where the host puts results. Text proves nothing, whoever wrote it.

The host is trusted to keep roles and ids as they were. One that takes whole messages from a browser, the assistant's
included, lets its users write any of this.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolsearch_semantic.errors import InvalidOptionError
from toolsearch_semantic.messages import ai_sdk, anthropic, langchain, openai_chat, openai_responses, pydantic_ai
from toolsearch_semantic.messages.authors import Author, Shape, author_of, unwrapped
from toolsearch_semantic.messages.events import Event
from toolsearch_semantic.messages.pairing import Pair, Pairing
from toolsearch_semantic.messages.results import TEXT_TYPES, Outcome, arguments_of
from toolsearch_semantic.messages.values import exact_text, field_of, items_of, word_of

__all__ = ["DEFAULT_LIMIT", "ToolExchange", "UserTurn", "last_user_text", "read_exchanges", "read_user_turns"]

DEFAULT_LIMIT = 10_000
"""Messages; of a longer conversation only the newest are read."""


@dataclass(frozen=True, slots=True)
class ToolExchange:
    """A call that the assistant made, with the result that answers it.

    ``arguments`` and ``result`` may be the conversation's own objects: do not change them.

    Args:
        call_id: The id that ties the two together.
        tool_name: As the assistant called it. A name in an OpenAI namespace is written ``namespace.name``, so that it
            is not taken for the tool that has the name alone.
        arguments: Parsed; None where they are no JSON object.
        result: Parsed where it is JSON text; structured content is preferred to text; None where there is none.
        answered: Whether there is a result.
        is_error: Whether the result is marked as an error; what its text says does not matter.
        position: Index of the message with the result, or with the call where there is none.
        references: Names of the tools in ``tool_reference`` blocks or in a ``tool_search_output`` item.
        kind: ``"tool_search"`` for an OpenAI ``tool_search_call`` item, whose ``tool_name`` is ``tool_search``; a
            function that happens to have that name is a ``"function"``.
    """

    call_id: str
    tool_name: str
    arguments: Mapping[str, Any] | None = field(hash=False)
    result: Any | None = field(hash=False)
    answered: bool
    is_error: bool
    position: int
    references: tuple[str, ...] = ()
    kind: Literal["function", "tool_search"] = "function"


@dataclass(frozen=True, slots=True)
class UserTurn:
    """A message that the user wrote.

    Args:
        text: Its text, parts joined by line ends; empty where it has none, such as an image alone.
        position: Its index.
        identity: The same each time for the same message at the same place: a digest of its text with its id, or with
            its position where it has no id.
        assistant_follows: Whether the assistant has said or called anything since.
    """

    text: str
    position: int
    identity: str
    assistant_follows: bool


def read_exchanges(
    messages: Iterable[Any], *, tool_names: Collection[str] | None = None, limit: int = DEFAULT_LIMIT
) -> list[ToolExchange]:
    """Return the assistant's tool calls with their results, in the order in which the results appear.

    An unanswered call stands where it was made. A result counts when it

    - stands where results do: a message of role ``tool``, a `ToolMessage`, a tool return of a Pydantic AI request, a
      ``function_call_output`` item, a tool part of an assistant's AI SDK message, or, for a ``tool_use`` block alone,
      a ``tool_result`` block in the user turn that follows directly;
    - has the id of a call that the assistant made before, and that has no result yet;
    - bears the name of that call, or none.

    An id may be used again once its call is answered. Used again before that it is ambiguous, and none of its calls
    from then on is answered. Roles, names and ids are compared exactly. What is malformed is skipped.

    Args:
        messages: The conversation, oldest first.
        tool_names: Only calls of these tools are returned; results of others are not parsed. All calls take part in
            the pairing either way.
        limit: How many of the newest messages are read; a result whose call lies before them does not count.

    Raises:
        InvalidOptionError: ``messages`` is no iterable of messages, ``tool_names`` are no names, or ``limit`` is not
            an integer ≥ 1.
    """
    wanted = _checked_names(tool_names)
    pairing = Pairing()
    for position, message in _newest(messages, limit):
        try:
            inner = unwrapped(message)
            author, shape = author_of(inner)
            reader = _READERS.get((author, shape))
            events = [] if reader is None else reader(inner)
        except Exception:  # an object may fail in any way when it is asked what it is
            continue
        pairing.take(events, position, by_assistant=author == "assistant")
    pairs = [pair for pair in pairing.pairs if wanted is None or pair.call.name in wanted]
    return [_exchange(pair) for pair in sorted(pairs, key=lambda pair: pair.order)]


def read_user_turns(messages: Iterable[Any], *, limit: int = DEFAULT_LIMIT) -> list[UserTurn]:
    """Return the messages that the user wrote, oldest first.

    A message of role ``user`` that only carries tool results is not the user's; one that has text beside them is.

    Args:
        messages: The conversation, oldest first.
        limit: How many of the newest messages are read.

    Raises:
        InvalidOptionError: ``messages`` is no iterable of messages, or ``limit`` is not an integer ≥ 1.
    """
    return _turns(messages, limit, last_only=False)[::-1]


def last_user_text(messages: Iterable[Any], *, limit: int = DEFAULT_LIMIT) -> UserTurn | None:
    """Return the newest message that the user wrote, or None.

    Args:
        messages: The conversation, oldest first.
        limit: How many of the newest messages are read.

    Raises:
        InvalidOptionError: ``messages`` is no iterable of messages, or ``limit`` is not an integer ≥ 1.
    """
    turns = _turns(messages, limit, last_only=True)
    return turns[0] if turns else None


def _role_calls(message: object) -> list[Event]:
    # One message may say the same calls in several ways; the first way that says any is read.
    return (
        openai_chat.calls(message)
        or langchain.calls(message)
        or anthropic.calls(message)
        or ai_sdk.calls(message)
        or ai_sdk.ui_events(message)
    )


def _role_answers(message: object) -> list[Event]:
    return openai_chat.answers(message) or ai_sdk.answers(message)


_READERS: dict[tuple[Author, Shape], Callable[[object], list[Event]]] = {
    ("assistant", "role"): _role_calls,
    ("tool", "role"): _role_answers,
    ("user", "role"): anthropic.answers,
    ("assistant", "langchain"): langchain.calls,
    ("tool", "langchain"): langchain.answers,
    ("assistant", "responses"): openai_responses.events,
    ("tool", "responses"): openai_responses.events,
    ("assistant", "pydantic_ai"): pydantic_ai.calls,
    ("request", "pydantic_ai"): pydantic_ai.answers,
}


def _exchange(pair: Pair) -> ToolExchange:
    call, answer = pair.call, pair.answer
    outcome = Outcome()
    try:
        arguments = arguments_of(call.arguments)
    except Exception:  # a mapping that cannot be walked
        arguments = None
    if answer is not None:
        try:
            outcome = answer.read(answer.raw)
        except Exception:  # what cannot be read is no success
            outcome = Outcome(is_error=True)
    return ToolExchange(
        call_id=call.call_id,
        tool_name=call.name,
        arguments=arguments,
        result=outcome.result,
        answered=answer is not None,
        is_error=outcome.is_error or (answer is not None and answer.is_error),
        position=pair.position,
        references=outcome.references,
        kind="tool_search" if call.way == "search" else "function",
    )


def _turns(messages: Iterable[Any], limit: int, *, last_only: bool) -> list[UserTurn]:
    turns: list[UserTurn] = []
    assistant_follows = False
    for position, message in reversed(_newest(messages, limit)):
        try:
            inner = unwrapped(message)
            author, _ = author_of(inner)
            text = _user_text(inner, author)
            message_id = word_of(inner, "id")
        except Exception:  # as in read_exchanges
            continue
        if author == "assistant":
            assistant_follows = True
        elif text is not None:
            turns.append(UserTurn(text, position, _identity(message_id, position, text), assistant_follows))
            if last_only:
                break
    return turns


def _user_text(message: object, author: Author) -> str | None:
    if author == "request":
        return pydantic_ai.user_text(message)
    if author != "user":
        return None
    holder = ai_sdk.holder_of(message)
    content = field_of(holder, "content")
    text = exact_text(content)
    if text:
        return text
    blocks = items_of(content) or items_of(field_of(holder, "parts"))
    written = [
        block for block in blocks if isinstance(block, str) or word_of(block, "type") not in {None, "tool_result"}
    ]
    if not written:
        return text
    texts = (block if isinstance(block, str) else _block_text(block) for block in written)
    return "\n".join(each for each in map(exact_text, texts) if each is not None)


def _block_text(block: object) -> object:
    return field_of(block, "text") if word_of(block, "type") in TEXT_TYPES else None


def _identity(message_id: str | None, position: int, text: str) -> str:
    place = position if message_id is None else message_id
    return hashlib.sha256(json.dumps([place, text]).encode()).hexdigest()


def _newest(messages: Iterable[Any], limit: int) -> list[tuple[int, Any]]:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidOptionError(f"limit must be an integer ≥ 1 (a number of messages), not {limit!r}.")
    if isinstance(messages, list | tuple):
        first = max(0, len(messages) - limit)
        return list(enumerate(messages[first:], first))
    # A Pydantic object can be iterated and gives its fields, so a single message would read as several.
    if isinstance(messages, str | bytes | bytearray | Mapping) or hasattr(type(messages), "model_fields"):
        raise _no_messages(messages)
    try:
        iterator = iter(messages)
    except TypeError:
        raise _no_messages(messages) from None
    return list(deque(enumerate(iterator), maxlen=limit))


def _no_messages(messages: object) -> InvalidOptionError:
    return InvalidOptionError(
        f"messages must be an iterable of messages, oldest first, not {type(messages).__name__} "
        f"{reprlib.repr(messages)}. Wrap a single message in a list."
    )


def _checked_names(names: Collection[str] | None) -> frozenset[str] | None:
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
        raise InvalidOptionError(f"tool_names must be a collection of names or None, not {names!r}.")
    return frozenset(names)
