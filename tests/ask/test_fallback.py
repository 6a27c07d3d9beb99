"""What the loop hands to a profile that takes over, turn by turn."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime import Identity, Message, Runtime
from session_runtime.ask.emitter import Emitter, discard
from session_runtime.ask.exposure import Exposure, open_exposure
from session_runtime.ask.guards import Budget, CallGuard
from session_runtime.ask.loop import Ending, Loop
from session_runtime.ask.scope import AskScope, LoopLimits
from session_runtime.ask.transcript import Transcript
from session_runtime.errors import PermanentError
from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.types import ToolCall
from tests.support import nobody_agrees, opened, tool_folder, write_handler

CHAIN = """
[skills]
tool_search_enabled = true
tool_search_always_loaded = []
prefetch_tools = []
[models.main]
wire = "offline"
fallback = "backup"
[models.backup]
wire = "offline"
name_separator = "-"
max_tools = 3
"""


class Carrying:
    """A model that plays replies and remembers what it was asked; None is a failure for good."""

    def __init__(self, *replies: ModelReply | None) -> None:
        self._replies = list(replies)
        self.asked: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.asked.append(request)
        reply = self._replies.pop(0)
        if reply is None:
            raise PermanentError("no", code="model.unauthorized")
        return reply

    async def aclose(self) -> None:
        raise NotImplementedError


def search(query: str, carry: object, call_id: str) -> ModelReply:
    call = ToolCall(call_id, "tool_search", f'{{"query": "{query}"}}')
    return ModelReply(calls=(call,), carry=carry)


def loop_of(runtime: Runtime, models: dict[str, Carrying]) -> tuple[Loop, Exposure]:
    """The loop of an ask whose profiles have these models."""
    profiles = {
        name: replace(profile, model=models[name])
        for name, profile in runtime.generation.profiles.items()
    }
    generation = replace(runtime.generation, profiles=profiles)
    deadline = asyncio.get_running_loop().time() + 60
    emitter = Emitter("ask_1", discard)
    guard, steps, consent = CallGuard(10), Budget(9), nobody_agrees()
    scope = AskScope(
        "ask_1", generation, Identity(), emitter, guard, steps, deadline, consent, LoopLimits()
    )
    mask = generation.policy.mask(Identity())
    exposure = open_exposure(generation, profiles["main"], mask, ())
    return Loop(scope, exposure, Transcript((), (Message("user", "hi"),))), exposure


@pytest.fixture
def tools(tmp_path: Path) -> str:
    for name in ("a.one", "a.two", "a.three"):
        write_handler(tmp_path / "tools", name)
    return f"{tool_folder(tmp_path)}bundled = false\n"


@pytest.mark.requirement("ASK-9b")
async def test_a_fallback_begins_without_what_another_profile_carried_and_then_has_its_own(
    tmp_path: Path, tools: str
) -> None:
    main = Carrying(search("select:a.one", "of main", "c1"), None)
    backup = Carrying(search("a", "of backup", "c2"), ModelReply("done"))
    async with opened(tmp_path, tools + CHAIN) as runtime:
        loop, _ = loop_of(runtime, {"main": main, "backup": backup})
        assert await loop.run() == Ending("answered", "done")
    assert [request.carry for request in main.asked] == [None, "of main"]
    assert [request.carry for request in backup.asked] == [None, "of backup"]
    assert main.asked[1].messages == backup.asked[0].messages
    assert main.asked[1].tools is backup.asked[0].tools
    assert [request.names.encode("a.one") for request in (*main.asked, *backup.asked)] == [
        "a__one",
        "a__one",
        "a-one",
        "a-one",
    ]
    assert backup.asked[0].names is backup.asked[1].names


@pytest.mark.requirement("ASK-12b")
async def test_once_a_fallback_answers_its_limit_of_tools_is_the_one_that_counts(
    tmp_path: Path, tools: str
) -> None:
    main = Carrying(search("select:a.one", None, "c1"), None)
    backup = Carrying(search("select:a.two,a.three", None, "c2"), ModelReply("done"))
    async with opened(tmp_path, tools + CHAIN) as runtime:
        loop, exposure = loop_of(runtime, {"main": main, "backup": backup})
        await loop.run()
    assert exposure.loaded == ("a.one", "a.two")
    assert [len(request.tools) for request in backup.asked] == [2, 3]


@pytest.mark.requirement("ASK-9b")
async def test_a_fallback_that_fails_too_leaves_the_turn_in_the_trace_under_its_name(
    tmp_path: Path, tools: str
) -> None:
    async with opened(tmp_path, tools + CHAIN) as runtime:
        loop, exposure = loop_of(runtime, {"main": Carrying(None), "backup": Carrying(None)})
        with pytest.raises(PermanentError, match="model profile 'main' failed: no"):
            await loop.run()
    assert [(turn.model, turn.attempts) for turn in loop.progress.turns] == [("backup", 2)]
    assert exposure.profile.name == "main"
