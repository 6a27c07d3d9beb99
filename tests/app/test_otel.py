"""Asks of a runtime as spans at a real collector, and the trace of a caller on its way to tools."""

from pathlib import Path

import pytest

from session_runtime import AskRequest, Runtime
from session_runtime.trace.reading import Traces
from session_runtime.trace.traceparent import ask_span
from session_runtime.trace_context import TraceContext
from tests.app.test_metrics import read
from tests.support import calls, opened, says, scripted, tool_folder, write_agent, write_handler
from tests.trace.collector import Collector, collecting

pytestmark = pytest.mark.requirement("OPS-1b")

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = TraceContext(f"00-{TRACE}-{PARENT}-01", "a=1")
TELLS = "def execute(args, context):\n    return str(context.trace)\n"
PASSWORD = "hunter2hunter2"


def configured(folder: Path, collector: Collector, extra: str = "") -> str:
    write_handler(folder / "tools", "a.tell", code=TELLS)
    write_agent(folder / "tools", "helper", settings='tools = ["a.tell"]\n')
    asks = calls(("a.tell", {"password": PASSWORD}), ("helper", {"task": "x"}))
    script = scripted(folder, asks, says("done"), says("done"))
    otel = f'[otel]\nenabled = true\nendpoint = "{collector.url}"\n'
    secret = f'headers.X-Token = "{PASSWORD}"\n{extra}'
    return tool_folder(folder) + "[skills]\nprefetch_tools = []\n" + script + otel + secret


async def test_an_ask_is_sent_below_the_span_of_its_caller(tmp_path: Path) -> None:
    with collecting() as collector:
        async with opened(tmp_path, configured(tmp_path, collector)) as runtime:
            result = await runtime.ask(AskRequest("go", trace=GIVEN))
        told = next(each.content for each in result.new_messages if each.role == "tool")
    by_id = {span.span_id: span for span in collector.spans}
    ask = by_id[ask_span(result.ask_id)]
    assert (ask.name, ask.parent_id, ask.trace_id) == (
        "invoke_agent session-runtime",
        PARENT,
        TRACE,
    )
    below = {span.name: span for span in collector.spans if span.parent_id == ask.span_id}
    tell = below["execute_tool a.tell"]
    assert f"traceparent='00-{TRACE}-{tell.span_id}-01', tracestate='a=1'" in str(told)
    for span in collector.spans:
        assert span.parent_id in {*by_id, PARENT}
        assert ask.start <= span.start <= span.end <= ask.end
    tokens = "gen_ai.usage.input_tokens"
    assert ask.attributes[tokens] == result.usage.input_tokens


async def test_no_secret_and_no_content_is_in_any_span(tmp_path: Path) -> None:
    with collecting() as collector:
        extra = "content = true\n"  # which sends no more than trace.content lets be recorded
        async with opened(tmp_path, configured(tmp_path, collector, extra)) as runtime:
            await runtime.ask(AskRequest(f"my password is {PASSWORD}", trace=GIVEN))
            metrics = runtime.metrics()
    assert collector.headers[0]["x-token"] == PASSWORD
    assert PASSWORD.encode() not in b"".join(collector.raw)
    assert PASSWORD not in metrics
    assert not any("gen_ai.tool.call.arguments" in span.attributes for span in collector.spans)


async def test_a_collector_that_is_down_changes_nothing_for_an_ask(tmp_path: Path) -> None:
    dead = Collector(url="http://127.0.0.1:9/v1/traces")
    async with opened(tmp_path, configured(tmp_path, dead, "timeout_s = 0.2\n")) as runtime:
        result = await runtime.ask(AskRequest("go"))
        runtime._records._spans.close()
        numbers = read(runtime)
    assert result.outcome == "answered"
    assert numbers['otel_asks_total{outcome="dropped"}'] == 1
    assert numbers['otel_asks_total{outcome="delivered"}'] == 0


async def test_spans_are_switched_on_and_off_without_a_restart(tmp_path: Path) -> None:
    with collecting() as collector:
        text = configured(tmp_path, collector)
        off = text.replace("enabled = true", "enabled = false")
        async with opened(tmp_path, off) as runtime:
            await runtime.ask(AskRequest("go"))
            config = (tmp_path / "config.toml").read_text("utf-8")
            (tmp_path / "config.toml").write_text(config.replace(off, text), "utf-8")
            receipt = await runtime.live.reload("cli")
            assert receipt.verdict == "applied"
            await runtime.ask(AskRequest("go"))
    assert len([span for span in collector.spans if span.parent_id == ""]) == 1


async def test_the_trace_of_an_ask_names_the_trace_of_its_caller(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("# defaults\n", "utf-8")
    async with Runtime.open(tmp_path / "config.toml", env={}, watch=False) as runtime:
        await runtime.ask(AskRequest("go", trace=GIVEN))
        await runtime.ask(AskRequest("go"))
    traces = Traces(tmp_path / ".session-runtime" / "trace.jsonl")
    first, second = (each.record.trace for each in traces.oldest_first())
    assert first is not None
    assert (first.trace_id, first.parent_id, first.exported) == (TRACE, PARENT, False)
    assert second is None
