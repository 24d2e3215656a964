"""Tying each call to the one result that answers it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from toolsearch_semantic.messages.events import Answer, Call, Event

__all__ = ["Pair", "Pairing"]


@dataclass(slots=True)
class Pair:
    """A call, and its answer once it has one.

    Args:
        call: The call.
        turn: The assistant's turn that it was made in.
        position: Of the message with the answer, or with the call while there is none.
        order: Of the answer among all events, or of the call while there is none.
        answer: The answer.
    """

    call: Call
    turn: int
    position: int
    order: int
    answer: Answer | None = None


@dataclass(slots=True)
class Pairing:
    """Takes the events of a conversation in order, and keeps the pairs.

    A call that is not yet answered is open. An answer counts when its id is that of an open call, when it stands where
    such a call may be answered, and when it bears the call's name or none; the first that counts closes the call. An
    id that is issued again while its call is open is ambiguous: neither call is answered, nor is any later one.
    """

    pairs: list[Pair] = field(default_factory=list)
    _open: dict[str, Pair] = field(default_factory=dict)
    _ambiguous: set[str] = field(default_factory=set)
    _turn: int = 0
    _assistant_speaks: bool = False
    _order: int = 0

    def take(self, events: Iterable[Event], position: int, *, by_assistant: bool) -> None:
        """Take the events of one message.

        Args:
            events: In order.
            position: Of the message in the conversation.
            by_assistant: Whether the assistant wrote it; its messages in a row are one turn.
        """
        if by_assistant and not self._assistant_speaks:
            self._turn += 1
        self._assistant_speaks = by_assistant
        for event in events:
            self._order += 1
            if isinstance(event, Call):
                self._called(event, position)
            else:
                self._answered(event, position)

    def _called(self, call: Call, position: int) -> None:
        pair = Pair(call, self._turn, position, self._order)
        self.pairs.append(pair)
        if call.call_id in self._ambiguous:
            return
        if self._open.pop(call.call_id, None) is None:
            self._open[call.call_id] = pair
        else:
            self._ambiguous.add(call.call_id)

    def _answered(self, answer: Answer, position: int) -> None:
        pair = self._open.get(answer.call_id)
        if pair is None or not self._may_answer(answer, pair):
            return
        del self._open[answer.call_id]
        pair.answer, pair.position, pair.order = answer, position, self._order

    def _may_answer(self, answer: Answer, pair: Pair) -> bool:
        call = pair.call
        if answer.name is not None and answer.name not in (call.name, call.bare_name):
            return False
        if answer.way == "block":
            return call.way == "block" and pair.turn == self._turn
        return (answer.way == "search") == (call.way == "search")
