"""Stands between a transport and the client of the SDK, which reads and checks too much too early.

Results of the methods in ``RAW`` pass the SDK's validation unread, as one bad part would cost the whole;
of what a server says unasked only what is needed gets there. The end of the stream is noticed at once, and
when the server last answered. Public: ``Tap``, ``Unread``.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, Self

import anyio
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_PROTOCOL_VERSION_HEADER,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field

from session_runtime.mcp.unasked import MOST_PER_S, Bound, Malformed, heeded
from session_runtime.types import JsonObject

StreamPair = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]
Streams = AbstractAsyncContextManager[StreamPair]
"""What a transport is to a session of the SDK: entered, it gives a stream to read and one to write."""

_UNREAD: Final = "session-runtime/unread"
_EMPTY: Final = {"resultType": "complete"}
RAW: Final[Mapping[str, JsonObject]] = {
    "tools/list": {**_EMPTY, "tools": [], "ttlMs": 0, "cacheScope": "private"},
    "tools/call": {**_EMPTY, "content": []},
}
"""Methods whose results are not for the SDK, and what it gets to see in their place."""

NOT_SENT: Final = object()
"""The data of the error that a request ends with which was not sent, as the connection is over."""

MOST_WAITING: Final = 1_000
"""How many requests of a server may be without an answer: one that takes none could ask for ever."""

SchemaOf = Callable[[str], JsonObject | None]
"""Gives the schema of a tool's arguments, None if there is no such tool."""


class Unread(BaseModel):
    """What the SDK makes of such a result: ``raw`` is what the server sent."""

    meta: dict[str, Any] = Field(alias="_meta")

    @property
    def raw(self) -> JsonObject:
        """The result as it came."""
        raw: JsonObject = self.meta[_UNREAD]
        return raw


