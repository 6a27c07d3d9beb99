"""The runtime as an MCP server over HTTP, in both eras of the protocol; imported late.

In the handshake era each client has a session, in the other each request stands alone. Who a request comes
from was decided before, and how large it may be.
"""

import asyncio
import inspect
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
import mcp_types as types
import pydantic_core
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_loop
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from session_runtime.transports.mcp.callers import Caller, Callers, Entry
from session_runtime.transports.mcp.endpoint import BODY, ENTRY, PRINCIPAL, SessionLimits
from session_runtime.transports.mcp.exchange import EXCHANGE, Exchange
from session_runtime.transports.mcp.server import Clients, Context, OneClient, ToolServer, options
from session_runtime.transports.mcp.session import CallerSession
from session_runtime.transports.mcp.watching import tell_of_changes
from session_runtime.types import Principal

NO_BEGINNING: Final = "without a session only initialize is answered: begin with that"
ID_IN_USE: Final = "another request of this session has this id: give each one an id of its own"
NOBODY_S_SESSION: Final = "there is no session of this id: begin with initialize"
TOO_MANY: Final = "too many sessions are open: close some, or try again later"
WATCHER_OF_STREAMS: Final = "_shutdown_watcher"
_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Session:
    """An open session: who opened it, the way to it, how much of it is in use, its requests by id."""

    owner: Entry
    transport: StreamableHTTPServerTransport
    in_use: int = 0
    exchanges: dict[str, Exchange] = field(default_factory=dict)

    def begin(self, request_id: str) -> Exchange:
        """Use an id until the exchange is over."""
        exchange = Exchange(partial(self._over, request_id))
        self.exchanges[request_id] = exchange
        return exchange

    def _over(self, request_id: str, exchange: Exchange) -> None:
        if self.exchanges.get(request_id) is exchange:
            del self.exchanges[request_id]


