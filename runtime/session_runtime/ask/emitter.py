"""Numbers the events of one ask and hands them to its sink; what a slow consumer loses is the sink's."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from session_runtime.types import (
    AskEvent,
    MessageSent,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)

Emit = Callable[[AskEvent], None]


def new_ask_id() -> str:
    """A name for an ask that nobody can guess."""
    return f"ask_{secrets.token_hex(10)}"


def discard(event: AskEvent) -> None:
    """A sink for callers who only want the result."""
    del event


class Events(Protocol):
    """Where the parts of an ask tell what happens; never blocks."""

    def send(self, event: AskEvent) -> None:
        """Deliver one event now."""

    def text(self, text: str) -> None:
        """Deliver a piece of the model's text."""

    def message(self, text: str) -> None:
        """Send a message to the caller."""


class Emitter:
    """Stamps ``ask_id`` and ``seq``; drops what comes after ``close`` (a handler that outlived it)."""

    def __init__(self, ask_id: str, sink: Emit) -> None:
        self._ask_id = ask_id
        self._sink = sink
        self._is_heard = sink is not discard
        self._seq = 0
        self._closed = False
        self._messages: list[str] = []

    @property
    def messages(self) -> tuple[str, ...]:
        """Texts sent to the caller so far, in order."""
        return tuple(self._messages)

    def send(self, event: AskEvent) -> None:
        """Deliver one event now; never blocks."""
        if self._closed:
            return
        self._seq += 1
        if self._is_heard:
            self._sink(replace(event, ask_id=self._ask_id, seq=self._seq))

    def text(self, text: str) -> None:
        """Deliver a piece of the model's text; there are many, so that none is made for nobody."""
        if self._is_heard:
            self.send(TextDelta(text=text))

    def message(self, text: str) -> None:
        """Send a message to the caller and remember it for the result."""
        if not self._closed:
            self._messages.append(text)
            self.send(MessageSent(text=text))

    def finish(self, event: AskEvent) -> None:
        """Deliver the last event; everything later is dropped (ASK-1)."""
        self.send(event)
        self._closed = True


class AgentEmitter:
    """Tells what a sub-agent does as part of the ask; its text is for the model that called it alone.

    ``agent`` is its path. Ids of its calls stand behind the id of the ``call`` that it answers, so that no
    two calls of an ask have the same.
    """

    def __init__(self, outer: Events, agent: str, call: str) -> None:
        self._outer = outer
        self._agent = agent
        self._call = call

    def send(self, event: AskEvent) -> None:
        """Deliver one event now."""
        if isinstance(event, ToolStarted | ToolProgress | ToolFinished) and event.agent is None:
            event = replace(event, call_id=f"{self._call}/{event.call_id}")
        self._outer.send(replace(event, agent=event.agent or self._agent))

    def text(self, text: str) -> None:
        """Keep it from the caller: what the sub-agent answers is a result."""

    def message(self, text: str) -> None:
        """Send a message to the caller."""
        self._outer.message(text)
