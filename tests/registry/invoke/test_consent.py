"""A destructive tool is not run unless the operator allows that."""

from collections.abc import Mapping
from typing import Any

import pytest

from session_runtime.config.tools import Destructive
from session_runtime.handler import HandlerContext
from session_runtime.registry.confirmations import Asker, Confirmations
from session_runtime.registry.invoke.consent import AskConsent, Proposed
from session_runtime.registry.spec import Annotations, ToolSpec
from session_runtime.types import Identity, ToolCall
from tests.registry.invoke.calling import invoke, returning, told

DESTRUCTIVE = Annotations(destructive=True)


@pytest.mark.requirement("RTE-9")
@pytest.mark.parametrize("setting", ["confirm", "deny"])
async def test_where_nobody_can_be_asked_a_destructive_tool_is_refused_before_it_runs(
    setting: Destructive,
) -> None:
    ran: list[object] = []

    async def wipe(arguments: Mapping[str, Any], context: HandlerContext) -> object:
        ran.append(arguments)
        return None

    result = await invoke(wipe, annotations=DESTRUCTIVE, destructive=setting)
    assert told(result) == (
        "refused",
        "tool.needs_confirmation",
        "t was not run and nothing was changed: it is destructive and needs the consent of a person, and "
        "nobody can be asked here. Trying again will not help.",
    )
    assert ran == []


@pytest.mark.requirement("RTE-9")
async def test_a_destructive_tool_runs_where_that_is_allowed() -> None:
    result = await invoke(returning("gone"), annotations=DESTRUCTIVE, destructive="allow")
    assert told(result) == ("ok", None, "gone")


@pytest.mark.requirement("RTE-9")
async def test_wrong_arguments_of_a_destructive_tool_are_told_first() -> None:
    schema = {"type": "object", "required": ["n"]}
    result = await invoke(returning("x"), parameters=schema, annotations=DESTRUCTIVE)
    assert (result.status, result.error_code) == ("error", "tool.invalid_arguments")


@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize(
    ("form", "arguments", "runs"),
    [("now", {"n": 1}, True), ("later", {"n": 1}, False), ("now", {"n": 2}, False)],
)
async def test_a_yes_is_for_the_form_and_the_arguments_that_were_shown(
    form: str, arguments: dict[str, int], runs: bool
) -> None:
    confirmations, ann = Confirmations(), Asker("local", Identity("ann"))
    spec = ToolSpec("t", "", {}, "mcp", "mcp:a", "t", "", DESTRUCTIVE)
    call = ToolCall("c1", "t", "{}")
    before = AskConsent(confirmations, ann, "ask_1", 600)
    assert await before.of(call).missing(Proposed(spec, "now", {"n": 1}))
    pending = before.pending("c1")
    assert pending is not None
    answered = confirmations.claim(ann, [pending.token])
    after = AskConsent(confirmations, ann, "ask_2", 600, answered)
    missing = await after.of(call).missing(Proposed(spec, form, arguments))
    assert (missing is None) == runs
