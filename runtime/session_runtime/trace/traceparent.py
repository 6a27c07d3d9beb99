"""Where an ask stands in a trace over several programs, as W3C Trace Context has it (OPS-1).

Ids of our own are hashes of the ask and the way to the span, so that a call can be told its id before any
span of the ask is made.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.trace_context import TraceContext

PARENT: Final = "traceparent"
STATE: Final = "tracestate"
_PARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_STATE: Final = re.compile(r"[\x20-\x7e]{1,512}")
_MOST_PARENT_CHARS: Final = 256
_SAMPLED: Final = 1
_LOW: Final = 16
"""So many hexadecimal digits of a trace id decide whether it is sampled."""


def read_context(parents: Sequence[str], states: Sequence[str] = ()) -> TraceContext | None:
    """What the headers ``traceparent`` and ``tracestate`` of a caller say; None unless it can be used.

    As the standard asks, what is malformed is taken for absent and never a reason to refuse anything.
    """
    if len(parents) != 1 or len(parents[0]) > _MOST_PARENT_CHARS:
        return None
    found = _PARENT.fullmatch(parents[0].strip())
    if found is None or (found[1] == "00" and found[5]):
        return None
    state = ",".join(states).strip()
    return TraceContext(
        f"00-{found[2]}-{found[3]}-{int(found[4], 16) & _SAMPLED:02x}",
        state if _STATE.fullmatch(state) else "",
    )


def headers_of(trace: TraceContext | None) -> dict[str, str]:
    """The headers that pass a trace on; none without one."""
    if trace is None:
        return {}
    state = {STATE: trace.tracestate} if trace.tracestate else {}
    return {PARENT: trace.traceparent, **state}


@dataclass(frozen=True, slots=True)
class AskTrace:
    """The trace that an ask is part of, and the span of its caller, if there is one.

    ``sampled`` says whether spans shall be made, ``exported`` whether this daemon makes them.
    """

    trace_id: str
    parent_id: str | None
    sampled: bool
    exported: bool
    state: str = ""

    def of_call(self, ask_id: str, call_id: str) -> TraceContext:
        """What the call is to pass on: the id of its own span, or the caller's if there will be none."""
        own = self.parent_id is None or self.exported
        span_id = call_span(ask_id, call_id) if own else self.parent_id
        return TraceContext(f"00-{self.trace_id}-{span_id}-{int(self.sampled):02x}", self.state)


def trace_of(ask_id: str, given: TraceContext | None, sample: float | None) -> AskTrace | None:
    """The trace of an ask; None if nobody asked for one.

    ``sample`` is the part of asks of which spans are made, None where none are made at all; the caller's
    decision comes first.
    """
    if given is not None:
        _, trace_id, parent_id, flags = given.traceparent.split("-")
        sampled = bool(int(flags, 16) & _SAMPLED)
        return AskTrace(
            trace_id, parent_id, sampled, sampled and sample is not None, given.tracestate
        )
    if sample is None:
        return None
    trace_id = _hash(ask_id, 16)
    sampled = int(trace_id[-_LOW:], 16) < sample * 16**_LOW
    return AskTrace(trace_id, None, sampled, sampled)


def ask_span(ask_id: str) -> str:
    """The id of the span of a whole ask."""
    return _hash(ask_id, 8, "ask")


def call_span(ask_id: str, call_id: str) -> str:
    """The id of the span of a tool call, whose id leads through the calls of sub-agents around it."""
    return _hash(ask_id, 8, "call", call_id)


def agent_span(ask_id: str, call_id: str) -> str:
    """The id of the span of the sub-agent that answers a call."""
    return _hash(ask_id, 8, "agent", call_id)


def turn_span(ask_id: str, call_id: str, step: int) -> str:
    """The id of the span of a turn; ``call_id`` is that of the sub-agent's call, empty for the ask."""
    return _hash(ask_id, 8, "turn", call_id, str(step))


def _hash(ask_id: str, size: int, *way: str) -> str:
    text = "\0".join((ask_id, *way)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=size).hexdigest()
