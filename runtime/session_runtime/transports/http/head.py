"""The head of a request as the guards read it: its size, and one header at a time."""

from collections.abc import Sequence

from starlette.types import Scope

from session_runtime.errors import RequestError
from session_runtime.transports.http.protocol import MAX_HEAD_BYTES

RawHeaders = Sequence[tuple[bytes, bytes]]


def check_size(scope: Scope) -> None:
    """Raise RequestError for a head that is too large (NET-5)."""
    target = len(scope["raw_path"]) + len(scope["query_string"])
    size = target + sum(len(name) + len(value) for name, value in scope["headers"])
    if size > MAX_HEAD_BYTES:
        raise RequestError(
            f"the request line and headers have {size} bytes, at most {MAX_HEAD_BYTES} are read",
            code="request.head_too_large",
        )


def values(headers: RawHeaders, wanted: bytes) -> list[str]:
    """Every value of a header, in the order sent; any byte is one character."""
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def one_host(headers: RawHeaders) -> str | None:
    """The Host header, None without one; raises RequestError for several."""
    hosts = values(headers, b"host")
    if len(hosts) > 1:
        raise RequestError(f"{len(hosts)} Host headers were sent; send one", code="request.host")
    return hosts[0] if hosts else None
