import pytest

from session_runtime.cli.terminal import TerminalReport
from session_runtime.transports.outbox import Delivery
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskResult,
    AskStarted,
    ErrorInfo,
    MessageSent,
    Notice,
    PrefetchFinished,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolsLoaded,
    ToolStarted,
    TurnStarted,
    Usage,
)


def shown(capsys: pytest.CaptureFixture[str], *events: AskEvent) -> tuple[str, str]:
    report = TerminalReport()
    for event in events:
        report.event(Delivery(event))
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_a_person_sees_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(
        capsys,
        AskStarted(generation=1, model="m"),
        PrefetchFinished(ok=("clock",), failed={"weather": "tool.timeout"}),
        TurnStarted(step=1, exposed=("tool_search", "end"), model="m"),
        ToolStarted(call_id="c1", name="tool_search", arguments={"query": "sums"}),
        ToolsLoaded(names=("math.evaluate",)),
        ToolFinished(call_id="c1", name="tool_search", status="ok"),
        TurnStarted(step=2, exposed=("tool_search", "end", "math.evaluate"), model="m", attempt=2),
        TextDelta(text="let me "),
        TextDelta(text="see"),
        ToolStarted(call_id="c2", name="math.evaluate", arguments={"expression": "2+3"}),
        ToolProgress(call_id="c2", done=1, total=2, message="adding"),
        ToolProgress(call_id="c2", done=2),
        ToolFinished(call_id="c2", name="math.evaluate", status="error", error_code="tool.failed"),
        Notice(text="calling"),
        MessageSent(text="[bold]one moment[/]"),
        TextDelta(text="it is "),
        TextDelta(text="5"),
        AskFinished(result=AskResult("a", "answered", "it is 5", usage=Usage(9, 1), steps=2)),
    )
    assert err == ""
    assert out.splitlines() == [
        "· prefetched clock, weather (failed)",
        "· turn 1 with 2 tools",
        '→ tool_search {"query":"sums"}',
        "+ loaded math.evaluate",
        "✓ tool_search",
        "· turn 2 with 3 tools, attempt 2 with m",
        "let me see",
        '→ math.evaluate {"expression":"2+3"}',
        "  1 of 2 adding",
        "  2",
        "✗ math.evaluate: error (tool.failed)",
        "· calling",
        "[bold]one moment[/]",
        "it is 5",
        "— answered after 2 turns, 10 tokens",
    ]


def test_text_that_was_not_streamed_is_shown_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(
        capsys,
        TextDelta(text="it"),
        AskFinished(result=AskResult("a", "answered", "it is 5", steps=1)),
    )
    assert out.splitlines() == ["it", "it is 5", "— answered after 1 turns, 0 tokens"]


def test_why_it_failed_goes_to_the_error_stream(capsys: pytest.CaptureFixture[str]) -> None:
    error = ErrorInfo("model.network", "no route")
    out, err = shown(capsys, AskFinished(result=AskResult("a", "failed", error=error)))
    assert (out, err) == (
        "— failed after 0 turns, 0 tokens\n",
        "failed: no route (model.network)\n",
    )


def test_nothing_from_outside_can_take_over_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = "\x1b]0;owned\x07\x9b2J\u202e"
    out, _ = shown(
        capsys,
        TextDelta(text=evil),
        ToolStarted(call_id="c", name=evil, arguments={evil: evil}),
        Notice(text=evil),
        MessageSent(text=evil),
        AskFinished(result=AskResult("a", "answered", evil + "!")),
    )
    assert out.replace("\n", "").isprintable()
