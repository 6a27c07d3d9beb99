"""Speaks the protocol with one server through the SDK, in both its generations: handshake and stateless.

Imported late, as the SDK costs a second and 60 MB (see ``connection.load``). When to connect, list and
ask whether the server lives is decided in ``life``.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

from mcp.client import ClientSession
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    Implementation,
    ListToolsRequest,
    PaginatedRequestParams,
    RequestParamsMeta,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from session_runtime import __version__
from session_runtime.config.mcp import Protocol
from session_runtime.mcp.base import OnProgress
from session_runtime.mcp.faults import METHOD_NOT_FOUND, UNREADABLE, Fault
from session_runtime.mcp.tap import NOT_SENT, SchemaOf, Streams, Tap, Unread
from session_runtime.trace.traceparent import headers_of
from session_runtime.trace_context import TraceContext
from session_runtime.types import JsonObject

CALL_KEY: Final = "session-runtime/call"
"""Under this name of ``_meta`` each call has its key, the same for each attempt."""

_LISTEN_AGAIN_S: Final = 1.0
_LISTEN_AT_MOST_S: Final = 60.0
_OF_SDK: Final = re.compile("Connection closed$|SSE stream ")

_UNREAD_BY_SDK: Final = re.compile(
    "Failed to parse "
)  # what follows is said in the words of pydantic

FaultIn = Callable[[object], Fault | None]
"""Recognises what a transport says itself in the data of an error, instead of the server."""


class Client:
    """A connection that is ready for requests, made by ``connect``; they may come from any task."""

    def __init__(self, session: ClientSession, tap: Tap, fault_in: FaultIn) -> None:
        self._session = session
        self._tap = tap
        self._fault_in = fault_in

    @property
    def protocol(self) -> str:
        """The revision of the protocol that both speak."""
        return self._session.protocol_version or ""

    @property
    def server(self) -> tuple[str, str]:
        """The name and version that the server gives itself."""
        info = self._session.server_info
        return ("", "") if info is None else (info.name, info.version)

    @property
    def answered_at(self) -> float:
        """When the server last answered, by the event loop's clock."""
        return self._tap.answered_at

    @property
    def skipped(self) -> int:
        """How many things that it said unasked were malformed."""
        return self._tap.skipped

    @property
    def waiting(self) -> int:
        """How many lists and calls are unanswered."""
        return self._tap.waiting

    async def agree(self, agreeing: "Agreeing") -> None:
        """Find the revision that both speak; before that no other request can be made. Raises Fault."""
        with self._faults():
            match agreeing.protocol:
                case "handshake":
                    await self._session.initialize()
                case "stateless":
                    await self._session.discover()
                case "auto":
                    first = agreeing.probe_first
                    if not (first and await self._is_found_stateless(agreeing.probe_s)):
                        await self._shake_hands()

    async def _is_found_stateless(self, probe_s: float) -> bool:
        """Whether the server says so; nothing else that becomes of the question says more than no.

        Raises MCPError where no other question could be asked.
        """
        try:
            async with asyncio.timeout(probe_s):
                await self._session.discover()
        except (TimeoutError, ValidationError, RuntimeError):
            return False  # no answer, no fitting one, or no revision in common
        except MCPError as error:
            fault = self._fault_in(error.data)
            if self._tap.ended or (fault is not None and fault.kind == "unreachable"):
                raise
            return False
        return True

    async def _shake_hands(self) -> None:
        """Shake hands; a server that refuses it, but speaks the newer generation, says what it wants."""
        try:
            await self._session.initialize()
        except MCPError as error:
            if self._tap.ended or self._fault_in(error.data) is not None:
                raise
            try:
                await self._session.discover()
            except (MCPError, ValidationError, RuntimeError):
                raise error from None

    async def page(self, cursor: str | None) -> JsonObject:
        """One page of the list of tools, unread; raises Fault."""
        params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
        with self._faults():
            answer = await self._session.send_request(ListToolsRequest(params=params), Unread)
            return answer.raw

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        key: str,
        on_progress: OnProgress,
        state: str | None,
        trace: TraceContext | None,
    ) -> JsonObject:
        """Call a tool and give its result, unread; raises Fault. Cancelling tells the server, once.

        ``trace`` goes along in ``_meta``, as the protocol has it for every transport (SEP-414).
        """

        async def forward(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message)

        meta = cast(RequestParamsMeta, {CALL_KEY: key, **headers_of(trace)})
        params = CallToolRequestParams(
            name=tool, arguments=dict(arguments), request_state=state, _meta=meta
        )
        if self._tap.ended:
            raise Fault("unreachable", "the connection is over")
        with self._faults():
            answer = await self._session.send_request(
                CallToolRequest(params=params), Unread, progress_callback=forward
            )
            return answer.raw

    async def ping(self) -> None:
        """Ask whether the server lives; an error is an answer too. Raises Fault if it does not.

        A status that refuses the question comes from whoever stands in front as well: then it must list
        its tools.
        """
        try:
            with self._faults():
                if self._is_stateless:
                    await self._session.send_discover(self.protocol)
                else:
                    await self._session.send_ping()
        except Fault as fault:
            if fault.kind in ("lost", "unreachable", "expired", "late"):
                raise
            if fault.kind != "busy" and self._is_by_transport(fault):
                await self._list_as_sign()

    async def _list_as_sign(self) -> None:
        try:
            await self.page(None)
        except Fault as fault:
            if fault.kind != "busy" and self._is_by_transport(fault):
                raise

    def _is_by_transport(self, fault: Fault) -> bool:
        """Whether it was noticed on the way, and is no answer in the protocol."""
        cause = fault.__cause__
        return isinstance(cause, MCPError) and self._fault_in(cause.data) is not None

    async def watch(self, on_change: Callable[[], None]) -> None:
        """Tell of changes that a stateless server tells only those who listen for; ends if it tells none."""
        capabilities = self._session.server_capabilities
        tells = capabilities is not None and capabilities.tools and capabilities.tools.list_changed
        wait_s = _LISTEN_AGAIN_S
        while self._is_stateless and tells:
            try:
                async with listen(self._session, tools_list_changed=True) as changes:
                    on_change()  # what changed before is not told
                    async for _ in changes:
                        wait_s = _LISTEN_AGAIN_S
                        on_change()
            except ListenNotSupportedError:
                return
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    return
            except SubscriptionLost:
                pass
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LISTEN_AT_MOST_S)

    @property
    def _is_stateless(self) -> bool:
        return self.protocol in MODERN_PROTOCOL_VERSIONS

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except MCPError as error:
            raise self._fault_in(error.data) or _fault_of(error, self._tap) from error
        except ValidationError as error:
            raise Fault("unreadable", "its answer does not fit the protocol") from error


