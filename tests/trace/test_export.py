"""Spans of asks reach a collector with the conventional names, and one that fails harms nobody."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from session_runtime.trace.export import SpanExport, Target
from session_runtime.trace.record import AskRecord
from session_runtime.trace.spans import Span, spans_of
from session_runtime.trace.traceparent import (
    AskTrace,
    agent_span,
    ask_span,
    call_span,
    turn_span,
)
from tests.trace.collector import Collector, collecting
from tests.trace.traced import RECORD

pytestmark = pytest.mark.requirement("OPS-1b")

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
ASK = replace(RECORD, trace=AskTrace(TRACE, PARENT, True, True, "a=1"), invoked=None)


def to(collector: Collector, **other: object) -> Target:
    target = Target(collector.url, {"Authorization": "Bearer t0ken"}, 2.0, "bot", "1.2", False)
    return replace(target, **other)  # type: ignore[arg-type]


def sent(collector: Collector, *records: AskRecord, **other: object) -> SpanExport:
    export = SpanExport(gather_s=0.0)
    for record in records:
        export.write(record, to(collector, **other))
    export.close()
    return export


def test_an_ask_its_turns_calls_and_sub_agents_are_one_tree() -> None:
    with collecting() as collector:
        export = sent(collector, ASK)
    parents = {span.name: span.parent_id for span in collector.spans}
    assert [span.name for span in collector.spans] == [
        "invoke_agent bot",
        "execute_tool clock.now",
        "chat fast",
        "execute_tool tool_search",
        "execute_tool weather.now",
        "invoke_agent helper",
        "chat fast",
        "execute_tool helper.sub",
        "invoke_agent helper/sub",
        "chat fast",
    ]
    assert parents["invoke_agent bot"] == PARENT
    assert parents["execute_tool weather.now"] == ask_span("ask_00")
    assert parents["invoke_agent helper"] == call_span("ask_00", "c2")
    assert parents["execute_tool helper.sub"] == agent_span("ask_00", "c2")
    assert parents["invoke_agent helper/sub"] == call_span("ask_00", "c2/c2")
    assert {span.trace_id for span in collector.spans} == {TRACE}
    assert {span.state for span in collector.spans} == {"a=1"}
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    assert turn_span("ask_00", "c2", 1) in {span.span_id for span in collector.spans}
    assert (export.delivered, export.dropped) == (1, 0)


def test_spans_have_the_conventional_attributes_and_the_times_of_the_ask() -> None:
    with collecting() as collector:
        sent(collector, ASK)
    ask, call = collector.named("invoke_agent bot"), collector.named("execute_tool weather.now")
    assert ask.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "session_runtime",
        "gen_ai.agent.name": "bot",
        "gen_ai.request.model": "fast",
        "gen_ai.usage.input_tokens": 300,
        "gen_ai.usage.output_tokens": 60,
        "gen_ai.usage.cache_read.input_tokens": 180,
        "gen_ai.usage.reasoning.output_tokens": 15,
        "session_runtime.ask.id": "ask_00",
        "session_runtime.ask.outcome": "failed",
        "session_runtime.generation": 3,
        "session_runtime.config.digest": "d1",
        "session_runtime.daemon.seconds": 0.004,
        "session_runtime.tokens.saved": 3_300,
        "session_runtime.tool_search.rule": "deferred",
        "error.type": "model.overloaded",
    }
    assert call.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather.now",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c2",
        "session_runtime.call.status": "error",
        "session_runtime.attempts": 2,
        "session_runtime.result.chars": 10,
        "error.type": "tool.failed",
    }
    assert (ask.failed, call.failed, ask.service) == (True, True, "bot")
    assert ask.end - ask.start == 1_500_000_000
    assert call.end - call.start == 250_000_000
    assert call.start - ask.start == 510_000_000
    chat = collector.spans[2].attributes
    assert chat["gen_ai.operation.name"] == "chat"
    assert chat["gen_ai.response.finish_reasons"] == ["tool_calls"]


def test_arguments_are_sent_only_where_content_is_on() -> None:
    name = "gen_ai.tool.call.arguments"
    for content in (False, True):
        with collecting() as collector:
            sent(collector, ASK, content=content)
        told = [span.attributes[name] for span in collector.spans if name in span.attributes]
        assert told == (["{}", '{"city":"Berlin"}'] if content else [])
        assert (b"Berlin" in collector.raw[0]) is content


def test_headers_go_along_and_stand_in_no_span_and_no_representation() -> None:
    with collecting() as collector:
        sent(collector, ASK)
        assert "t0ken" not in repr(to(collector))
    assert collector.headers[0]["authorization"] == "Bearer t0ken"
    assert b"t0ken" not in collector.raw[0]


def test_what_is_not_sampled_is_not_sent() -> None:
    with collecting() as collector:
        none = replace(ASK, trace=None)
        other = replace(ASK, trace=AskTrace(TRACE, None, False, False))
        export = sent(collector, none, other)
    assert (collector.paths, export.dropped) == ([], 0)
    assert [*spans_of(none, "bot", content=True)] == []


@pytest.mark.parametrize("status", [301, 400, 401, 500])
def test_a_collector_that_refuses_costs_spans_and_one_line_of_the_log(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with collecting() as collector:
        collector.status = status
        export = SpanExport(gather_s=0.0)
        for _ in range(3):
            export.write(ASK, to(collector))
        export.close()
    assert (export.delivered, export.dropped, collector.paths) == (0, 3, [])
    [line] = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith(f"spans are lost: the collector at {collector.url} cannot be used")
    assert "t0ken" not in caplog.text


def test_a_collector_that_hangs_does_not_hold_up_whoever_writes() -> None:
    with collecting(open_gate=False) as collector:
        export = SpanExport(max_queued=5, gather_s=0.0)
        export.write(ASK, to(collector))
        assert collector.asked.wait(10)
        for _ in range(20):
            export.write(ASK, to(collector))
        assert export.dropped == 15
        collector.gate.set()
        export.close()
    assert (export.delivered, export.dropped) == (6, 15)


def test_another_target_is_used_from_the_next_ask_on() -> None:
    with collecting() as one, collecting() as two:
        export = SpanExport(gather_s=0.0)
        export.write(ASK, to(one))
        export.write(ASK, to(two))
        export.close()
        assert (len(one.spans), len(two.spans)) == (10, 10)


def test_a_fault_of_an_exporter_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    failed, taken = threading.Event(), threading.Event()
    faults: list[Exception] = [RuntimeError("s3cret")]

    class Odd:
        def send(self, spans: Sequence[Span]) -> bool:
            if faults:
                failed.set()
                raise faults.pop()
            taken.set()
            return True

        def close(self) -> None:
            pass

    export = SpanExport(lambda _: Odd(), gather_s=0.0)
    export.write(ASK, to(Collector("http://127.0.0.1:9")))
    assert failed.wait(10)
    export.write(ASK, to(Collector("http://127.0.0.1:9")))
    assert taken.wait(10)
    export.close()
    assert (export.delivered, export.dropped) == (1, 1)
    assert "s3cret" not in caplog.text
    assert "spans are taken again" in caplog.text
