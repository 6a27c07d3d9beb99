"""Errors in the form that clients of OpenAI's interface expect; our own code of each stands beside."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from session_runtime.ask.event_log import EventLog
from session_runtime.ask.service import GONE
from session_runtime.transports.http.answers import STOPPING, json_answer, refused, retry_header
from session_runtime.transports.http.completions_request import EXTENSION
from session_runtime.transports.http.openai_paths import way_out
from session_runtime.types import AskEvent, AskResult, AskStarted, ErrorInfo, ToolStarted
from session_runtime.wire import error_to_json

COMPLETIONS: Final = "/v1/chat/completions"
MODELS: Final = "/v1/models"

_STATUS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "request.unknown_model": 404,
        "cancelled.caller": 409,
        "cancelled.operator": 503,
        "cancelled.replaced": 409,
        "internal": 500,
        "internal.exposure": 500,
        "limit.deadline": 504,
        "model.context_too_long": 400,
        "model.rate_limited": 429,
        "model.timeout": 504,
    }
)
_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auth.missing": "invalid_api_key",
        "auth.unknown": "invalid_api_key",
        "busy.budget": "insufficient_quota",
        "busy.rate": "rate_limit_exceeded",
        "model.context_too_long": "context_length_exceeded",
        "model.rate_limited": "rate_limit_exceeded",
        "request.unknown_model": "model_not_found",
    }
)
_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {"auth.act_for": "user", "request.unknown_model": "model"}
)
_TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
)
_LEAST_WAIT_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
"""OpenAI's own clients wait no longer: they would ask again after a second or two instead."""
NO_TURN: Final = ErrorInfo(
    "busy.no_turn",
    "the time for this request was up before its turn came: ask again, or allow more time (deadline_s)",
    retryable=True,
    retry_after_s=_LEAST_WAIT_S,
)
_PATHS: Final = re.compile(f"{COMPLETIONS}|{MODELS}(/.*)?", re.DOTALL)

Handler = Callable[[Request, Exception], Awaitable[Response]]


def is_openai(path: str) -> bool:
    """Whether clients of OpenAI's interface ask there."""
    return _PATHS.fullmatch(path) is not None


def in_style(path: str, answer: Response) -> Response:
    """Put an error object of ours into OpenAI's form, if it answers a request to that interface."""
    if not is_openai(path) and way_out(path) is None:
        return answer
    told = json.loads(bytes(answer.body))["error"]
    info = ErrorInfo(told["code"], told["message"], told["retryable"], told.get("retry_after_s"))
    kept = {
        name: value
        for name, value in answer.headers.items()
        if name in ("allow", "connection", "www-authenticate")
    }
    return openai_error(info, answer.status_code, may_repeat=True, headers=kept)


def styled(handler: Handler) -> Handler:
    """An exception handler that answers in the form of the path that was asked."""

    async def answer(request: Request, error: Exception) -> Response:
        return in_style(request.url.path, await handler(request, error))

    return answer


class Heard:
    """What an answer needs to know of an ask beside its result."""

    def __init__(self, asked_model: str | None) -> None:
        self.model = asked_model or ""
        self.has_begun = False
        self.tools_ran = False

    def emit(self, event: AskEvent) -> None:
        """Take one event."""
        match event:
            case AskStarted():
                self.model = event.model
                self.has_begun = True
            case ToolStarted():
                self.tools_ran = True
            case _:
                pass

    def recall(self, log: EventLog) -> None:
        """Know what a kept ask told in events that have made room since."""
        self.tools_ran = self.tools_ran or log.tools_ran
        if log.model is not None:
            self.model, self.has_begun = log.model, True


def failure(result: AskResult, heard: Heard) -> Response | None:
    """Answer an ask that came to nothing; None for one that came to an answer.

    OpenAI's own clients repeat a request that failed for now; once tools have run, they are told not to.
    """
    error = error_of(result, heard)
    if error is None:
        return None
    refusal = refused(result)
    if refusal is not None:
        return in_style(COMPLETIONS, refusal)
    return openai_error(error, _status_of(error), may_repeat=not heard.tools_ran)


def error_of(result: AskResult, heard: Heard) -> ErrorInfo | None:
    """Why an ask came to nothing; None if it came to an answer, be it cut off by a limit.

    One that is cancelled under its caller is so as the daemon stops. One whose time was up is a time-out
    where there is nothing to show for it; if its turn had not come, it may as well be asked again.
    """
    match result.outcome:
        case "cancelled":
            told = result.error
            return STOPPING if told is None or told == GONE else told
        case "failed":
            return result.error
        case "limit" if not heard.has_begun:
            return NO_TURN
        case "limit" if result.error is not None and result.error.code == "limit.deadline":
            return None if result.text or result.messages else result.error
        case _:
            return None


def openai_error(
    error: ErrorInfo, status: int, *, may_repeat: bool, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with an error; says when to try again, and if to try at all."""
    status = _STATUS.get(error.code, status)
    wait_s = error.retry_after_s
    repeat = error.retryable and may_repeat and (wait_s or 0.0) <= _LONGEST_WAIT_S
    if repeat and wait_s is None and status in (429, 503):
        wait_s = _LEAST_WAIT_S
    more = {**(headers or {}), **retry_header(wait_s)}
    more["x-should-retry"] = "true" if repeat else "false"
    return json_answer(error_object(error, status), status, more)


def error_object(error: ErrorInfo, status: int | None = None) -> dict[str, Any]:
    """The JSON of an error, which also ends a stream that breaks."""
    status = _status_of(error) if status is None else status
    return {
        "error": {
            "message": error.message,
            "type": _TYPES.get(
                status, "server_error" if status >= 500 else "invalid_request_error"
            ),
            "param": _FIELDS.get(error.code),
            "code": _CODES.get(error.code, error.code),
            EXTENSION: error_to_json(error),
        }
    }


def _status_of(error: ErrorInfo) -> int:
    """The status of an ask that failed on its way: what is between us and the model is a gateway."""
    return _STATUS.get(error.code, 503 if error.retryable else 502)
