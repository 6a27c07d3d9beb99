"""What an answer over HTTP tells: what was asked for, an event, or an error; whoever may have said it.

What is done about it is decided in ``http``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from session_runtime.client.asking import LONGEST_S
from session_runtime.errors import PermanentError, RequestError, SessionRuntimeError, TransientError

T = TypeVar("T")

NO_ANSWER: Final = "daemon.no_answer"
BAD_ANSWER: Final = "daemon.bad_answer"

_WHOSE_REQUEST_IS_WRONG: Final = ("request", "auth", "confirmation")
_FULL: Final = frozenset({429, 503})
_BEHIND: Final = frozenset({502, 504, *range(520, 525)})
"""What stands before the daemon lost sight of it, so that it may have got the request."""

_RESULT: Final[Mapping[str, type]] = {"ask_id": str, "outcome": str, "text": str}
_MAY_HAVE: Final[Mapping[str, type]] = {"error": dict, "pending": list, "call": dict}


@dataclass(frozen=True, slots=True)
class _Told:
    """An error as a daemon tells it."""

    code: str
    message: str
    retryable: bool
    retry_after_s: float | None

    def error(self, *, wrong: bool) -> SessionRuntimeError:
        """What is raised for it; ``wrong`` says if the request is to blame."""
        if self.retryable:
            return TransientError(self.message, code=self.code, retry_after_s=self.retry_after_s)
        if wrong:
            return RequestError(self.message, code=self.code)
        return PermanentError(self.message, code=self.code)


def object_of(body: bytes) -> dict[str, Any] | None:
    """The JSON object of an answer; None if it has none."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def part(answer: Mapping[str, Any], name: str, kind: type[T], *, may_have_run: bool = False) -> T:
    """A value of an answer; PermanentError if it has none of that kind."""
    value = answer.get(name)
    if isinstance(value, kind):
        return value
    raise PermanentError(
        f"the daemon, or what stands before it, answered with {value!r:.40} for {name!r}",
        code=BAD_ANSWER,
        may_have_run=may_have_run,
    )


def parts(answer: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """A list of objects of an answer; PermanentError if it has none."""
    values = part(answer, name, list)
    return [part({name: each}, name, dict) for each in values]


def is_cancelled(ask: Mapping[str, Any]) -> bool:
    """Whether an ask was told to end, or has ended for that."""
    match ask:
        case {"cancelling": True} | {"state": "ended", "result": {"outcome": "cancelled"}}:
            return True
    return False


def event_of(data: bytes) -> Mapping[str, Any]:
    """An event that is whole; raises ValueError or RecursionError for anything else."""
    event = json.loads(data)
    match event:
        case {"type": "ask.finished", "ask_id": str(), "seq": int(), "result": dict(result)}:
            whole = all(isinstance(result.get(name), kind) for name, kind in _RESULT.items())
            more = ((result.get(name), kind) for name, kind in _MAY_HAVE.items())
            whole &= all(value is None or isinstance(value, kind) for value, kind in more)
            whole &= all(isinstance(each, dict) for each in result.get("pending") or ())
        case {"type": str(kind), "ask_id": str(), "seq": int()}:
            whole = kind != "ask.finished"
        case _:
            whole = False
    if not whole:
        raise ValueError(f"{data[:80]!r} is no event of a daemon")
    told: Mapping[str, Any] = event
    return told


def error_of(status: int, body: bytes, wait_s: float | None = None) -> SessionRuntimeError:
    """The error that an answer tells; TransientError if the same may be sent again.

    Only a daemon says of its errors whether they are ``retryable``. All else is of what stands before it,
    and there the status counts.
    """
    told = _told((object_of(body) or {}).get("error"), wait_s)
    if told is not None:
        return told.error(wrong=status < 500)
    words = f"what stands before the daemon, or is none, answered with status {status}"
    if status in _FULL or status in _BEHIND:
        lost = status in _BEHIND
        return TransientError(words, code=NO_ANSWER, retry_after_s=wait_s, may_have_run=lost)
    may_have_run = status < 300 or status >= 500
    return PermanentError(words, code=BAD_ANSWER, may_have_run=may_have_run)


def refusal_of(result: Mapping[str, Any]) -> SessionRuntimeError | None:
    """The error of an ask that was refused before it began; None if it did begin."""
    if result.get("refused") is not True:
        return None
    told = _told(result.get("error"))
    if told is None:
        return PermanentError("the ask was refused, and not said why", code=BAD_ANSWER)
    return told.error(wrong=told.code.partition(".")[0] in _WHOSE_REQUEST_IS_WRONG)


def _told(error: object, wait_s: float | None = None) -> _Told | None:
    """An error of a daemon, also where it is in the form of OpenAI; None for one of somebody else."""
    match error:
        case {"session_runtime": dict(own)}:
            return _told(own, wait_s)
        case {"code": str(code), "message": str(message), "retryable": bool(retryable), **more}:
            asked_s = more.get("retry_after_s")
            return _Told(code, message, retryable, wait_s if asked_s is None else _wait(asked_s))
    return None


def _wait(asked: object) -> float | None:
    """A number of seconds to wait, no more than anybody waits; None for what is no such number."""
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not asked >= 0:
        return None
    return float(min(asked, LONGEST_S))
