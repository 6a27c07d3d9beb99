"""Streamable HTTP for the client of the SDK: what fails is one request, never the connection (RTE-6).

Below the SDK stands a transport of our own: the SDK ends all calls of a connection, and cancels whoever
opened it, when one request fails in the network; and it forgets what a refusal says. Here every failure
becomes the answer to its request, an error with a mark that only this connection knows. Public:
``HttpTransport``.
"""

import asyncio
import ssl
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from json import dumps
from types import TracebackType
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from session_runtime.mcp.answers import Answers
from session_runtime.mcp.backoff import Backoff
from session_runtime.mcp.events import CHANGED, Events, Streams, taken_up
from session_runtime.mcp.exchange import (
    Asked,
    Refusal,
    asked_in,
    cancelled_by,
    error_in,
    has_usable_session,
    is_plain,
    moved_to,
    read,
    redirected,
    retry_after,
    took_no_request,
    type_of,
    with_body,
)
from session_runtime.mcp.faults import INVALID_PARAMS, METHOD_NOT_FOUND, Fault, Kind
from session_runtime.mcp.framing import MAX_LINE_BYTES
from session_runtime.mcp.messages import NoMessage, to_line
from session_runtime.mcp.own_errors import OwnErrors
from session_runtime.mcp.tap import Reading, StreamPair
from session_runtime.threads import aside
from session_runtime.trace.traceparent import headers_of

MAX_ANSWER_BYTES: Final = MAX_LINE_BYTES
MAX_REFUSAL_BYTES: Final = 65_536
GOODBYE_S: Final = 2.0
MAX_REDIRECTS: Final = 5
EVENTS: Final = "text/event-stream"
_LISTEN: Final = "subscriptions/listen"
_METHOD: Final = "mcp-method"
_LAST_ID: Final = "last-event-id"
_REDIRECTS: Final = "session-runtime/redirects"
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
        self._known = Streams()

    @property
    def skipped(self) -> int:
        """How many events of its streams were no messages."""
        return self._known.skipped

    def fault_in(self, data: object) -> Fault | None:
        """The fault that an error of this transport tells in its data; None for errors of the server."""
        return self._own.fault_in(data)

    async def __aenter__(self) -> StreamPair:
        below = self._below or httpx2.AsyncHTTPTransport(
            verify=await aside("certificates", self._certificates), trust_env=False
        )
        answers = Answers()
        self._client = _Client(
            transport=_Answering(below, self._timeouts, self._own, answers, self._known),
            headers=self._headers,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
            follow_redirects=False,
        )
        self._streams = streamable_http_client(
            self._url, http_client=self._client, max_sse_event_size=MAX_ANSWER_BYTES
        )
        read, write = await self._streams.__aenter__()
        return Reading(read, answers), write

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


class _Client(httpx2.AsyncClient):
    """Sends halves of surrogate pairs as escapes; they can be in the arguments of a call."""

    def build_request(self, *args: Any, json: Any = None, **more: Any) -> httpx2.Request:
        """Make a request; JSON is ASCII."""
        content = None if json is None else dumps(json).encode()
        return super().build_request(*args, content=content, **more)


class _Timeouts:
    """How long each kind of request may take."""

    def __init__(self, connect_s: float, silence_s: float) -> None:
        self._connect_s = connect_s
        self._silence_s = silence_s

    def of(self, request: httpx2.Request, asked: Asked) -> httpx2.Timeout:
        """Only what answers a request is worth waiting for, and only a stream of news for ever."""
        if request.method == "DELETE":
            return httpx2.Timeout(GOODBYE_S)
        if request.method == "GET" or request.headers.get(_METHOD) == _LISTEN:
            return httpx2.Timeout(self._connect_s, read=None)
        if asked.id is not None:
            return httpx2.Timeout(self._connect_s, read=self._silence_s)
        return httpx2.Timeout(self._connect_s)


