"""Stands between a transport and the client of the SDK, which reads and checks too much too early.

Results of the methods in ``RAW`` pass the SDK's validation unread, as one bad part would cost the whole;
the end of the stream is noticed at once, and when the server was last heard. Public: ``Tap``, ``Unread``.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Self

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

MOST_UNASKED_PER_S: Final = 200
MOST_UNASKED_AT_ONCE: Final = 5_000
"""How many messages a server may send that are no answers: in the long run, and before it counts as long."""

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
        self.heard_at = now()
        self.ended = False
        self._now = now
        self._on_end = on_end
        self._schema_of = schema_of
        self._raw: dict[str | int, str] = {}
        self._unasked = 0.0
        self._unasked_at = self.heard_at

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

    def heard(self, item: SessionMessage | Exception) -> None:
        """See what the server says before the SDK does; raises EndOfStream if it is too much."""
        self.heard_at = self._now()
        if self._answered(item) is None:
            self._bound_unasked()

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
        """Count what is no answer; with time it is forgotten."""
        passed_s = self.heard_at - self._unasked_at
        self._unasked = max(0.0, self._unasked - passed_s * MOST_UNASKED_PER_S) + 1
        self._unasked_at = self.heard_at
        if self._unasked > MOST_UNASKED_AT_ONCE:
            self.end(
                f"it said more than {MOST_UNASKED_PER_S} things a second unasked, for too long:"
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


class Reading:
    """What the server says."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], tap: Tap) -> None:
        self._stream = stream
        self._tap = tap

    async def receive(self) -> SessionMessage | Exception:
        """The next message; raises what the stream does at its end."""
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._tap.end()
            raise
        self._tap.heard(item)
        return item

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
