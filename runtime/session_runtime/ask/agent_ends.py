"""What whoever called a sub-agent reads of how it ended: its answer, or why there is none (ASK-11).

How an agent runs is decided in ``agents``. What a service said about a fault is for operators, in the log.
"""

from typing import Final

from session_runtime.ask.loop import Ending, Progress
from session_runtime.ask.transcript import Transcript
from session_runtime.errors import SessionRuntimeError, TransientError, UnfinishedError
from session_runtime.models.base import CUT_OFF

MOST_TEXT: Final = 4_000
_OWN_WORDS: Final = {
    "model.context_too_long": "its task with all that it read is longer than its model can read. "
    "Give it a smaller task",
    "model.refused": "its model refused the request. Calling it again will not help",
}
_MAY_PASS: Final = "its model cannot be used just now. Calling it again later may help"
_FOR_GOOD: Final = "its model cannot be used as it is set up here. Calling it again will not help"


def answer_of(name: str, ending: Ending, progress: Progress, transcript: Transcript) -> str:
    """What the agent said last; where its reply broke off, that is said too.

    UnfinishedError ``agent.limit`` if it did not come to an end of its own.
    """
    if ending.outcome in ("answered", "ended"):
        reason = progress.turns[-1].finish_reason
        note = f"\n(This answer was cut off: {reason}.)" if reason in CUT_OFF else ""
        return f"{ending.text or _last_text(transcript)}{note}"
    text = f"{name} stopped before it was done: {_why(ending)}.{_so_far(progress)}"
    raise UnfinishedError(text, code="agent.limit")


def could_not_go_on(name: str, error: SessionRuntimeError, progress: Progress) -> UnfinishedError:
    """The failure of an agent whose model failed: by its code, and nothing that a service wrote."""
    general = _MAY_PASS if isinstance(error, TransientError) else _FOR_GOOD
    why = _OWN_WORDS.get(error.code, general)
    text = f"{name} could not go on ({error.code}): {why}.{_so_far(progress)}"
    return UnfinishedError(text, code="agent.failed")


def _why(ending: Ending) -> str:
    if ending.error is None:
        return ending.outcome
    return "its time was up" if ending.error.code == "limit.deadline" else ending.error.message


def _so_far(progress: Progress) -> str:
    """What it did and wrote before, for whoever has to go on with that."""
    calls = [call for turn in progress.turns for call in turn.calls]
    done = sum(call.status == "ok" for call in calls)
    made = f" Of its tool calls {done} of {len(calls)} succeeded." if calls else ""
    said = progress.said.strip()
    return f"{made} It had written: {said[:MOST_TEXT]}" if said else made


def _last_text(transcript: Transcript) -> str:
    """The last words beside calls, for an agent that ends without any."""
    said = (message.content for message in reversed(transcript.kept) if message.role == "assistant")
    return next((text for text in said if isinstance(text, str) and text.strip()), "")