class _Answering(httpx2.AsyncBaseTransport):
    """Answers each request, whatever happens to it below."""

    def __init__(
        self,
        below: httpx2.AsyncBaseTransport,
        timeouts: _Timeouts,
        own: OwnErrors,
        answers: Answers,
        known: Streams,
    ) -> None:
        self._below = below
        self._timeouts = timeouts
        self._own = own
        self._answers = answers
        self._known = known
        self._news = Backoff(lambda: 1.0)
        self._had_news = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; raises nothing that a network or a server could cause."""
        await request.aread()  # the SDK repeats it where it is redirected to, with a stream only
        asked = asked_in(request)
        request.headers.update(headers_of(asked.trace))
        if asked.id is None and (cancelled := cancelled_by(request)) is not None:
            self._known.open.discard(cancelled)
        request.extensions["timeout"] = self._timeouts.of(request, asked).as_dict()
        if request.method == "GET":
            return await self._listened(request)
        response = await self._sent(request, asked)
        if request.method == "DELETE":
            await response.aclose()
            return httpx2.Response(204, request=request)  # nobody can do anything about it
        return response

    async def _sent(self, request: httpx2.Request, asked: Asked) -> httpx2.Response:
        try:
            response = await self._below.handle_async_request(request)
        except httpx2.TransportError as error:
            return self._failed(request, error)
        try:
            return await self._checked(request, asked, response)
        except httpx2.TransportError as error:
            await response.aclose()
            return self._failed(request, error)
        except BaseException:
            await response.aclose()
            raise

    async def _checked(
        self, request: httpx2.Request, asked: Asked, response: httpx2.Response
    ) -> httpx2.Response:
        """Let an event stream through; read what is no stream, in bounds, and tell what it refuses."""
        if 300 <= response.status_code < 400:
            await response.aclose()
            return self._redirected(request, response)
        if not is_plain(response):
            await response.aclose()
            return self._error(
                request, "unreadable", "its answer is compressed, which nobody asked for"
            )
        if not has_usable_session(response):
            await response.aclose()
            return self._error(request, "unreadable", "its session id cannot stand in a header")
        if response.status_code < 300 and type_of(response) == EVENTS:
            return self._events(request, response, asked.id)
        most = MAX_ANSWER_BYTES if response.status_code < 300 else MAX_REFUSAL_BYTES
        body = await read(response, most)
        await response.aclose()
        if response.status_code >= 400:
            return self._refused(request, asked, response, body)
        if body is None:
            return self._error(request, "unreadable", f"its answer has more than {most} bytes")
        return await self._answered(request, asked, response, body)

    async def _answered(
        self, request: httpx2.Request, asked: Asked, response: httpx2.Response, body: bytes
    ) -> httpx2.Response:
        if asked.id is None:
            body = b""
        else:
            try:
                body = to_line(await self._answers.answer(body, asked.id))
            except NoMessage:
                return self._error(request, "unreadable", "its answer is no message")
        return with_body(request, response, body)

    def _redirected(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Let the SDK follow it, or tell that it cannot be followed."""
        times = request.extensions[_REDIRECTS] = request.extensions.get(_REDIRECTS, 0) + 1
        if moved_to(request, response) is not None and times <= MAX_REDIRECTS:
            return redirected(request, response)
        said = f"it answered with status {response.status_code}, which leads nowhere on its host"
        return self._error(request, "error", f"{said}: is the url right?")

    async def _listened(self, request: httpx2.Request) -> httpx2.Response:
        """A stream that somebody listens to: news, or one that is taken up again."""
        tagged = request.headers.get(_LAST_ID, "")
        id_, last_id = taken_up(tagged) if tagged else (None, "")
        if last_id:
            request.headers[_LAST_ID] = last_id
        is_over = self._known.deaf if id_ is None else id_ not in self._known.open
        if is_over:
            return httpx2.Response(405, request=request)
        try:
            response = await self._below.handle_async_request(request)
        except httpx2.TransportError:
            return await self._none_now(request, id_)
        if response.status_code < 300 and type_of(response) == EVENTS and is_plain(response):
            return self._events(request, response, id_)
        await response.aclose()
        if 300 <= response.status_code < 400:
            return self._redirected(request, response)
        if response.status_code == 429 or response.status_code >= 500:
            return await self._none_now(request, id_)
        return httpx2.Response(max(response.status_code, 400), request=request)

    async def _none_now(self, request: httpx2.Request, id_: str | int | None) -> httpx2.Response:
        """A stream without events, after a while: the SDK asks again for such, but not after errors."""
        if id_ is not None:
            return httpx2.Response(_STATUS, request=request)
        await asyncio.sleep(self._news.next_s())
        return httpx2.Response(200, headers={"content-type": EVENTS}, request=request)

    def _events(
        self, request: httpx2.Request, response: httpx2.Response, id_: str | int | None
    ) -> httpx2.Response:
        response.request = request
        first = b""
        if request.method == "GET" and id_ is None:
            first = CHANGED if self._had_news else b""  # what changed meanwhile is not told
            self._had_news = True
            self._news.reset()
        return Events(response, id_, self._own, self._answers, self._known, first).as_response()

    def _refused(
        self,
        request: httpx2.Request,
        asked: Asked,
        response: httpx2.Response,
        body: bytes | None,
    ) -> httpx2.Response:
        """Tell what a status means; what the protocol's error in a body says goes before it.

        That it no longer knows a session a server should say by 404. Whether it means that by another
        refusal is found out by asking it for other things, and never changes what became of this request.
        """
        status, error = response.status_code, error_in(response, body)
        if status == 404 and error is not None and error.code != METHOD_NOT_FOUND:
            error = None
        kind: Kind = "error"
        if MCP_SESSION_ID in request.headers:
            if status == 404 and error is None:
                said = "it answered with status 404: it no longer knows the session"
                return self._error(request, "expired", said)
            kind = "refused" if _is_about(asked, status, error) else "unclear"
        if error is None:
            return self._refused_by_status(request, response, kind)
        if kind != "error" and status < 500 and status != 429:
            return self._error(request, kind, error.message, code=error.code)
        return with_body(request, response, body or b"")

    def _refused_by_status(
        self, request: httpx2.Request, response: httpx2.Response, kind: Kind
    ) -> httpx2.Response:
        """Tell what a status alone means; ``kind`` is that of a refusal of which it says nothing else."""
        status = response.status_code
        said = f"it answered with status {status}"
        if took_no_request(response):
            return self._error(request, "busy", said, retry_after(response))
        if status in (401, 403):
            return self._error(request, kind, f"{said}: it does not accept the headers configured")
        if status >= 500:
            return self._error(request, "late", said)
        if status == 404:
            said += ": is the path of the url right? It often ends with /mcp"
        return self._error(request, kind, said)

    def _failed(self, request: httpx2.Request, error: httpx2.TransportError) -> httpx2.Response:
        kind: Kind = "unreachable" if isinstance(error, _NOT_SENT) else "lost"
        if isinstance(error, httpx2.ReadTimeout):
            kind = "late"
        return self._error(request, kind, f"{type(error).__name__}: {error}"[:300])

    def _error(
        self,
        request: httpx2.Request,
        kind: Kind,
        said: str,
        retry_after_s: float | None = None,
        code: int = 0,
    ) -> httpx2.Response:
        error = self._own.error(kind, said, retry_after_s, code)
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(_STATUS, json=body, request=request)

    async def aclose(self) -> None:
        """Close what is below."""
        await self._below.aclose()


def _is_about(asked: Asked, status: int, error: Refusal | None) -> bool:
    """Whether a refusal tells what became of the request itself: it was not allowed, or failed."""
    if status in (401, 403):
        return True
    return error is not None and (error.id == asked.id or error.code == INVALID_PARAMS)