class HttpSessions:
    """Answers the requests to ``/mcp``; a session is only for the principal that opened it."""

    def __init__(self, callers: Callers, limits: SessionLimits) -> None:
        self._callers = callers
        self._limits = limits
        self._sessions: dict[str, _Session] = {}
        self._bus = InMemorySubscriptionBus()
        self._listening = _Listeners(callers, ListenHandler(self._bus), limits.most_listening)
        server = self._server(_Strangers(callers), None)
        self._alone = StreamableHTTPSessionManager(server, stateless=True)
        self._group: TaskGroup | None = None
        self._admitting = anyio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take requests meanwhile; all sessions are ended on leaving."""
        async with self._alone.run(), anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._publish_changes)
            try:
                yield
            finally:
                self._group = None
                self._listening.close()
                for session_id in list(self._sessions):
                    await self._end(session_id)
                _end_watcher_of_streams()
                group.cancel_scope.cancel()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of the principal in ``scope``; a session is for the key that opened it."""
        headers = Headers(scope=scope)
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._alone.handle_request(scope, receive, send)
            return
        entry: Entry = scope[ENTRY]
        session_id = headers.get(MCP_SESSION_ID_HEADER)
        if session_id is None:
            await self._open(scope, receive, send)
            return
        session = self._sessions.get(session_id)
        if session is None or session.owner != entry:
            await _error(NOBODY_S_SESSION, 404)(scope, receive, send)
            return
        self._sessions[session_id] = self._sessions.pop(session_id)  # the longest idle comes first
        await self._serve(session, scope, receive, send)
        if session.transport.is_terminated:
            await self._end(session_id)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a new session answer a good ``initialize``; if it refuses, it ends again.

        Only once it is answered an older session goes for it.
        """
        if not _begins(scope[BODY]):
            await _error(NO_BEGINNING, 400)(scope, receive, send)
            return
        entry: Entry = scope[ENTRY]
        session_id = await self._admit(entry, scope[PRINCIPAL])
        if session_id is None:
            await _error(TOO_MANY, 503)(scope, receive, send)
            return
        status = _Status(send, partial(self._make_room, entry.name))
        try:
            await self._serve(self._sessions[session_id], scope, receive, status.send)
        finally:
            if not status.good:
                with anyio.CancelScope(shield=True):
                    await self._end(session_id)

    async def _admit(self, entry: Entry, principal: Principal) -> str | None:
        """Start a session, one at a time so that all are counted; None if there is no room for it."""
        async with self._admitting:
            if self._group is None or not self._has_room(entry.name):
                return None
            session_id = secrets.token_hex(16)
            await self._group.start(self._run, session_id, entry, principal)
            return session_id

    async def _serve(self, session: _Session, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = _id_of(scope[BODY])
        if request_id in session.exchanges:
            await _error(ID_IN_USE, 400)(scope, receive, send)
            return
        session.in_use += 1
        try:
            with ExitStack() as stack:
                if request_id is not None:
                    exchange = session.begin(request_id)
                    stack.enter_context(exchange.heard())
                    scope = {**scope, EXCHANGE: exchange}
                await session.transport.handle_request(scope, receive, send)
        finally:
            session.in_use -= 1

    def _has_room(self, owner: str) -> bool:
        """Whether there may be one more, perhaps in the place of one that is idle."""
        own = [each for each in self._sessions.values() if each.owner.name == owner]
        to_end = len(own) + 1 - self._limits.most_per_principal
        if to_end > sum(not each.in_use for each in own):
            return False
        return len(self._sessions) - max(0, to_end) < self._limits.most

    async def _make_room(self, owner: str) -> None:
        """End the principal's longest idle sessions while it has too many."""
        own = [key for key, each in self._sessions.items() if each.owner.name == owner]
        idle = [key for key in own if not self._sessions[key].in_use]
        for key in idle[: max(0, len(own) - self._limits.most_per_principal)]:
            await self._end(key)

    async def _run(
        self,
        session_id: str,
        entry: Entry,
        principal: Principal,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        transport = StreamableHTTPServerTransport(session_id, idle_timeout=self._limits.idle_s)
        with self._callers.client() as client_id:
            caller = CallerSession(self._callers, client_id, remembers=True)
            client = OneClient(caller, _caller, lambda _: self._in_force(entry))
            try:
                await caller.prepare(Caller(principal))
                server = self._server(client, caller.directory(Caller(principal)))
                client.attach(server)
                async with transport.connect() as (requests, answers):
                    self._sessions[session_id] = _Session(entry, transport)
                    task_status.started()
                    async with self._watched(session_id, caller, client, entry):
                        with transport.idle_scope or anyio.CancelScope():
                            await serve_loop(
                                server,
                                requests,
                                answers,
                                lifespan_state={},
                                session_id=session_id,
                                init_options=options(server),
                            )
            except Exception:  # noqa: BLE001 - one session must not take the others with it
                _log.exception("an MCP session failed")
            finally:
                caller.close()
                with anyio.CancelScope(shield=True):
                    await self._end(session_id)

    @asynccontextmanager
    async def _watched(
        self, session_id: str, caller: CallerSession, client: OneClient, owner: Entry
    ) -> AsyncIterator[None]:
        """Tell the client of changes meanwhile, and end the session once its key is gone."""

        async def watch() -> None:
            await tell_of_changes(self._callers, caller, client, lambda: self._in_force(owner))
            await self._end(session_id)

        watching = asyncio.create_task(watch(), name="watch an MCP session")
        try:
            yield
        finally:
            watching.cancel()

    def _in_force(self, owner: Entry) -> Caller | None:
        """Who opened a session, as it is now; None if it may not come in any more."""
        principal = self._callers.principal(owner)
        is_on = self._callers.generation.settings.http.mcp
        return Caller(principal) if principal is not None and is_on else None

    def _server(self, clients: Clients, instructions: str | None) -> Server[Any]:
        name = self._callers.generation.settings.runtime.name
        return ToolServer(clients, self._bus).build(name, instructions, self._listening.listen)

    async def _end(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None and not session.transport.is_terminated:
            await session.transport.terminate()

    async def _publish_changes(self) -> None:
        """Tell whoever listens in the era without sessions that lists may have changed."""
        seen = self._callers.generation.number
        while True:
            seen = (await self._callers.generations.newer_than(seen)).number
            await self._bus.publish(ToolsListChanged())


class _Strangers:
    """Clients of the era without sessions: each request is one of its own."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    def session(self, context: Context) -> CallerSession:
        """A session that remembers nothing."""
        del context
        return CallerSession(self._callers, f"mcp_{secrets.token_hex(10)}", remembers=False)

    def caller(self, context: Context) -> Caller:
        """Who was let in with this request."""
        return _caller(context)

    def returning(self, context: Context) -> Caller | None:
        """The same: nobody can be asked, so that no time passes."""
        return _caller(context)


class _Listeners:
    """Those who listen for changes in the era without sessions; so many of each principal."""

    def __init__(self, callers: Callers, handler: ListenHandler, most_each: int) -> None:
        self._callers = callers
        self._handler = handler
        self._most_each = most_each
        self._listening: Counter[str] = Counter()

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Tell of changes until the client goes, or the key that it came with is gone."""
        entry: Entry = _request(context).scope[ENTRY]
        name = entry.name
        if self._listening[name] >= self._most_each:
            raise MCPError(
                types.INTERNAL_ERROR, f"{self._most_each} requests of yours listen already"
            )
        self._listening[name] += 1
        listening = asyncio.create_task(self._handler(context, params), name="listen for changes")
        gone = asyncio.create_task(self._gone(entry), name="watch who listens")
        try:
            await asyncio.wait((listening, gone), return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                return listening.result()
            raise MCPError(types.INVALID_REQUEST, "whoever listens here may not come in any more")
        finally:
            self._listening[name] -= 1
            for task in (listening, gone):
                task.cancel()

    def close(self) -> None:
        """Let all who listen go."""
        self._handler.close()

    async def _gone(self, entry: Entry) -> None:
        while (
            self._callers.principal(entry) is not None
            and self._callers.generation.settings.http.mcp
        ):
            await self._callers.generations.newer_than(self._callers.generation.number)


class _Status:
    """Passes an answer on and looks at its status; ``good`` if there was an answer below 400.

    ``before_good`` is awaited before such an answer begins.
    """

    def __init__(self, send: Send, before_good: Callable[[], Awaitable[None]]) -> None:
        self._send = send
        self._before_good = before_good
        self.good = False

    async def send(self, message: Message) -> None:
        """Pass on one part of the answer."""
        if message["type"] == "http.response.start":
            self.good = message["status"] < 400
            if self.good:
                await self._before_good()
        await self._send(message)


def _begins(body: bytes) -> bool:
    """Whether this is an ``initialize`` that a session can begin with."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(body, by_name=False)
        if not isinstance(message, types.JSONRPCRequest) or message.method != "initialize":
            return False
        types.InitializeRequestParams.model_validate(message.params, by_name=False)
    except ValueError:
        return False
    return True


def _id_of(body: bytes) -> str | None:
    """The id of a request, as the SDK tells requests apart; None for anything else."""
    try:
        message = pydantic_core.from_json(body)
    except ValueError:
        return None
    match message:
        case {"method": _, "id": str() | int() as request_id}:
            return str(request_id)
    return None


def _caller(context: Context) -> Caller:
    """Who was let in with a request."""
    principal: Principal = _request(context).scope[PRINCIPAL]
    return Caller(principal)


def _request(context: Context) -> Request:
    request: Request | None = context.request
    if request is None:
        raise MCPError(types.INVALID_REQUEST, "this came by no request")
    return request


def _end_watcher_of_streams() -> None:
    """End the task that the SDK's library for streams starts once per loop and lets run for ever."""
    for task in asyncio.all_tasks():
        coroutine = task.get_coro()
        if inspect.iscoroutine(coroutine) and coroutine.__qualname__ == WATCHER_OF_STREAMS:
            task.cancel()


def _error(message: str, status: int) -> Response:
    """Answer as the protocol does what is about no request of it."""
    body = types.JSONRPCError(
        jsonrpc="2.0", id=None, error=types.ErrorData(code=types.INVALID_REQUEST, message=message)
    )
    return Response(
        body.model_dump_json(by_alias=True, exclude_unset=True),
        status,
        media_type="application/json",
    )
