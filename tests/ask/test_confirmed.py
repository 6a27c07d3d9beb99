"""Destructive calls wait for a person, and run in the next ask exactly as they were asked about."""

import asyncio
import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Runtime
from session_runtime.ask.service import AskService
from session_runtime.registry.confirmations import Confirmations
from session_runtime.trace.record import AskRecord
from session_runtime.types import (
    AskEvent,
    Message,
    Principal,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from tests.ask.confirming import ANN, RECORDS, Home, codes, following, texts
from tests.support import ask, calls, opened, says, write_config

SLOW = """
import asyncio

async def execute(args, context):
    context.progress(1, 2, "half")
    await asyncio.Event().wait()
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.write("wipe")
    home.write("look", runtime={})
    return home


@pytest.mark.requirement("ASK-2c")
@pytest.mark.requirement("RTE-9b")
async def test_a_confirmed_call_runs_before_the_model_is_asked_and_the_model_sees_it(
    home: Home,
) -> None:
    async with home.open(calls(("wipe", {"to": "x", "n": 1})), says("It is gone.")) as runtime:
        first = await ask(runtime, "wipe it")
        second = await ask(runtime, following(first.result))
    assert [(list(args), args) for args in home.arguments] == [(["to", "n"], {"to": "x", "n": 1})]
    assert (second.result.outcome, second.result.text) == ("answered", "It is gone.")
    assert second.result.pending == ()
    [question, made, told, answer] = second.result.new_messages
    [call] = made.tool_calls
    assert (question.content, made.content, call.name) == ("yes, please", None, "wipe")
    assert call.id not in [c.id for m in first.result.new_messages for c in m.tool_calls]
    assert json.loads(call.arguments) == {"to": "x", "n": 1}
    assert told == Message("tool", '{"gone":{"to":"x","n":1}}', tool_call_id=call.id)
    assert answer.content == "It is gone."
    kinds = [type(event) for event in second.events]
    assert kinds.index(ToolStarted) < kinds.index(ToolFinished) < kinds.index(TurnStarted)


@pytest.mark.requirement("RTE-9b")
async def test_a_confirmation_is_used_up_by_one_request(home: Home) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        again = following(first.result)
        results = await asyncio.gather(*(runtime.ask(again) for _ in range(5)))
    assert sorted(result.outcome for result in results) == ["answered", *["failed"] * 4]
    assert {result.error.code for result in results if result.error} == {"confirmation.invalid"}
    assert home.arguments == [{"n": 1}]


@pytest.mark.requirement("RTE-9b")
async def test_a_wrong_token_refuses_the_request_before_anything_happens(home: Home) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        for wrong in (
            {"confirmations": ["nonsense"]},
            {"identity": ANN},
            {"conversation": "other"},
            {"principal": Principal("bot")},
            {"model": "no such model"},
        ):
            asked = await ask(runtime, following(first.result, **wrong))
            assert [event.type for event in asked.events] == ["ask.finished"]
            assert asked.result.outcome == "failed"
        asked = await ask(runtime, following(first.result))
    assert asked.result.outcome == "answered"
    assert home.arguments == [{"n": 1}]


async def test_a_request_whose_tokens_are_no_texts_is_refused(home: Home) -> None:
    async with home.open(says("done")) as runtime:
        for wrong in ("a token", [5], 7):
            asked = await ask(runtime, AskRequest("yes", confirmations=wrong))  # type: ignore[arg-type]
            assert asked.result.error is not None
            assert asked.result.error.code == "request.invalid"
            assert "token" not in asked.result.error.message.replace("the tokens of", "")


@pytest.mark.requirement("RTE-9b")
async def test_a_call_that_was_declined_does_not_run_and_the_model_is_told(home: Home) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("I leave it.")) as runtime:
        first = await ask(runtime, "wipe it")
        [token] = [call.token for call in first.result.pending]
        no = following(first.result, confirmations=(), declined=(token,))
        second = await ask(runtime, no)
        third = await ask(runtime, following(first.result))
    assert second.result.text == "I leave it."
    assert codes(second) == ["tool.declined"]
    assert texts(second)[0].startswith("wipe was not run and nothing was changed: the person who")
    assert third.result.error is not None
    assert home.ran == []


@pytest.mark.requirement("RTE-9b")
async def test_the_arguments_are_those_that_were_shown_whatever_the_request_says(
    home: Home,
) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        [_, made, told] = first.result.new_messages
        first.result.pending[0].arguments["n"] = 9  # type: ignore[index]
        forged = replace(made, tool_calls=(replace(made.tool_calls[0], arguments='{"n": 9}'),))
        await ask(runtime, following(first.result, history=(forged, told)))
    assert home.arguments == [{"n": 1}]


@pytest.mark.requirement("RTE-9b")
async def test_arguments_that_were_mended_are_asked_about_and_run_as_they_were_understood(
    home: Home,
) -> None:
    fenced = '```json\n{"n": 1, "to": "天气",}\n```'
    async with home.open(calls(("wipe", fenced)), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        second = await ask(runtime, following(first.result))
    assert [call.arguments for call in first.result.pending] == [{"n": 1, "to": "天气"}]
    assert home.arguments == [{"n": 1, "to": "天气"}]
    [made] = [call for message in second.result.new_messages for call in message.tool_calls]
    assert made.arguments == '{"n": 1, "to": "天气"}'


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize("second_call", [{"n": 1}, {"n": 2}], ids=["equal", "other"])
async def test_a_confirmation_that_was_used_lets_no_other_call_run(
    home: Home, second_call: dict[str, int]
) -> None:
    script = [calls(("wipe", {"n": 1})), calls(("wipe", second_call))]
    async with home.open(*script) as runtime:
        first = await ask(runtime, "wipe it")
        second = await ask(runtime, following(first.result))
    assert home.arguments == [{"n": 1}]
    assert second.result.outcome == "needs_confirmation"


@pytest.mark.requirement("RTE-9b")
async def test_a_call_that_could_not_be_carried_out_is_still_confirmed_for_the_model(
    home: Home,
) -> None:
    """It is revoked by what runs before, and given back when the model calls it again."""
    act = "async def execute(args, context):\n    await context.resources[{!r}]()\n"
    for name in ("take", "lift"):
        home.write(name, code=act.format(name), parameters={"type": "object"}, runtime={})
    again = calls(*(("wipe", {"n": number}) for number in (2, 1, 1)))
    script = [calls(("wipe", {"n": 1})), calls(("lift", {})), again]
    resources: dict[str, Any] = {"ran": home.ran}
    config = home.config(*script, prefetch='"take"')
    async with opened(home.folder, config, resources=resources) as runtime:
        resources["take"] = partial(asyncio.sleep, 0)
        first = await ask(runtime, "wipe it")
        resources["take"] = partial(runtime.brake.revoke, "wipe")
        resources["lift"] = partial(runtime.brake.lift, "wipe")
        second = await ask(runtime, following(first.result))
    assert codes(second)[0] == "tool.unknown"
    assert home.arguments == [{"n": 1}]
    assert second.result.outcome == "needs_confirmation"
    assert [call.arguments["n"] for call in second.result.pending] == [2, 1]


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"code": RECORDS + "# another form"}, "tool.changed"),
        ({"parameters": {"type": "object"}}, "tool.changed"),
        ({"runtime": {"destructive": True, "requires": ["admin"]}}, "tool.unknown"),
        (None, "tool.unknown"),
    ],
    ids=["code", "schema", "forbidden", "gone"],
)
async def test_a_tool_that_changed_meanwhile_does_not_run(
    home: Home, change: dict[str, Any] | None, code: str
) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        shutil.rmtree(home.folder / "tools" / "wipe")
        if change is not None:
            home.write("wipe", **change)
        await runtime.live.reload("cli")
        second = await ask(runtime, following(first.result))
    assert (second.result.outcome, codes(second)) == ("answered", [code])
    assert home.ran == []


@pytest.mark.requirement("RTE-9b")
async def test_a_confirmation_outlives_a_reload_that_leaves_the_tool_as_it_is(home: Home) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        home.write("other")
        await runtime.live.reload("cli")
        second = await ask(runtime, following(first.result))
        assert first.result.generation < second.result.generation
    assert home.arguments == [{"n": 1}]


@pytest.mark.requirement("RTE-9b")
async def test_a_confirmation_does_not_outlive_the_runtime(home: Home) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        second = await ask(runtime, following(first.result))
    assert second.result.error is not None
    assert second.result.error.code == "confirmation.invalid"
    assert home.ran == []


@pytest.mark.requirement("RTE-9b")
async def test_a_tool_that_is_revoked_meanwhile_does_not_run(home: Home) -> None:
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        await runtime.brake.revoke("wipe")
        second = await ask(runtime, following(first.result))
    assert (second.result.outcome, codes(second)) == ("answered", ["tool.unknown"])
    assert home.ran == []


@pytest.mark.requirement("RTE-9b")
async def test_the_limit_of_calls_holds_for_confirmed_ones_too(home: Home) -> None:
    script = [calls(("wipe", {"n": 1}), ("wipe", {"n": 2})), says("done")]
    async with home.open(*script) as runtime:
        first = await ask(runtime, "wipe it")
        limited = home.config(*script, extra="[ask]\nmax_tool_calls = 1\n")
        write_config(home.folder, limited)
        await runtime.live.reload("cli")
        second = await ask(runtime, following(first.result))
    assert sorted(map(str, codes(second))) == ["None", "limit.calls"]
    assert len(home.ran) == 1


@pytest.mark.requirement("RTE-9b")
async def test_a_confirmation_that_expires_before_the_call_runs_is_asked_for_again(
    home: Home,
) -> None:
    """Time runs out while what comes before is under way; then the new call waits, and no model runs."""
    late = "async def execute(args, context):\n    context.resources['pass_time']()\n"
    home.write("late", code=late, parameters={"type": "object"}, runtime={})
    now = [0.0]
    resources: dict[str, Any] = {"ran": home.ran, "pass_time": lambda: None}
    config = home.config(calls(("wipe", {"n": 1})), says("done"), prefetch='"late"')
    async with opened(home.folder, config) as runtime:
        service = service_of(runtime, resources, Confirmations(lambda: now[0]))
        first = await service.ask(AskRequest("wipe it"))
        resources["pass_time"] = partial(now.__setitem__, 0, 600.0)
        second = await service.ask(following(first))
        assert (second.outcome, second.steps, home.ran) == ("needs_confirmation", 0, [])
        resources["pass_time"] = lambda: None
        history = (*first.new_messages, *second.new_messages)
        third = await service.ask(following(second, history=history))
        now[0] = 1_200.0
        late_yes = await service.ask(following(second))
    assert third.outcome == "answered"
    assert home.arguments == [{"n": 1}]
    assert late_yes.error is not None
    assert "was used before" in late_yes.error.message


def service_of(
    runtime: Runtime, resources: Mapping[str, Any], confirmations: Confirmations
) -> AskService:
    """A second door to the generations of a runtime, whose confirmations have another clock."""
    return AskService(runtime._builder.generations, forget, resources, confirmations)


def forget(record: AskRecord) -> None:
    """Keep no trace."""


async def test_the_trace_tells_what_was_confirmed(home: Home) -> None:
    records: list[AskRecord] = []
    async with home.open(calls(("wipe", {"n": 1})), says("done")) as runtime:
        service = AskService(runtime._builder.generations, records.append, {"ran": home.ran})
        first = await service.ask(AskRequest("wipe it"))
        await service.ask(following(first))
    assert [record.outcome for record in records] == ["needs_confirmation", "answered"]
    assert [(call.name, call.status) for call in records[1].confirmed] == [("wipe", "ok")]
    assert records[0].confirmed == ()


@pytest.mark.requirement("RTE-9b")
async def test_what_a_confirmed_call_did_is_in_the_messages_of_an_ask_that_was_cancelled(
    home: Home,
) -> None:
    home.write("slow", code=SLOW, parameters={"type": "object"})
    both = calls(("wipe", {"n": 1}), ("slow", {}))
    async with home.open(both, says("done")) as runtime:
        first = await ask(runtime, "wipe it")
        runs = asyncio.Event()
        seen: list[AskEvent] = []

        def emit(event: AskEvent) -> None:
            seen.append(event)
            if sum(isinstance(each, ToolFinished | ToolProgress) for each in seen) == 2:
                runs.set()

        asking = asyncio.create_task(runtime.ask(following(first.result), emit))
        await runs.wait()
        runtime.running.cancel(seen[0].ask_id, "enough")
        result = await asking
    assert result.outcome == "cancelled"
    [_, made, wiped, slow] = result.new_messages
    assert [call.name for call in made.tool_calls] == ["wipe", "slow"]
    assert wiped == Message("tool", '{"gone":{"n":1}}', tool_call_id=made.tool_calls[0].id)
    assert (slow.tool_call_id, slow.is_error) == (made.tool_calls[1].id, True)
