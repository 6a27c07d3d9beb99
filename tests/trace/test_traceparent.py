"""What callers say of their traces is read as the standard has it, and calls are told where they stand."""

import pytest

from session_runtime.trace.traceparent import (
    AskTrace,
    call_span,
    headers_of,
    read_context,
    trace_of,
)
from session_runtime.trace_context import TraceContext

pytestmark = pytest.mark.requirement("OPS-1b")

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{SPAN}-01"


def test_a_callers_trace_is_read_with_its_state() -> None:
    assert read_context([GIVEN], ["a=1", "b=2"]) == TraceContext(GIVEN, "a=1,b=2")
    assert read_context([f"cc-{TRACE}-{SPAN}-03-more"]) == TraceContext(GIVEN)


@pytest.mark.parametrize(
    "parents",
    [
        [],
        [""],
        [GIVEN, GIVEN],
        [GIVEN.upper()],
        [f"ff-{TRACE}-{SPAN}-01"],
        [f"00-{'0' * 32}-{SPAN}-01"],
        [f"00-{TRACE}-{'0' * 16}-01"],
        [f"{GIVEN}-more"],
        [f"cc-{TRACE}-{SPAN}-01-{'x' * 1_000}"],
        ["00-\x1b[2J"],
    ],
)
def test_what_is_malformed_counts_as_absent(parents: list[str]) -> None:
    assert read_context(parents) is None


def test_a_state_that_cannot_be_passed_on_is_left_out() -> None:
    for state in ("x" * 513, "a=\r\nevil: 1", "ä=1"):
        assert read_context([GIVEN], [state]) == TraceContext(GIVEN)


def test_without_spans_of_our_own_the_callers_trace_is_passed_on_as_it_is() -> None:
    trace = trace_of("a1", TraceContext(GIVEN, "s=1"), None)
    assert trace == AskTrace(TRACE, SPAN, True, False, "s=1")
    assert trace.of_call("a1", "c1") == TraceContext(GIVEN, "s=1")
    assert trace_of("a1", None, None) is None


def test_with_spans_a_call_passes_its_own_on() -> None:
    trace = trace_of("a1", TraceContext(GIVEN), 0.0)
    assert trace is not None
    own = call_span("a1", "c1")
    assert trace.of_call("a1", "c1") == TraceContext(f"00-{TRACE}-{own}-01")
    assert len({own, call_span("a1", "c2"), call_span("a2", "c1"), call_span("a1", "c/1")}) == 4


def test_the_callers_decision_to_sample_comes_first() -> None:
    unsampled = trace_of("a1", TraceContext(f"00-{TRACE}-{SPAN}-00"), 1.0)
    assert unsampled is not None
    assert (unsampled.sampled, unsampled.exported) == (False, False)
    assert unsampled.of_call("a1", "c1").traceparent == f"00-{TRACE}-{SPAN}-00"


def is_taken(ask_id: str, part: float) -> bool:
    trace = trace_of(ask_id, None, part)
    assert trace is not None
    assert trace.exported == trace.sampled
    return trace.exported


def test_a_part_of_all_asks_is_sampled_and_always_the_same() -> None:
    asks = [f"ask_{number}" for number in range(2_000)]
    taken = {part: [ask for ask in asks if is_taken(ask, part)] for part in (0.0, 0.25, 0.5, 1.0)}
    assert 400 < len(taken[0.25]) < 600
    assert set(taken[0.25]) < set(taken[0.5])
    assert (taken[0.0], taken[1.0]) == ([], asks)
    assert taken[0.25] == [ask for ask in asks if is_taken(ask, 0.25)]


def test_a_trace_becomes_headers() -> None:
    assert headers_of(None) == {}
    assert headers_of(TraceContext(GIVEN)) == {"traceparent": GIVEN}
    assert headers_of(TraceContext(GIVEN, "a=1")) == {"traceparent": GIVEN, "tracestate": "a=1"}
