"""``/mcp``: lets requests of MCP clients in, bounded, and hands them on; what they mean is not known here."""

from collections.abc import Awaitable
from typing import Final

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from session_runtime.errors import RequestError
from session_runtime.transports.http.body import read_body
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate

PATH: Final = "/mcp"
PRINCIPAL: Final = "session_runtime.principal"
"""Where the application behind this finds the principal that a request was let in as."""

BODY: Final = "session_runtime.body"
"""Where it finds the body, which it can also read; empty if there is none."""

MOST_BODY_BYTES: Final = 1024 * 1024
MOST_VALUES: Final = 50_000
"""A message is read on the event loop, so that it may hold no more, and have no more values."""


def mcp_routes(
    app: ASGIApp | None, door: HttpDoor, gate: Gate, limits: HttpLimits
) -> tuple[Route, ...]:
    """The route to an MCP application; none if there is no such application."""
    if app is None:
        return ()
    return (Route(PATH, _Mcp(app, door, gate, limits), methods=["GET", "POST", "DELETE"]),)


class _Mcp:
    """The door in front of an MCP application; open as long as ``http.mcp`` is on."""

    def __init__(self, app: ASGIApp, door: HttpDoor, gate: Gate, limits: HttpLimits) -> None:
        self._app = app
        self._door = door
        self._gate = gate
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, let the principal in, and pass all of it on."""
        if not self._door.live.snapshot.settings.http.mcp:
            raise RequestError(
                "the MCP server is off: an operator can set http.mcp = true",
                code="request.not_found",
            )
        body = b""
        if scope["method"] == "POST":
            body = await self._read(scope, receive)
            receive = _after(body, receive)
        principal = self._gate.admit(scope)
        await self._app({**scope, PRINCIPAL: principal, BODY: body}, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        most = min(MOST_BODY_BYTES, self._limits.max_body_bytes)
        try:
            body = await read_body(Request(scope, receive), most, self._limits.body_timeout_s)
        except RequestError as error:
            if error.code != "request.too_large":
                raise
            raise _too_large(f"more than {most} bytes") from error
        if sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
            raise _too_large(f"more than {MOST_VALUES} values")
        return body


def _too_large(size: str) -> RequestError:
    message = f"a message of MCP has {size}, which is the most that is read"
    return RequestError(message, code="request.too_large")


def _after(body: bytes, receive: Receive) -> Receive:
    """A channel that gives the body, which was read already, and then what else comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    def next_message() -> Awaitable[Message]:
        return _given(waiting.pop()) if waiting else receive()

    return next_message


async def _given(message: Message) -> Message:
    return message