@asynccontextmanager
async def connect(
    streams: Streams, agreeing: "Agreeing", watching: "Watching", fault_in: FaultIn
) -> AsyncIterator[Client]:
    """Open a connection and agree on a revision of the protocol.

    Raises what opening ``streams`` raises, mostly in groups, and Fault where the server refuses.
    """

    async def handle(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            watching.on_change()

    tap = Tap(asyncio.get_running_loop().time, watching.on_end, watching.schema_of)
    async with streams as (read, write):
        info = Implementation(name="session-runtime", version=__version__)
        async with ClientSession(
            tap.reading(read), tap.writing(write), message_handler=handle, client_info=info
        ) as session:
            client = Client(session, tap, fault_in)
            await client.agree(agreeing)
            yield client


@dataclass(frozen=True, slots=True)
class Agreeing:
    """How to find the revision of the protocol that both speak.

    With ``auto`` a server that does not answer within ``probe_s`` that it is stateless is shaken hands with;
    without ``probe_first`` it is asked that only when it refuses the handshake.
    """

    protocol: Protocol
    probe_s: float
    probe_first: bool


@dataclass(frozen=True, slots=True)
class Watching:
    """Who is told of what a server does unasked, and knows its tools.

    ``on_change``: its list of tools is another one; ``on_end``: it will not be heard any more, and why, if
    that is known.
    """

    on_change: Callable[[], None]
    on_end: Callable[[str], None]
    schema_of: SchemaOf


def _fault_of(error: MCPError, tap: Tap) -> Fault:
    if error.data is NOT_SENT:
        return Fault("unreachable", error.message, code=error.code)
    match error.code:
        case code if code == CONNECTION_CLOSED and (tap.ended or _OF_SDK.match(error.message)):
            return Fault("lost", error.message, code=code)
        case code if code == REQUEST_TIMEOUT:
            return Fault("late", error.message, code=code)
        case code if code == UNREADABLE and _UNREAD_BY_SDK.match(error.message):
            return Fault("unreadable", "its answer does not fit the protocol", code=code)
        case code if code == UNREADABLE:
            return Fault("unreadable", error.message, code=code)
        case code:
            return Fault("error", error.message, code=code)
