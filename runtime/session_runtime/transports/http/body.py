"""Reads the body of a request within its bounds; what it means is decided in ``wire``."""

import asyncio
from collections.abc import Callable, Sequence
from email.message import Message
from typing import Final, TypeVar

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from session_runtime.errors import RequestError
from session_runtime.threads import aside
from session_runtime.transports.http.answers import JSON_TYPE
from session_runtime.transports.http.door import HttpLimits
from session_runtime.wire import is_soon_read, parse_request

T = TypeVar("T")

_MAX_DISCARDED: Final = 64 * 1024 * 1024


async def read_body(request: Request, max_bytes: int, timeout_s: float) -> bytes:
    """Read a JSON body of at most ``max_bytes`` that arrives within ``timeout_s`` (NET-5).

    Raises RequestError with the code of its HTTP status.
    """
    return await _read_as((JSON_TYPE,), request, max_bytes, timeout_s)


async def parsed(body: bytes, read: Callable[[object], T]) -> T:
    """Read the JSON of a body; one that takes a while in a thread, so that it holds up no other asks."""
    if is_soon_read(body):
        return read(parse_request(body))
    return await aside("read a request", lambda: read(parse_request(body)))


async def read_text(request: Request, limits: HttpLimits, types: Sequence[str]) -> bytes:
    """Read a body that is a text of one of these media types; as ``read_body``."""
    return await _read_as(types, request, limits.max_body_bytes, limits.body_timeout_s)


def has_body(request: Request) -> bool:
    """Whether a body comes, be it empty: then its type is told."""
    length = request.headers.get("content-length", "0")
    is_told = "content-type" in request.headers or "transfer-encoding" in request.headers
    return is_told or length.strip("0") != ""


def is_json(request: Request) -> bool:
    """Whether the body is declared as JSON."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON_TYPE


async def _read_as(
    types: Sequence[str], request: Request, max_bytes: int, timeout_s: float
) -> bytes:
    _check_headers(request.headers, types)
    try:
        async with asyncio.timeout(timeout_s):
            return await _read(request, max_bytes)
    except TimeoutError:
        raise RequestError(
            f"the body did not arrive within {timeout_s:g} seconds", code="request.timeout"
        ) from None
    except ClientDisconnect:
        raise RequestError("the body was not sent to its end", code="request.timeout") from None


async def _read(request: Request, max_bytes: int) -> bytes:
    """Gather the body; read on through one that is too large, or its sender never sees the answer."""
    if _needs_no_reading(request.headers, max_bytes):
        raise _too_large(max_bytes)
    body = bytearray()
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= max_bytes:
            body += chunk
        if size > max_bytes + _MAX_DISCARDED:
            break
    if size > max_bytes:
        raise _too_large(max_bytes)
    return bytes(body)


def _needs_no_reading(headers: Headers, max_bytes: int) -> bool:
    """Whether a body that is too large is larger than all that is read, or the client asks first."""
    length = headers.get("content-length", "")
    size = int(length) if length.isdecimal() else 0
    waits = headers.get("expect", "").lower() == "100-continue"
    return size > max_bytes + _MAX_DISCARDED or (size > max_bytes and waits)


def _too_large(max_bytes: int) -> RequestError:
    return RequestError(
        f"the body has more than {max_bytes} bytes, the most that http.max_body_bytes allows",
        code="request.too_large",
    )


def _check_headers(headers: Headers, types: Sequence[str]) -> None:
    if len(headers.getlist("content-type")) > 1:
        raise _refused_type(f"there are several content-types; send one, {' or '.join(types)}")
    media = Message()
    media["content-type"] = headers.get("content-type", "")
    charset = media.get_content_charset("utf-8")
    if media.get_content_type() not in types or charset not in ("utf-8", "utf8", "us-ascii"):
        given, wanted = headers.get("content-type"), " or ".join(types)
        raise _refused_type(
            f"the content-type is {given[:100]!r}; send {wanted} in UTF-8"
            if given
            else f"there is no content-type; send {wanted}"
        )
    for name, plain in (("content-encoding", "identity"), ("transfer-encoding", "chunked")):
        coding = headers.get(name, plain)
        if coding.strip().lower() != plain:
            raise _refused_type(f"the {name} is {coding[:100]!r}; send the body as it is")


def _refused_type(message: str) -> RequestError:
    return RequestError(message, code="request.media_type")
