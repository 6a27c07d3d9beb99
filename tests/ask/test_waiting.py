"""A destructive call waits for a person, and what does not wait runs."""

import time
from pathlib import Path

import pytest

from session_runtime.types import (
    ConfirmationRequired,
    PendingCall,
    PrefetchFinished,
    ToolFinished,
    TurnStarted,
)
from tests.ask.confirming import Home, codes, following, texts
from tests.support import ask, calls, says


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.write("wipe")
    home.write("look", runtime={})
    return home


@pytest.mark.requirement("RTE-9a")
async def test_a_destructive_call_ends_the_ask_waiting_and_runs_nothing(home: Home) -> None:
    before = time.time()
    async with home.open(calls(("wipe", {"n": 1}), text="Shall I?")) as runtime:
        asked = await ask(runtime, "wipe it")
    [pending] = asked.result.pending
    assert (asked.result.outcome, asked.result.text, asked.result.error) == (
        "needs_confirmation",
        "Shall I?",
        None,
    )
    assert pending == PendingCall(pending.token, "wipe", {"n": 1}, "call_0", pending.expires_at)
    assert before + 600 <= pending.expires_at <= time.time() + 600
    assert [event.pending for event in asked.of(ConfirmationRequired)] == [pending]
    assert codes(asked) == ["tool.needs_confirmation"]
    assert texts(asked) == [
        "wipe was not run yet and nothing was changed: a person is asked whether it may run. If they "
        "agree, it is run without another call of yours, and you get its result."
    ]
    assert pending.token not in str(asked.result.new_messages)
    assert home.ran == []


@pytest.mark.requirement("RTE-9a")
async def test_beside_calls_that_wait_the_others_run_and_all_are_answered_in_order(
    home: Home,
) -> None:
    reply = calls(("wipe", {"n": 1}), ("look", {"n": 2}), ("wipe", {"n": 3}), ("nope", {}))
    async with home.open(reply, says("done")) as runtime:
        first = await ask(runtime, "go")
        assert home.arguments == [{"n": 2}]
        [_, made, *told] = first.result.new_messages
        assert [m.tool_call_id for m in told] == [call.id for call in made.tool_calls]
        assert [call.arguments for call in first.result.pending] == [{"n": 1}, {"n": 3}]
        assert [e.pending for e in first.of(ConfirmationRequired)] == [*first.result.pending]
        one, two = first.result.pending
        half = following(first.result, confirmations=(two.token,), declined=(one.token,))
        second = await ask(runtime, half)
    assert home.arguments == [{"n": 2}, {"n": 3}]
    [_, made, *told, _] = second.result.new_messages
    assert [m.tool_call_id for m in told] == [call.id for call in made.tool_calls]
    assert codes(second) == [None, "tool.declined"] or codes(second) == ["tool.declined", None]
    assert '{"gone":{"n":3}}' in texts(second)


@pytest.mark.requirement("RTE-9a")
@pytest.mark.parametrize("setting", ["confirm", "allow"])
async def test_a_prefetch_never_runs_a_destructive_tool_and_asks_nobody(
    home: Home, setting: str
) -> None:
    home.write("sweep", parameters={"type": "object"})
    access = f'[access]\ndestructive = "{setting}"\n'
    async with home.open(says("done"), prefetch='"sweep"', extra=access) as runtime:
        asked = await ask(runtime, "go")
    [prefetched] = asked.of(PrefetchFinished)
    assert prefetched.failed == {"sweep": "tool.needs_confirmation"}
    assert (asked.result.outcome, asked.of(ConfirmationRequired)) == ("answered", [])
    assert home.ran == []


@pytest.mark.requirement("RTE-9a")
@pytest.mark.parametrize(
    ("setting", "status", "code"), [("allow", "ok", None), ("deny", "refused", "tool.unknown")]
)
async def test_where_the_operator_decides_for_all_nobody_is_asked(
    home: Home, setting: str, status: str, code: str | None
) -> None:
    access = f'[access]\ndestructive = "{setting}"\n'
    async with home.open(calls(("wipe", {"n": 1})), says("done"), extra=access) as runtime:
        asked = await ask(runtime, "go")
    assert ("wipe" in asked.of(TurnStarted)[0].exposed) is (setting == "allow")
    assert [(e.status, e.error_code) for e in asked.of(ToolFinished)] == [(status, code)]
    assert asked.result.outcome == "answered"
    assert len(home.ran) == (setting == "allow")


@pytest.mark.requirement("RTE-9a")
async def test_more_calls_than_a_request_can_confirm_do_not_wait(home: Home) -> None:
    reply = calls(*(("wipe", {"n": number}) for number in range(33)))
    many = "[ask]\nmax_tool_calls = 100\n"
    async with home.open(reply, says("done"), extra=many) as runtime:
        first = await ask(runtime, "go")
        second = await ask(runtime, following(first.result))
    assert len(first.result.pending) == 32
    assert sum("32 other calls wait" in text for text in texts(first)) == 1
    assert second.result.outcome == "answered"
    assert len(home.ran) == 32


@pytest.mark.requirement("RTE-9a")
async def test_a_call_that_is_too_long_to_read_does_not_wait(home: Home) -> None:
    longer = {"n": 1, "to": "x" * 300_000}
    async with home.open(calls(("wipe", longer)), says("done")) as runtime:
        asked = await ask(runtime, "go")
    assert (asked.result.outcome, asked.result.pending) == ("answered", ())
    assert "Call it with less at a time" in texts(asked)[0]
