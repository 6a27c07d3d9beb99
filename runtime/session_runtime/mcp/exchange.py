"""What a request to a server asks, and what a response to it says, as far as HTTP tells.

What follows from it is decided in ``http``.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID

from session_runtime.trace.traceparent import read_context
from session_runtime.trace_context import TraceContext

MAX_RETRY_AFTER_S: Final = 3600.0
_OF_BODY: Final = frozenset(
    {b"content-length", b"content-type", b"transfer-encoding", b"content-encoding"}
)
_JSON: Final = "application/json"
_OF_JSON: Final = (b"content-type", b"application/json")
_PLAIN: Final = frozenset({"", "identity"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A message to a server: its ``method``, its ``id`` if it waits for an answer, what it is part of."""

    method: str = ""
    id: str | int | None = None
    trace: TraceContext | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """The protocol's error in the body of a refusal, and the ``id`` of the request that it gives."""

    code: int
    message: str
    id: object


def asked_in(request: httpx2.Request) -> Asked:
    """What the message in a request's body asks, which was read."""
    members = _members(request.content)
    match members:
        case {"method": str() as method, "id": str() | int() as id_}:
            return Asked(method, id_, _trace_in(members))
        case {"method": str() as method}:
            return Asked(method)
        case _:
            return Asked()


def _trace_in(members: object) -> TraceContext | None:
    match members:
        case {"params": {"_meta": {"traceparent": str() as parent, **others}}}:
            state = others.get("tracestate")
            return read_context([parent], [state] if isinstance(state, str) else [])
        case _:
            return None


def cancelled_by(request: httpx2.Request) -> str | int | None:
    """The request that a notification in a request's body cancels; None if it is none."""
    match _members(request.content):
        case {"method": "notifications/cancelled", "params": {"requestId": str() | int() as id_}}:
            return id_
        case _:
            return None


def error_in(response: httpx2.Response, body: bytes | None) -> Refusal | None:
    """The protocol's error in the body of a refusal; None if there is none."""
    if body is None or type_of(response) != _JSON:
        return None
    match _members(body):
        case {"error": {"code": int() as code, "message": str() as message}, **others}:
            return Refusal(code, message, others.get("id"))
        case _:
            return None


def type_of(response: httpx2.Response) -> str:
    """The type of a response's body, without parameters."""
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower()


def is_plain(response: httpx2.Response) -> bool:
    """Whether the body is not compressed."""
    return response.headers.get("content-encoding", "").strip().lower() in _PLAIN


def took_no_request(response: httpx2.Response) -> bool:
    """Whether a refusal says that the request was not looked at and may come again later.

    Status 503 alone does not: gateways give it as well if the server behind them breaks during a request.
    """
    status = response.status_code
    return status == 429 or (status == 503 and bool(response.headers.get("retry-after")))


def retry_after(response: httpx2.Response) -> float | None:
    """The wait that the server asks for, if it says so in seconds."""
    text = response.headers.get("retry-after", "")
    return min(float(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() else None


async def read(response: httpx2.Response, most: int) -> bytes | None:
    """The whole body; None if it is longer than that."""
    pieces, size = [], 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > most:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def with_body(request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
    """The response with this JSON instead."""
    headers = [*_kept(response.headers), _OF_JSON]
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


def moved_to(request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Where on the same host a redirection leads; None for elsewhere, or where the message would be lost.

    The default port of https counts as the same host for one that is spoken to without encryption.
    """
    if response.status_code not in (307, 308) and request.method != "GET":
        return None
    try:
        to = request.url.join(response.headers.get("location", ""))
    except httpx2.InvalidURL:
        return None
    here = request.url
    same = (to.scheme, to.port) == (here.scheme, here.port)
    upgraded = (here.scheme, to.scheme) == ("http", "https") and to.port is here.port is None
    is_ours = to.host == here.host and not to.userinfo and to != here
    return to if is_ours and (same or upgraded) else None


def redirected(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """A redirection without its body, which the SDK would read without bounds."""
    headers = [(k, v) for k, v in response.headers.raw if k.lower() == b"location"]
    return httpx2.Response(response.status_code, headers=headers, request=request)


def has_usable_session(response: httpx2.Response) -> bool:
    """Whether the session's id, if there is one, can be sent in a header again."""
    id_: str = response.headers.get(MCP_SESSION_ID, "")
    return id_.isascii() and (id_.isprintable() or not id_)


def _kept(headers: httpx2.Headers) -> list[tuple[bytes, bytes]]:
    return [(k, v) for k, v in headers.raw if k.lower() not in _OF_BODY]


def _members(body: bytes) -> dict[str, Any]:
    """The members of the object in a body; none if there is no object."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
