"""What a daemon without keys asks of every request before it looks at the path (NET-2).

It listens on loopback only, so the danger is a browser on the same machine or a proxy in front: the
``Host`` and ``Origin`` must name this machine, and a forwarded request is refused.
"""

import ipaddress
import re
from collections.abc import Sequence
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from session_runtime.errors import RequestError
from session_runtime.transports.http.answers import refusal
from session_runtime.transports.http.protocol import MAX_HEAD_BYTES

RawHeaders = Sequence[tuple[bytes, bytes]]

_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/?#\s]+)(?::[0-9]{1,5})?")


class KeylessGuard:
    """ASGI middleware that refuses what ``check_head`` refuses."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request, pass on any other."""
        try:
            check_head(scope["headers"], len(scope["raw_path"]) + len(scope["query_string"]))
        except RequestError as error:
            await refusal(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def check_head(headers: RawHeaders, target_bytes: int = 0) -> None:
    """Raise RequestError for a head that is too large, forwarded, or not meant for this machine."""
    size = target_bytes + sum(len(name) + len(value) for name, value in headers)
    if size > MAX_HEAD_BYTES:
        raise RequestError(
            f"the request line and headers have {size} bytes, at most {MAX_HEAD_BYTES} are read",
            code="request.head_too_large",
        )
    for name, _ in headers:
        if _is_forwarded(name):
            raise RequestError(
                f"the header {name.decode('latin-1')!r} says that a proxy is in front: a daemon"
                " without keys serves this machine only; call it directly",
                code="request.forwarded",
            )
    _check_host(headers)
    _check_origin(headers)


def _check_host(headers: RawHeaders) -> None:
    hosts = _values(headers, b"host")
    if len(hosts) != 1:
        raise RequestError(f"{len(hosts)} Host headers were sent; send one", code="request.host")
    if not _is_loopback(hosts[0]):
        raise RequestError(
            f"the host {hosts[0][:100]!r} is not this machine: a daemon without keys answers only"
            " to localhost, 127.0.0.0/8 and [::1]",
            code="request.host",
        )


def _check_origin(headers: RawHeaders) -> None:
    for origin in _values(headers, b"origin"):
        scheme, separator, authority = origin.partition("://")
        if not separator or scheme not in ("http", "https") or not _is_loopback(authority):
            raise RequestError(
                f"the origin {origin[:100]!r} is not this machine: a daemon without keys serves no"
                " web page from elsewhere",
                code="request.origin",
            )


def _values(headers: RawHeaders, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def _is_forwarded(name: bytes) -> bool:
    return name in (b"forwarded", b"x-real-ip") or name.startswith(b"x-forwarded-")


def _is_loopback(authority: str) -> bool:
    found = _AUTHORITY.fullmatch(authority)
    if not found:
        return False
    name = found[1].casefold()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
