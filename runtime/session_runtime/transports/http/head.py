"""The head of a request as the guards read it: its size, and one header at a time."""

from collections.abc import Sequence
from typing import Final

from starlette.types import Scope

from session_runtime.errors import RequestError
from session_runtime.trace.traceparent import PARENT, STATE, read_context
from session_runtime.trace_context import TraceContext
from session_runtime.transports.http.protocol import MAX_HEAD_BYTES

RawHeaders = Sequence[tuple[bytes, bytes]]

_MAY_ESCAPE: Final = b"/v1/models/"


def check_size(scope: Scope) -> None:
    """Raise RequestError for a head that is too large (NET-5)."""
    target = len(scope["raw_path"]) + len(scope["query_string"])
    size = target + sum(len(name) + len(value) for name, value in scope["headers"])
    if size > MAX_HEAD_BYTES:
        raise RequestError(
            f"the request line and headers have {size} bytes, at most {MAX_HEAD_BYTES} are read",
            code="request.head_too_large",
        )


def check_path(scope: Scope) -> None:
    """Raise RequestError for an escaped slash, which is none (RFC 3986, 2.2) but is taken for one.

    A rule for paths in a proxy in front would see another path than the routes do. Names of models may have
    one, behind the path that lists them.
    """
    raw_path = scope["raw_path"].lower()
    if b"%2f" in raw_path and not raw_path.startswith(_MAY_ESCAPE):
        raise RequestError(
            "the path has an escaped slash: see /openapi.json for the paths that there are",
            code="request.not_found",
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


def trace_of(scope: Scope) -> TraceContext | None:
    """The trace that a caller says it is part of; None without one that can be used."""
    headers = scope["headers"]
    return read_context(values(headers, PARENT.encode()), values(headers, STATE.encode()))
