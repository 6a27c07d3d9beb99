"""What a daemon without keys asks of every request (NET-2).

It serves its own machine only, so the danger is a browser there or a proxy in front: the ``Host`` and
``Origin`` must name this machine, and a forwarded request is refused.
"""

import re
from typing import Final

from starlette.types import Scope

from session_runtime.errors import RequestError
from session_runtime.transports.http.head import RawHeaders, one_host, values
from session_runtime.wire.hosts import is_loopback

_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/?#\s]+)(?::[0-9]{1,5})?")


def check_keyless(scope: Scope) -> None:
    """Raise RequestError for a request that is forwarded, or not from and for this machine."""
    headers = scope["headers"]
    _check_connection(scope)
    _check_direct(headers)
    _check_host(headers)
    _check_origin(headers)


def _check_connection(scope: Scope) -> None:
    """Look at where the connection came in: a port that was opened for keys outlives the last key."""
    address = str((scope["server"] or ("",))[0])
    if not is_loopback(address):
        raise RequestError(
            f"the connection came in at {address or 'no address'}: a daemon without keys serves its"
            " own machine only",
            code="request.host",
        )


def _check_direct(headers: RawHeaders) -> None:
    for name, _ in headers:
        if _is_forwarded(name):
            raise RequestError(
                f"the header {name.decode('latin-1')!r} says that a proxy is in front: a daemon"
                " without keys serves this machine only; call it directly",
                code="request.forwarded",
            )


def _check_host(headers: RawHeaders) -> None:
    host = one_host(headers)
    if host is None:
        raise RequestError("0 Host headers were sent; send one", code="request.host")
    if not _is_here(host):
        raise RequestError(
            f"the host {host[:100]!r} is not this machine: a daemon without keys answers only"
            " to localhost, 127.0.0.0/8 and [::1]",
            code="request.host",
        )


def _check_origin(headers: RawHeaders) -> None:
    for origin in values(headers, b"origin"):
        scheme, separator, authority = origin.partition("://")
        if not separator or scheme not in ("http", "https") or not _is_here(authority):
            raise RequestError(
                f"the origin {origin[:100]!r} is not this machine: a daemon without keys serves no"
                " web page from elsewhere",
                code="request.origin",
            )


def _is_forwarded(name: bytes) -> bool:
    return name in (b"forwarded", b"x-real-ip") or name.startswith(b"x-forwarded-")


def _is_here(authority: str) -> bool:
    found = _AUTHORITY.fullmatch(authority)
    return found is not None and is_loopback(found[1].strip("[]"))
