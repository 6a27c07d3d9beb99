"""Puts into words how a call failed: what happened, whether it may have taken effect, if trying again helps.

What comes from a tool stands apart from our own words where it is from outside.
"""

import logging
from typing import Final

from session_runtime.errors import PermanentError, ToolError, TransientError, UnfinishedError
from session_runtime.registry.invoke.call import Answer
from session_runtime.registry.invoke.encode import encodable
from session_runtime.registry.invoke.guard import Refused
from session_runtime.registry.invoke.marking import Outside
from session_runtime.registry.invoke.outcome import Raised, TimedOut

MAX_ERROR_CHARS: Final = 1000
MAX_UNFINISHED_CHARS: Final = 5_000

_log = logging.getLogger(__name__)


def not_recorded(name: str) -> Answer:
    """The refusal of a call that may not be made without a record, while nothing can be recorded."""
    return Answer(
        f"{name} was not run and nothing was changed: calls of it have to be recorded, and they cannot "
        "be just now. Trying again later may help.",
        "tool.not_recorded",
        refused=True,
    )


def taken_away(what_happened: str) -> Answer:
    """The refusal of a revoked tool; the operator's reason is not for the model."""
    return Answer(
        f"{what_happened} Trying again will not help: go on without it, or say what you cannot do.",
        "tool.revoked",
        refused=True,
    )


def invalid_arguments(name: str, problems: tuple[str, ...]) -> Answer:
    """Arguments that do not fit the parameters."""
    return Answer(
        f"{name} was not run: {'; '.join(problems)}. Call it again with corrected arguments.",
        "tool.invalid_arguments",
    )


def no_time(name: str) -> Answer:
    """A call that comes after the deadline of its request."""
    return Answer(f"{name} was not run: the time for this request is up.", "tool.timeout")


def not_offered(name: str) -> Answer:
    """A caller for whom the tool is not there (RTE-2)."""
    return Answer(f"there is no tool named {name} here.", "tool.unknown", refused=True)


def not_shown(name: str, kind: str) -> Answer:
    """A result of a kind that has no text."""
    return Answer(
        f"{name} ran, but returned a {kind}, which cannot be shown. A handler returns text, None, JSON "
        "data, bytes, a Table or an Image. Trying again will not help.",
        "tool.bad_result",
    )


def broken_promise(name: str, problems: tuple[str, ...], outside: Outside | None) -> Answer:
    """A result that does not fit the tool's own output schema (RTE-10)."""
    return Answer(
        f"{name} ran and may have taken effect, but its result does not fit its own output schema"
        f"{_stated('; '.join(problems), outside)}Trying again will not help.",
        "tool.bad_result",
    )


def shown_too_late(name: str) -> Answer:
    """A result that came in time, but could not be made readable in time."""
    return Answer(
        f"{name} ran and may have taken effect, but the time was up before its result could be shown.",
        "tool.timeout",
    )


def not_let_through(name: str, refused: Refused) -> Answer:
    """A call that no route could take."""
    return Answer(
        f"{name} was not run: {refused.words}. Trying again {_when(refused.retry_after_s)} may help.",
        "tool.unavailable",
    )


def time_is_up(name: str, ended: TimedOut) -> Answer:
    """Say which limit a call has met, and whether it may have reached the tool (RTE-7)."""
    if not ended.may_have_run:
        text = (
            f"{name} was not run: it could not begin within {ended.seconds:.3g} s. Trying again later "
            "may help."
        )
    elif ended.limit == "idle":
        text = (
            f"{name} was stopped, as nothing was heard of it for {ended.seconds:.3g} s. It may have taken "
            "effect; trying again will probably end like this."
        )
    elif ended.limit == "hard":
        text = (
            f"{name} was stopped after {ended.seconds:.3g} s without a result. It may have taken effect; "
            "trying again will probably take as long."
        )
    else:
        text = (
            f"{name} was stopped after {ended.seconds:.3g} s without a result, as the time for this "
            "request is up. It may have taken effect."
        )
    return Answer(text, "tool.timeout")


def failure(name: str, ended: Raised, outside: Outside | None) -> Answer:
    """Say what failed and whether trying again helps; the traceback is for the log alone (SEC-4)."""
    error = ended.error
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = _words(error)
    match error:
        case ToolError():
            return Answer(words if outside is None else outside.quoted(words), _code(error))
        case TransientError(may_have_run=True):
            return Answer(
                f"{name} was interrupted{_stated(words, outside)}It may have taken effect: find that out "
                "before it is called again.",
                "tool.interrupted",
            )
        case TransientError():
            return Answer(
                f"{name} is not available now{_stated(words, outside)}Trying again "
                f"{_when(error.retry_after_s)} may help.",
                "tool.unavailable",
            )
        case PermanentError(code="tool.import_failed"):
            return Answer(
                f"{name} was not run{_stated(words, outside)}The import will be tried again at the next "
                "call; a fault in the file stays until the file is fixed and read again.",
                error.code,
            )
        case PermanentError():
            return Answer(
                f"{name} failed{_stated(words, outside)}Trying again will not help.", _code(error)
            )
        case _:
            _log.warning("tool %s failed", name, exc_info=error)
            kind = type(error).__name__
            words = f"{kind}: {words}" if words else kind
            return Answer(
                f"{name} failed{_stated(words, outside)}It may have taken effect in part; the same call "
                "will probably fail again.",
                "tool.failed",
            )


def _stated(words: str, outside: Outside | None) -> str:
    """What goes on as ``: words. ``, or stands on lines of its own; more follows."""
    if outside is None:
        return f": {words.rstrip('.')}. "
    return f":\n{outside.quoted(words)}\n"


def _when(retry_after_s: float | None) -> str:
    return f"in {retry_after_s:.3g} s" if retry_after_s else "later"


def _code(error: PermanentError) -> str:
    """The error's own code; a tool may have given something that is none."""
    code: object = error.code
    return code if type(code) is str and code else "tool.failed"


def _words(error: BaseException) -> str:
    try:
        text = encodable(str(error))
    except BaseException:  # noqa: BLE001 - an exception of a tool may fail to say what it is
        return "it cannot say why"
    most = MAX_UNFINISHED_CHARS if isinstance(error, UnfinishedError) else MAX_ERROR_CHARS
    return text if len(text) <= most else f"{text[:most]}…"