class Tap:
    """What one connection says and hears.

    ``now`` is the event loop's clock, ``on_end`` is called once, when nothing will be heard any more, with
    the reason if that is known. A server that says too much unasked is not heard any more. ``schema_of``
    tells which arguments of a call its headers repeat (revision 2026-07-28).
    """

    def __init__(
        self, now: Callable[[], float], on_end: Callable[[str], None], schema_of: SchemaOf
    ) -> None:
        self.answered_at = now()
        self.ended = False
        self.skipped = 0
        self._now = now
        self._on_end = on_end
        self._schema_of = schema_of
        self._raw: dict[str | int, str] = {}
        self._asked: set[str | int] = set()
        self._unasked = Bound()

    def reading(self, stream: ReadStream[SessionMessage | Exception]) -> "Reading":
        """The stream that the SDK reads instead."""
        return Reading(stream, self)

    def writing(self, stream: WriteStream[SessionMessage]) -> "Writing":
        """The stream that the SDK writes to instead."""
        return Writing(stream, self)

    @property
    def waiting(self) -> int:
        """How many requests whose result is not for the SDK are unanswered."""
        return len(self._raw)

    def end(self, why: str = "") -> None:
        """Nothing will be heard any more."""
        if not self.ended:
            self.ended = True
            self._on_end(why)

    def heard(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        """What the SDK shall see of it, None for nothing; raises EndOfStream if it is too much.

        Only answers are signs of life: what else it says may come from another part of it, while that
        which answers hangs. Notifications that are malformed are ``skipped``.
        """
        match item:
            case SessionMessage(message=JSONRPCResponse() | JSONRPCError()):
                self.answered_at = self._now()
                if self._answered(item) is None:
                    self._bound_unasked()
                return item
            case _:
                self._bound_unasked()
                return self._needed(item)

    def _needed(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        match item:
            case SessionMessage(message=JSONRPCRequest(id=id_)):
                return item if self._is_first_asked(_comparable(id_)) else None
            case SessionMessage(message=JSONRPCNotification() as said):
                try:
                    needed = heeded(said)
                except Malformed:
                    self.skipped += 1
                    return None
                if needed is None:
                    return None
                if needed.method == "notifications/cancelled" and needed.params is not None:
                    self._asked.discard(_comparable(needed.params["requestId"]))
                return SessionMessage(needed, item.metadata)
            case _:
                return item

    def _is_first_asked(self, id_: str | int) -> bool:
        """Count a request of the server; False for one whose id has no answer yet."""
        if id_ in self._asked:
            return False
        self._asked.add(id_)
        if len(self._asked) > MOST_WAITING:
            self.end(f"it takes no answers: more than {MOST_WAITING} requests of its own wait")
            raise anyio.EndOfStream
        return True

    def _answered(self, item: SessionMessage | Exception) -> str | None:
        """The method that this answers, None if it is no answer that anybody here waits for.

        Answers to other requests are few; they count as unasked.
        """
        match item:
            case SessionMessage(message=JSONRPCResponse(id=id_) as answer):
                method = self._raw.pop(_comparable(id_), None)
                if method is not None:
                    answer.result = {**RAW[method], "_meta": {_UNREAD: answer.result}}
                return method
            case SessionMessage(message=JSONRPCError(id=str() | int() as id_)):
                return self._raw.pop(_comparable(id_), None)
            case _:
                return None

    def _bound_unasked(self) -> None:
        if self._unasked.exceeded(self._now()):
            self.end(
                f"it said more than {MOST_PER_S} things a second unasked, for too long:"
                " progress, changes, or log messages"
            )
            raise anyio.EndOfStream

    def said(self, item: SessionMessage) -> None:
        """See what the SDK says before the server does."""
        match item.message:
            case JSONRPCRequest(id=id_, method=method, params=params) if method in RAW:
                self._raw[_comparable(id_)] = method
                if method == "tools/call" and params is not None:
                    self._repeat_arguments(item, params)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": id_}):
                self._raw.pop(_comparable(id_), None)

    def sent(self, item: SessionMessage) -> None:
        """What was said has left."""
        match item.message:
            case JSONRPCResponse(id=id_) | JSONRPCError(id=str() | int() as id_):
                self._asked.discard(_comparable(id_))

    def not_sent(self, item: SessionMessage) -> None:
        """What was said did not leave."""
        if isinstance(item.message, JSONRPCRequest):
            self._raw.pop(_comparable(item.message.id), None)

    def _repeat_arguments(self, item: SessionMessage, params: dict[str, Any]) -> None:
        schema = self._schema_of(params["name"])
        match item.metadata:
            case ClientMessageMetadata(headers=dict() as headers) if (
                schema is not None
                and headers.get(MCP_PROTOCOL_VERSION_HEADER) in MODERN_PROTOCOL_VERSIONS
                and find_invalid_x_mcp_header(schema) is None
            ):
                arguments = params.get("arguments") or {}
                headers.update(mcp_param_headers(x_mcp_header_map(schema), arguments))


class Listener(Protocol):
    """Hears what a server says before the SDK does."""

    def heard(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        """What shall be seen of it, None for nothing; raises EndOfStream where it was the last."""

    def end(self) -> None:
        """Nothing will be heard any more."""


class Reading:
    """What the server says, as a listener lets it through."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], listener: Listener) -> None:
        self._stream = stream
        self._listener = listener

    async def receive(self) -> SessionMessage | Exception:
        """The next message that is needed; raises what the stream does at its end."""
        while True:
            try:
                item = await self._stream.receive()
            except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._listener.end()
                raise
            if (needed := self._listener.heard(item)) is not None:
                return needed

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> "Reading":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


class Writing:
    """What we say."""

    def __init__(self, stream: WriteStream[SessionMessage], tap: Tap) -> None:
        self._stream = stream
        self._tap = tap

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message; at the end of the stream raises what that does, for requests MCPError."""
        self._tap.said(item)
        try:
            await self._stream.send(item)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._tap.not_sent(item)
            if isinstance(item.message, JSONRPCRequest):
                raise MCPError(CONNECTION_CLOSED, "the connection is over", NOT_SENT) from error
            raise
        self._tap.sent(item)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()


def _comparable(id_: str | int) -> str | int:
    """Servers may answer 7 as "7"."""
    return int(id_) if isinstance(id_, str) and id_.isascii() and id_.isdigit() else id_
