"""What a call comes to for a client of the MCP door: text as a model reads it, data and pictures beside it.

How a result is shown, shortened and refused is decided in ``registry.invoke``; this only adds the forms that
an MCP client can take and a model of ours is not given.
"""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from session_runtime.handler import HandlerContext, Image
from session_runtime.registry.catalog import Catalog
from session_runtime.registry.spec import Audience, Route, ToolSource, ToolSpec
from session_runtime.threads import aside
from session_runtime.types import Identity, JsonObject, ToolResult, ToolStatus

MOST_IMAGE_BYTES: Final = 2 * 1024 * 1024
MOST_MESSAGES: Final = 50
MOST_MESSAGE_CHARS: Final = 20_000
_READ_AT_ONCE_CHARS: Final = 16_384


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client is told of one call; ``messages`` are what the tool said to the person meanwhile.

    ``structured`` is the whole result where it is an object of data and not too long to be shown; ``image``
    stands in for ``text`` where the result is a picture of at most MOST_IMAGE_BYTES. ``loaded`` are tools
    that can be called from now on and could not before.
    """

    status: ToolStatus
    text: str
    structured: JsonObject | None = None
    image: Image | None = None
    messages: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()


def refusal(text: str) -> Outcome:
    """The outcome of a call that was not allowed to run."""
    return Outcome("refused", text)


class Returned:
    """Keeps what a tool returned last, beside what is made of it for a model."""

    def __init__(self) -> None:
        self._value: object = None

    def within(self, catalog: Catalog, spec: ToolSpec) -> Catalog:
        """The same catalogue, in which calls of this tool leave here what they return."""
        source = _Watched(catalog.sources[spec.source_id], self._keep)
        return replace(catalog, sources={**catalog.sources, spec.source_id: source})

    def _keep(self, value: object) -> None:
        self._value = value

    async def outcome(self, result: ToolResult, messages: tuple[str, ...]) -> Outcome:
        """What the client is told; a result that is not shown whole, or not at all, adds nothing."""
        plain = Outcome(result.status, result.content, messages=messages)
        match self._value:
            case Image(bytes() as data) as image if len(data) <= MOST_IMAGE_BYTES:
                return replace(plain, image=image) if result.status == "ok" else plain
            case Mapping() if result.status == "ok" and result.whole_chars is None:
                return replace(plain, structured=await _read(result.content))
            case _:
                return plain


async def _read(shown: str) -> JsonObject | None:
    """The object that a shown result is; None if more than the object is shown."""
    if len(shown) <= _READ_AT_ONCE_CHARS:
        return _object(shown)
    return await aside("reading a result", lambda: _object(shown))


def _object(text: str) -> JsonObject | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class _Watched:
    """A source as it is, but for ``keep`` being told what its tools return."""

    source: ToolSource
    keep: Callable[[object], None]

    @property
    def id(self) -> str:
        return self.source.id

    async def list_tools(self) -> tuple[ToolSpec, ...]:
        return await self.source.list_tools()

    def is_loaded(self, spec: ToolSpec) -> bool:
        return self.source.is_loaded(spec)

    def routes(self, spec: ToolSpec, identity: Identity) -> Sequence[Route]:
        return [self._watched(route) for route in self.source.routes(spec, identity)]

    @property
    def audience(self) -> Audience | None:
        return self.source.audience

    async def aclose(self) -> None:
        await self.source.aclose()

    def _watched(self, route: Route) -> Route:
        async def run(arguments: Mapping[str, Any], context: HandlerContext) -> object:
            value = await route.run(arguments, context)
            self.keep(value)
            return value

        return replace(route, run=run)


class Said:
    """Gathers what a tool says to the person, from any thread; what is too much is left out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._messages: list[str] = []
        self._chars = 0

    def add(self, text: str) -> None:
        """Keep one message, if there is room for it."""
        with self._lock:
            fits = self._chars + len(text) <= MOST_MESSAGE_CHARS
            if fits and len(self._messages) < MOST_MESSAGES:
                self._messages.append(text)
                self._chars += len(text)

    def all(self) -> tuple[str, ...]:
        """What was said so far."""
        with self._lock:
            return tuple(self._messages)
