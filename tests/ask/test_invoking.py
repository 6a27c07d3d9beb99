"""A tool that an embedding program calls by its name: as an ask without a model (NET-1f)."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, DirectCall, Identity
from session_runtime.types import AskFinished, AskStarted, ToolFinished, ToolStarted
from tests.ask.confirming import Home
from tests.support import ask


@pytest.mark.requirement("NET-1f")
async def test_a_call_asks_no_model_and_has_the_events_of_one(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.write("a.note", runtime={"aliases": ["remember"]})
    async with home.open() as runtime:
        asked = await ask(runtime, AskRequest(call=DirectCall("remember", {"n": 1})))
    result = asked.result
    assert result.called is not None
    assert (result.outcome, result.text, result.steps, result.usage.model_calls) == (
        "answered",
        "",
        0,
        0,
    )
    assert (result.called.tool, result.called.structured) == ("a.note", {"gone": {"n": 1}})
    kinds = [type(event) for event in asked.events]
    assert kinds == [AskStarted, ToolStarted, ToolFinished, AskFinished]


@pytest.mark.requirement("RTE-9b")
async def test_what_a_call_waits_for_is_confirmed_by_the_same_call_with_its_token(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    home.write("a.wipe")
    async with home.open() as runtime:
        call = DirectCall("a.wipe", {"n": 1})
        first = (await ask(runtime, AskRequest(call=call))).result
        token = first.pending[0].token
        no = (await ask(runtime, AskRequest(call=call, declined=[token]))).result
        again = (await ask(runtime, AskRequest(call=call))).result.pending[0].token
        yes = (await ask(runtime, AskRequest(call=call, confirmations=[again]))).result
    assert (first.outcome, no.error and no.error.code) == ("needs_confirmation", "tool.declined")
    assert (yes.outcome, home.arguments) == ("answered", [{"n": 1}])


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (AskRequest("hi", call=DirectCall("a.note", {})), "exactly one of them; or call"),
        (AskRequest(call="a.note"), "call is 'a.note': give a DirectCall"),  # type: ignore[arg-type]
        (AskRequest(call=DirectCall(7, {})), "call.tool is 7"),  # type: ignore[arg-type]
        (AskRequest(call=DirectCall("a", [])), "call.arguments is list"),  # type: ignore[arg-type]
        (AskRequest(call=DirectCall("b", {}), identity=Identity("u")), "there is no tool 'b' here"),
    ],
)
async def test_a_wrong_call_is_refused(tmp_path: Path, request_: Any, said: str) -> None:
    home = Home(tmp_path)
    home.write("a.note", runtime={})
    async with home.open() as runtime:
        result = (await ask(runtime, request_)).result
    assert (result.outcome, result.error and said in result.error.message) == ("failed", True)
    assert home.ran == []
