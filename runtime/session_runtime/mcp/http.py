"""Streamable HTTP for the client of the SDK: what fails is one request, never the connection (RTE-6).

Below the SDK stands a transport of our own: the SDK ends all calls of a connection, and cancels whoever
opened it, when one request fails in the network; and it forgets what a refusal says. Here every failure
becomes the answer to its request, an error with a mark that only this connection knows. Public:
``HttpTransport``.
"""

import json
import ssl
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from session_runtime.mcp.events import Events, Skips, is_message
from session_runtime.mcp.faults import METHOD_NOT_FOUND, Fault, Kind
from session_runtime.mcp.framing import MAX_LINE_BYTES
from session_runtime.mcp.own_errors import OwnErrors
from session_runtime.mcp.tap import StreamPair
from session_runtime.threads import aside

MAX_ANSWER_BYTES: Final = MAX_LINE_BYTES
MAX_REFUSAL_BYTES: Final = 65_536
MAX_RETRY_AFTER_S: Final = 3600.0
GOODBYE_S: Final = 2.0
EVENTS: Final = "text/event-stream"
_LISTEN: Final = "subscriptions/listen"
_METHOD: Final = "mcp-method"
_PLAIN: Final = frozenset({"", "identity"})
_NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_STATUS: Final = 502


class HttpTransport:
    """Speaks with the server at ``url``; ``async with`` gives the streams that a session of the SDK takes.

    ``connect_s`` bounds connecting, sending, and everything that has no answer; ``silence_s`` how long an
    answer may say nothing. Redirects are followed within the same host only; proxies of the environment
    are not used. Leaving takes GOODBYE_S at most. ``below`` stands in for the network.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        connect_s: float,
        silence_s: float,
        below: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = url
        self._headers = {"Accept-Encoding": "identity", **headers}
        self._timeouts = _Timeouts(connect_s, silence_s)
        self._below = below
        self._own = OwnErrors()
        self._skips = Skips()

    @property
    def skipped(self) -> int:
        """How many events of its streams were no messages."""
        return self._skips.count

    def fault_in(self, data: object) -> Fault | None:
        """The fault that an error of this transport tells in its data; None for errors of the server."""
        return self._own.fault_in(data)

    async def __aenter__(self) -> StreamPair:
        below = self._below or httpx2.AsyncHTTPTransport(
            verify=await aside("certificates", self._certificates), trust_env=False
        )
        self._client = httpx2.AsyncClient(
            transport=_Answering(below, self._timeouts, self._own, self._skips),
            headers=self._headers,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
            follow_redirects=False,
        )
        self._streams = streamable_http_client(
            self._url, http_client=self._client, max_sse_event_size=MAX_ANSWER_BYTES
        )
        return await self._streams.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        try:
            return await self._streams.__aexit__(kind, error, trace)
        finally:
            await self._client.aclose()

    def _certificates(self) -> ssl.SSLContext:
        if self._url.lower().startswith("https:"):
            return httpx2.create_ssl_context()
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # plain http: trusts nobody, reads no file


class _Timeouts:
    """How long each kind of request may take."""

    def __init__(self, connect_s: float, silence_s: float) -> None:
        self._connect_s = connect_s
        self._silence_s = silence_s

    def of(self, request: httpx2.Request) -> httpx2.Timeout:
        """Only what answers a request is worth waiting for, and only a stream of news for ever."""
        if request.method == "DELETE":
            return httpx2.Timeout(GOODBYE_S)
        if request.method == "GET" or request.headers.get(_METHOD) == _LISTEN:
            return httpx2.Timeout(self._connect_s, read=None)
        if _is_request(request):
            return httpx2.Timeout(self._connect_s, read=self._silence_s)
        return httpx2.Timeout(self._connect_s)


class _Answering(httpx2.AsyncBaseTransport):
    """Answers each request, whatever happens to it below."""

    def __init__(
        self,
        below: httpx2.AsyncBaseTransport,
        timeouts: _Timeouts,
        own: OwnErrors,
        skips: Skips,
    ) -> None:
        self._below = below
        self._timeouts = timeouts
        self._own = own
        self._skips = skips

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; raises nothing that a network or a server could cause."""
        request.extensions["timeout"] = self._timeouts.of(request).as_dict()
        try:
            response = await self._below.handle_async_request(request)
        except httpx2.TransportError as error:
            return self._failed(request, error)
        try:
            return await self._checked(request, response)
        except httpx2.TransportError as error:
            await response.aclose()
            return self._failed(request, error)
        except BaseException:
            await response.aclose()
            raise

    async def _checked(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Let an event stream through; read what is no stream, in bounds, and tell what it refuses."""
        if request.method == "GET" or 300 <= response.status_code < 400:
            return await self._news(request, response)
        if response.headers.get("content-encoding", "").strip().lower() not in _PLAIN:
            await response.aclose()
            return self._error(
                request, "unreadable", "its answer is compressed, which nobody asked for"
            )
        if response.status_code < 300 and _type(response) == EVENTS:
            return self._events(request, response)
        most = MAX_ANSWER_BYTES if response.status_code < 300 else MAX_REFUSAL_BYTES
        body = await _read(response, most)
        await response.aclose()
        if response.status_code >= 400:
            code = _error_code(response, body)
            if code is None or (response.status_code == 404 and code != METHOD_NOT_FOUND):
                return self._refused(request, response)
        if body is None:
            return self._error(request, "unreadable", f"its answer has more than {most} bytes")
        if response.status_code < 300 and _is_request(request) and not is_message(body):
            return self._error(request, "unreadable", "its answer is no message")
        body = _addressed(request, body)
        kept = [(k, v) for k, v in response.headers.raw if k.lower() not in _OF_BODY]
        return httpx2.Response(response.status_code, headers=kept, content=body, request=request)

    async def _news(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """The stream of what a server says unasked, unless that was too much of what nobody can read."""
        if response.status_code >= 300 or _type(response) != EVENTS:
            return response
        if self._skips.too_many:
            await response.aclose()
            return httpx2.Response(405, request=request)
        return self._events(request, response)

    def _events(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        response.request = request
        id_ = _members(request.content).get("id") if request.method == "POST" else None
        return Events(response, id_, self._own, self._skips).as_response()

    def _refused(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        status = response.status_code
        said = f"it answered with status {status}"
        if status == 404 and MCP_SESSION_ID in request.headers:
            return self._error(request, "expired", f"{said}: it no longer knows the session")
        if _took_no_request(response):
            return self._error(request, "busy", said, _retry_after(response))
        if status in (401, 403):
            return self._error(
                request, "error", f"{said}: it does not accept the headers configured"
            )
        if status >= 500:
            return self._error(request, "late", said)
        if status == 404:
            said += ": is the path of the url right? It often ends with /mcp"
        return self._error(request, "error", said)

    def _failed(self, request: httpx2.Request, error: httpx2.TransportError) -> httpx2.Response:
        kind: Kind = "unreachable" if isinstance(error, _NOT_SENT) else "lost"
        if isinstance(error, httpx2.ReadTimeout):
            kind = "late"
        return self._error(request, kind, f"{type(error).__name__}: {error}"[:300])

    def _error(
        self, request: httpx2.Request, kind: Kind, said: str, retry_after_s: float | None = None
    ) -> httpx2.Response:
        error = self._own.error(kind, said, retry_after_s)
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(_STATUS, json=body, request=request)

    async def aclose(self) -> None:
        """Close what is below."""
        await self._below.aclose()


_OF_BODY: Final = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})


async def _read(response: httpx2.Response, most: int) -> bytes | None:
    """The whole body; None if it is longer than that."""
    pieces, size = [], 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > most:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _is_request(request: httpx2.Request) -> bool:
    """Whether the message in the body waits for an answer."""
    return request.method == "POST" and {"id", "method"} <= _members(request.content).keys()


def _addressed(request: httpx2.Request, body: bytes) -> bytes:
    """The answer under the id of its request: the SDK waits for ever if a server gives another, or none.

    Long answers are left alone, as reading them twice would take too long.
    """
    answer = _members(body) if len(body) <= MAX_REFUSAL_BYTES else {}
    message = _members(request.content) if answer else {}
    if "id" in message and ("result" in answer or "error" in answer):
        if answer.get("id") != message["id"]:
            return json.dumps({**answer, "id": message["id"]}).encode()
    return body


def _members(body: bytes) -> dict[str, Any]:
    """The members of the object in a body; none if there is no object."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _error_code(response: httpx2.Response, body: bytes | None) -> int | None:
    """The code of the protocol's error in the body of a refusal; None if there is none."""
    if body is None or _type(response) != "application/json":
        return None
    match _members(body):
        case {"error": {"code": int() as code}}:
            return code
        case _:
            return None


def _type(response: httpx2.Response) -> str:
    value: str = response.headers.get("content-type", "")
    return value.partition(";")[0].strip().lower()


def _took_no_request(response: httpx2.Response) -> bool:
    """Whether a refusal says that the request was not looked at and may come again later.

    Status 503 alone does not: gateways give it as well if the server behind them breaks during a request.
    """
    status = response.status_code
    return status == 429 or (status == 503 and bool(response.headers.get("retry-after")))


def _retry_after(response: httpx2.Response) -> float | None:
    """The wait that the server asks for, if it says so in seconds."""
    text = response.headers.get("retry-after", "")
    return min(float(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdigit() else None
