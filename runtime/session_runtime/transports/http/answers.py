"""Every answer that is not a stream: JSON, with one shape for errors and one table of statuses."""

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from session_runtime.errors import RequestError, SessionRuntimeError, TransientError
from session_runtime.threads import aside
from session_runtime.types import AskResult, ErrorInfo
from session_runtime.wire import error_to_json, invoked_to_json, result_to_json, to_bytes

T = TypeVar("T")

_MUCH_CHARS: Final = 64 * 1024
JSON_TYPE: Final = "application/json"
HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
STOPPING: Final = ErrorInfo(
    "busy.stopping", "the daemon is stopping; ask again later", retryable=True, retry_after_s=1.0
)

_STATUS: Final[Mapping[str, int]] = {
    "busy.budget": 429,
    "busy.queue": 429,
    "busy.rate": 429,
    "auth.missing": 401,
    "auth.unknown": 401,
    "auth.act_for": 403,
    "auth.admin_needed": 403,
    "auth.console_token": 403,
    "confirmation.invalid": 409,
    "config.by_hand": 409,
    "config.changed": 412,
    "config.if_match": 428,
    "config.in_place": 409,
    "config.invalid": 422,
    "config.not_over_network": 403,
    "config.nothing_to_keep": 409,
    "config.read_only": 409,
    "config.secret_not_kept": 409,
    "config.shadowed": 409,
    "config.unknown_entry": 404,
    "request.host": 403,
    "request.origin": 403,
    "request.not_found": 404,
    "request.unknown_ask": 404,
    "request.gone": 410,
    "request.key_reused": 422,
    "request.not_kept": 409,
    "request.nothing_to_confirm": 409,
    "request.unknown_server": 404,
    "request.nothing_to_approve": 404,
    "request.other_form": 409,
    "request.unknown_revocation": 404,
    "revocations.not_kept": 500,
    "approvals.not_kept": 500,
    "request.unknown_tool": 404,
    "busy.callbacks": 429,
    "request.method": 405,
    "request.not_acceptable": 406,
    "request.timeout": 408,
    "request.too_large": 413,
    "request.media_type": 415,
    "request.head_too_large": 431,
}
_HEADERS_OF: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},
    413: {"connection": "close"},
}


def json_answer(
    data: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with JSON that no cache may keep."""
    return Response(to_bytes(data), status, {**HEADERS, **(headers or {})}, JSON_TYPE)


def error_answer(
    error: ErrorInfo, status: int, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer ``{"error": {"code", "message", …}}``; says when to try again where that is known."""
    more = {**(headers or {}), **retry_header(error.retry_after_s)}
    return json_answer({"error": error_to_json(error)}, status, more)


def retry_header(wait_s: float | None) -> dict[str, str]:
    """The header that says when to try again, in whole seconds; none if that is not known."""
    return {} if wait_s is None else {"retry-after": str(max(1, math.ceil(wait_s)))}


def refusal(error: RequestError) -> Response:
    """Answer a request that is wrong, with the status that belongs to the error's code.

    The connection is closed where the request was not read to its end.
    """
    status = _STATUS.get(error.code, 400)
    return error_answer(ErrorInfo(error.code, str(error)), status, _HEADERS_OF.get(status))


def refused(result: AskResult) -> Response | None:
    """Answer an ask that was refused before it began (NET-5); None if it did begin."""
    if not result.refused or result.error is None:
        return None
    family = result.error.code.partition(".")[0]
    if family == "busy":
        return error_answer(result.error, _STATUS.get(result.error.code, 503))
    if family in ("request", "auth", "confirmation"):
        return error_answer(result.error, _STATUS.get(result.error.code, 400))
    return None


async def written(chars: int, write: Callable[[], T]) -> T:
    """What ``write`` gives, of so many characters; much is written aside, so that others go on."""
    return write() if chars <= _MUCH_CHARS else await aside("write an answer", write)


def ask_answer(result: AskResult) -> Response:
    """Answer an ask: its result, whatever the outcome, or why it was refused."""
    return refused(result) or json_answer(result_to_json(result))


def invoke_answer(result: AskResult) -> Response:
    """Answer a call of a tool: what came of it, good or bad, or why it was refused."""
    return refused(result) or json_answer(invoked_to_json(result))


async def on_request_error(request: Request, error: Exception) -> Response:
    """Turn a RequestError of any endpoint into its answer."""
    del request
    assert isinstance(error, RequestError)
    return refusal(error)


async def on_error(request: Request, error: Exception) -> Response:
    """Turn any other error that was raised on purpose into its answer."""
    del request
    assert isinstance(error, SessionRuntimeError)
    retryable = isinstance(error, TransientError)
    wait_s = error.retry_after_s if isinstance(error, TransientError) else None
    info = ErrorInfo(error.code, str(error), retryable, wait_s)
    return error_answer(info, _STATUS.get(error.code, 503 if retryable else 500))


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Put the router's own refusals (404, 405) into our shape."""
    assert isinstance(error, HTTPException)
    path = request.url.path[:100]
    if error.status_code == 404:
        info = ErrorInfo("request.not_found", f"nothing is at {path!r}; see /openapi.json")
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        info = ErrorInfo("request.method", f"{request.method} is not for {path!r}; use {allowed}")
    else:
        info = ErrorInfo("request.invalid", error.detail)
    return error_answer(info, error.status_code, error.headers)


async def on_fault(request: Request, error: Exception) -> Response:
    """Answer for a fault of ours; the server logs the exception itself."""
    del request, error
    return error_answer(
        ErrorInfo("internal", "the daemon failed; its log has the details"), status=500
    )
