"""One server of the SDK for one client, or for all requests that have no session; imported late.

The low-level server is used: what it is told is what a ``CallerSession`` says.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, Protocol

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, SubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from session_runtime import __version__
from session_runtime.transports.mcp.callers import Caller
from session_runtime.transports.mcp.consent import exchange_of, person_of
from session_runtime.transports.mcp.outcome import Outcome
from session_runtime.transports.mcp.progress import ProgressRelay
from session_runtime.transports.mcp.session import CallerSession
from session_runtime.transports.mcp.wire import page, result

Context = ServerRequestContext[Any, Any]
Listen = Callable[
    [Context, types.SubscriptionsListenRequestParams], Awaitable[types.SubscriptionsListenResult]
]
FAILED: Final = Outcome("error", "The runtime failed; its log has the details.")
_log = logging.getLogger(__name__)


class Clients(Protocol):
    """Whose request it is: the client's session, and who calls."""

    def session(self, context: Context) -> CallerSession:
        """The session of the client; one that remembers nothing where there is none."""

    def caller(self, context: Context) -> Caller:
        """Who calls, as it was let in with this very request."""

    def returning(self, context: Context) -> Caller | None:
        """Who calls, as it is now; None if it may not come in any more."""


class OneClient:
    """The client at the other end of one pipe or one HTTP session, and how it is told of changes.

    ``caller`` says who calls with a request, ``returning`` who that is by now, if it may still come in.
    """

    def __init__(
        self,
        session: CallerSession,
        caller: Callable[[Context], Caller],
        returning: Callable[[Context], Caller | None],
    ) -> None:
        self._session = session
        self._caller = caller
        self._returning = returning
        self.bus: SubscriptionBus = InMemorySubscriptionBus()
        self._last: Context | None = None

    def session(self, context: Context) -> CallerSession:
        """The same session for every request."""
        del context
        return self._session

    def caller(self, context: Context) -> Caller:
        """Who calls, with every request anew."""
        return self._caller(context)

    def returning(self, context: Context) -> Caller | None:
        """Who calls, as it is now."""
        return self._returning(context)

    def attach(self, server: Server[Any]) -> None:
        """Learn from this server how to reach a client of the handshake era."""
        server.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._arrived
        )

    async def tell(self) -> None:
        """Say that the list of tools has changed: by itself, or to those who listen for it."""
        if self._last is not None:
            await self._last.session.send_tool_list_changed()
        await self.bus.publish(ToolsListChanged())

    async def _arrived(self, context: Context, params: types.NotificationParams) -> None:
        del params
        self._last = context


class ToolServer:
    """The requests of MCP that are answered; everything else is "method not found"."""

    def __init__(self, clients: Clients, bus: SubscriptionBus) -> None:
        self._clients = clients
        self._bus = bus

    def build(self, name: str, instructions: str | None, listen: Listen) -> Server[Any]:
        """The server of the SDK; ``listen`` answers those who want to be told of changes."""
        return Server(
            name,
            version=__version__,
            instructions=instructions,
            get_tool_input_schema=_no_headers,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_subscriptions_listen=listen,
        )

    async def list_tools(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """One page of what the client may call now."""
        session, caller = self._clients.session(context), self._clients.caller(context)
        await session.prepare(caller)
        view = session.show(caller)
        return page(view.turn.tools, None if params is None else params.cursor)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool; whatever becomes of it is a result."""
        try:
            outcome = await self._call(context, params)
        except MCPError:
            raise
        except Exception:  # noqa: BLE001 - the SDK would tell the client what a fault of ours says
            _log.exception("a call of an MCP client failed inside the runtime")
            outcome = FAILED
        if outcome.loaded:
            await self._tell(context)
        return result(outcome)

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> Outcome:
        session, caller = self._clients.session(context), self._clients.caller(context)
        arguments = params.arguments or {}
        async with AsyncExitStack() as stack:
            report = None
            if progress_token_from_params(context.params) is not None:
                relay = ProgressRelay(context.session.report_progress)
                report = await stack.enter_async_context(relay.running())
            if (exchange := exchange_of(context)) is not None:
                stack.enter_context(exchange.held())
            person = person_of(context, partial(self._clients.returning, context))
            return await session.call(caller, params.name, arguments, report, person)

    async def _tell(self, context: Context) -> None:
        """Say before the result of a call that it made tools callable."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            await self._bus.publish(ToolsListChanged())
            return
        await context.session.send_notification(
            types.ToolListChangedNotification(), related_request_id=context.request_id
        )


def options(server: Server[Any]) -> InitializationOptions:
    """What a client of the handshake era is told at the beginning: the list of tools may change."""
    return server.create_initialization_options(NotificationOptions(tools_changed=True))


def _no_headers(name: str) -> None:
    """No argument is taken from a header, so none is compared with one."""
    del name
