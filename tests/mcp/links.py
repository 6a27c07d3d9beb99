"""Connections to servers that are not there: what they list and answer is said by the test."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from session_runtime.mcp.base import Definition, Health, Listing, OnProgress, State
from session_runtime.mcp.session import Wanted
from session_runtime.registry.catalog import Quarantined
from session_runtime.trace_context import TraceContext
from session_runtime.types import JsonObject

Answer = Callable[[str, Mapping[str, Any], str], Awaitable[object]]


def definition(
    name: str,
    description: str | None = None,
    parameters: JsonObject | None = None,
    *,
    destructive: bool = False,
) -> Definition:
    """A tool as a server lists it."""
    text = f"Does {name}." if description is None else description
    schema = parameters or {"type": "object", "properties": {}}
    return Definition(
        name,
        text,
        schema,
        None,
        destructive,
        _digest(name, text, schema, destructive),
        _digest(schema),
    )


def _digest(*values: object) -> str:
    return hashlib.blake2b(json.dumps(values).encode()).hexdigest()


def listing(*tools: Definition | str, refused: tuple[Quarantined, ...] = ()) -> Listing:
    """What a server lists."""
    made = tuple(definition(tool) if isinstance(tool, str) else tool for tool in tools)
    return Listing(made, refused, 0.0)


async def echo(tool: str, arguments: Mapping[str, Any], key: str) -> object:
    """Answer with what was called."""
    return {"tool": tool, "arguments": dict(arguments), "key": key}


class FakeLink:
    """Becomes what the test makes of it."""

    def __init__(
        self,
        wanted: Wanted,
        changed: Callable[[], None],
        at_start: "Callable[[FakeLink], None]",
    ) -> None:
        self.wanted = wanted
        self.at_start = at_start
        self.state: State = "connecting"
        self.answer: Answer = echo
        self.closed = asyncio.Event()
        self.close_gate = asyncio.Event()
        self.close_gate.set()
        self.started = False
        self.refreshes = 0
        self.trace: TraceContext | None = None
        self.listing: Listing | None = None
        self.after_refresh: Listing | None = None
        self._changed = changed
        self._settled = asyncio.Event()

    @property
    def health(self) -> Health:
        return Health(self.state, 1.0, "it is broken" if self.state == "down" else "")

    def start(self) -> None:
        assert not self.started
        self.started = True
        self.at_start(self)

    async def settled(self) -> None:
        await self._settled.wait()

    async def refresh(self) -> None:
        self.refreshes += 1
        if self.after_refresh is not None:
            self.lists(self.after_refresh)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        on_progress: OnProgress,
        trace: TraceContext | None = None,
    ) -> object:
        self.trace = trace
        return await self.answer(tool, arguments, key)

    async def aclose(self) -> None:
        assert not self.closed.is_set()
        await self.close_gate.wait()
        self.state = "stopped"
        self.closed.set()

    def lists(self, what: Listing) -> None:
        """Be ready with this list from now on."""
        self.state, self.listing = "ready", replace(what)
        self._settled.set()
        self._changed()

    def fails(self) -> None:
        """Be down from now on; what was listed stays."""
        self.state = "down"
        self._settled.set()


class Switchboard:
    """Opens fake connections; ``answers`` are lists by session that are there at once, None: it fails."""

    def __init__(self, answers: Mapping[str, Listing | None] | None = None) -> None:
        self.answers = dict(answers or {})
        self.opened: list[FakeLink] = []
        self._opening = asyncio.Event()

    async def opens(self, number: int) -> None:
        """Wait until so many connections were opened."""
        while len(self.opened) < number:
            self._opening.clear()
            await self._opening.wait()

    def __call__(self, wanted: Wanted, changed: Callable[[], None]) -> FakeLink:
        link = FakeLink(wanted, changed, self._answer)
        self.opened.append(link)
        self._opening.set()
        return link

    def _answer(self, link: FakeLink) -> None:
        if link.wanted.name in self.answers:
            answer = self.answers[link.wanted.name]
            if answer is None:
                link.fails()
            else:
                link.lists(answer)

    def last(self, name: str) -> FakeLink:
        """The newest connection of a session."""
        return next(link for link in reversed(self.opened) if link.wanted.name == name)

    @property
    def alive(self) -> list[str]:
        """The sessions that have a connection which is not closed."""
        return sorted(link.wanted.name for link in self.opened if not link.closed.is_set())
