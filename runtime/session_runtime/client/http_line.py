"""A backend's requests to a daemon over HTTP: one at a time, and what an answer means for the next one.

When and how often a request is sent is decided in ``http``.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from session_runtime.client.asking import LONGEST_S
from session_runtime.client.http_told import error_of, event_of, object_of
from session_runtime.errors import RequestError

CONNECT_S: Final = 10.0
SILENCE_S: Final = 45.0
"""A stream that says nothing for so long, not even a ping, is dead."""

_LEAVES: Final = ".send_request_headers.started"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_MOST_HEAD: Final = 64 * 1024


Leaves = Callable[[], None]
"""Called when the first byte of a request leaves: from then on it may arrive."""


class CutError(Exception):
    """There is no connection, or it broke."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that is read event by event; ``ask_id`` is there if the ask is kept."""

    response: httpx2.Response
    ask_id: str | None

    async def events(self) -> AsyncIterator[Mapping[str, Any]]:
        """The events as they come; raises CutError where the stream breaks."""
        rest = b""
        try:
            async for chunk in self.response.aiter_bytes():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line.startswith(b"data: "):
                        yield event_of(line[6:])
        except (httpx2.HTTPError, ValueError, RecursionError) as error:
            raise CutError(_words(error)) from error


def _nothing() -> None:
    """Nobody wants to know."""


class HttpLine:
    """The connections to one daemon; no proxy variable is heeded, no redirect followed.

    What cannot be sent, be it sent again or not, is a RequestError at once: an address that is none, a key
    that no header can hold.
    """

    def __init__(
        self, url: str, key: str | None, transport: httpx2.AsyncBaseTransport | None
    ) -> None:
        if key is not None:
            _check_key("key", key)
        self._client = httpx2.AsyncClient(
            base_url=_address(url),
            headers={} if key is None else {"authorization": f"Bearer {key}"},
            timeout=httpx2.Timeout(CONNECT_S, read=SILENCE_S, pool=None),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64),
            transport=transport,
            trust_env=False,
            follow_redirects=False,
        )
        self._tells = transport is None or isinstance(transport, httpx2.AsyncHTTPTransport)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def _told(self, leaves: Leaves) -> dict[str, Any]:
        """Have ``leaves`` called when a request leaves; at once if its way does not tell when that is."""
        if not self._tells:
            leaves()
            return {}

        async def trace(event: str, info: object) -> None:
            del info
            if event.endswith(_LEAVES):
                leaves()

        return {"trace": trace}

    async def fetch(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        key: str | None = None,
        *,
        leaves: Leaves = _nothing,
    ) -> dict[str, Any]:
        """Send a request; gives the JSON object of the answer. Raises CutError, and what it says."""
        headers, told = _headers(body, key), self._told(leaves)
        try:
            response = await self._client.request(
                method, path, content=body, headers=headers, extensions=told
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _cut(error) from error
        if response.is_success:
            data = object_of(response.content)
            if data is not None:
                return data
        raise error_of(response.status_code, response.content, _retry_after(response))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        key: str | None = None,
        *,
        leaves: Leaves = _nothing,
    ) -> AsyncIterator[Stream]:
        """Send a request whose answer is events. Raises CutError, and what the answer says instead."""
        headers = {**_headers(body, key), "accept": "text/event-stream"}
        told = self._told(leaves)
        try:
            request = self._client.build_request(
                method, path, content=body, headers=headers, extensions=told
            )
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _cut(error) from error
        try:
            if not response.is_success:
                raise await _refusal(response)
            place = response.headers.get("location", "")
            yield Stream(response, place.rpartition("/")[2] or None)
        finally:
            await response.aclose()


async def _refusal(response: httpx2.Response) -> Exception:
    try:
        body = (await response.aread())[:_MOST_HEAD]
    except httpx2.HTTPError as error:
        return CutError(_words(error))
    return error_of(response.status_code, body, _retry_after(response))


def _headers(body: bytes | None, key: str | None) -> dict[str, str]:
    headers = {} if body is None else {"content-type": "application/json"}
    if key is not None:
        _check_key("idempotency_key", key)
    return headers if key is None else {**headers, "idempotency-key": key}


def _retry_after(response: httpx2.Response) -> float | None:
    text = response.headers.get("retry-after", "")
    return min(float(text), LONGEST_S) if text.isascii() and text.isdigit() else None


def _check_key(name: str, key: str) -> None:
    if not _KEY.fullmatch(key):
        raise RequestError(
            f"{name} has {len(key)} characters, or one that is not visible ASCII, such as a space or a line"
            " end: give 1 to 255 visible ASCII characters"
        )


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise RequestError(f"url is {url[:200]!r}: give one such as http://127.0.0.1:8040")
    return url


def _cut(error: httpx2.HTTPError | httpx2.InvalidURL) -> CutError | RequestError:
    """What an error means: to send it again, or that it can never be sent."""
    if isinstance(
        error, httpx2.InvalidURL | httpx2.UnsupportedProtocol | httpx2.LocalProtocolError
    ):
        return RequestError(f"the request cannot be sent: {_words(error)}")
    return CutError(_words(error))


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
