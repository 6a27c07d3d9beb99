"""What an ask exposes under which rule, and that nothing else can run."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime import Identity, Runtime
from session_runtime.ask.emitter import Emitter, discard
from session_runtime.ask.exposure import Exposure, open_exposure
from session_runtime.ask.guards import Budget, CallGuard
from session_runtime.ask.run import choose_profile
from session_runtime.ask.scope import AskScope, LoopLimits
from session_runtime.ask.turn import run_calls
from session_runtime.search import PROMPT_RULE
from session_runtime.testing.replies import reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolCall, ToolResult, TurnStarted
from tests.support import (
    ask,
    calls,
    chat_profile,
    nobody_agrees,
    opened,
    says,
    scripted,
    write_handler,
)

ON = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
NAMES = (
    "music.play",
    "music.stop",
    "mail.send",
    "mail.list",
    "clock.now",
    "clock.alarm",
    "admin.wipe",
)
RECORD = "def execute(args, context):\n    context.resources['ran'].append(context.call_id)\n"


def expose(runtime: Runtime, mask: int | None = None, model: str | None = None) -> Exposure:
    generation = runtime.generation
    mask = generation.policy.mask(Identity()) if mask is None else mask
    return open_exposure(generation, choose_profile(generation, model), mask, ())


@pytest.fixture
def tools(tmp_path: Path) -> str:
    for name in NAMES:
        write_handler(tmp_path / "tools", name, code=RECORD)
    return '[handlers]\npaths = ["tools"]\nbundled = false\n'


@pytest.mark.requirement("TS-1")
async def test_without_tool_search_the_whole_permitted_list_is_sent_in_order(
    tmp_path: Path, tools: str
) -> None:
    denied = '[skills]\nprefetch_tools = []\n[access.rules.r]\ndeny = ["admin.*"]\n'
    async with opened(tmp_path, tools + denied + scripted(tmp_path, says("hi"))) as runtime:
        asked = await ask(runtime, "go")
    assert asked.of(TurnStarted)[0].exposed == tuple(sorted(set(NAMES) - {"admin.wipe"}))


@pytest.mark.requirement("TS-3")
async def test_pinned_names_are_found_in_any_case_and_unknown_ones_are_warned_about(
    tmp_path: Path, tools: str
) -> None:
    pins = ON + 'tool_search_always_loaded = ["MUSIC.Play", "mail.sned"]\n'
    async with opened(tmp_path, tools + pins + scripted(tmp_path, says("hi"))) as runtime:
        assert expose(runtime).next_turn().by_name.keys() == {"music.play", "tool_search"}
        (warning,) = runtime.status()["warnings"]
    assert warning == (
        "skills.tool_search_always_loaded: there is no tool 'mail.sned'; did you mean 'mail.send'?"
    )


@pytest.mark.requirement("TS-3")
async def test_requiring_an_end_that_is_not_pinned_is_warned_about(tmp_path: Path) -> None:
    config = ON + 'tool_search_always_loaded = ["send_message"]\n[ask]\nrequire_end = true\n'
    async with opened(tmp_path, config) as runtime:
        assert any("'end' is not exposed" in w for w in runtime.status()["warnings"])


@pytest.mark.requirement("TS-10")
@pytest.mark.parametrize("name", ["tool_search", "Tool_Search", "tool.search"])
async def test_a_real_tool_that_meets_the_loader_gets_the_full_list_and_an_error_in_the_log(
    tmp_path: Path, tools: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_handler(tmp_path / "tools", name, code="def execute(args, context):\n    return 'real'\n")
    async with Upstream([reply_text("hi")]) as upstream:
        profile = chat_profile(upstream.base_url, name_separator="_")
        async with opened(tmp_path, tools + ON + profile) as runtime:
            asked = await ask(runtime, "go")
    assert asked.of(TurnStarted)[0].exposed == tuple(sorted((*NAMES, name)))
    assert "available_deferred_tools" not in upstream.bodies[0].decode()
    assert PROMPT_RULE.splitlines()[0] not in upstream.bodies[0].decode()
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert [repr(name) in error.message for error in errors] == [True]


@pytest.mark.requirement("TS-10")
async def test_a_real_tool_search_is_executed_as_an_ordinary_tool(
    tmp_path: Path, tools: str
) -> None:
    write_handler(tmp_path / "tools", "tool_search", code="def execute(a, c):\n    return 'real'\n")
    script = scripted(tmp_path, calls(("tool_search", {})), says("done"))
    async with opened(tmp_path, tools + ON + script) as runtime:
        asked = await ask(runtime, "go")
    assert asked.result.new_messages[2].content == "real"


@pytest.mark.requirement("TS-10")
async def test_a_colliding_tool_that_is_not_permitted_changes_nothing(
    tmp_path: Path, tools: str
) -> None:
    write_handler(tmp_path / "tools", "tool_search")
    denied = '[access.rules.r]\ndeny = ["tool_search"]\n'
    async with opened(tmp_path, tools + ON + denied) as runtime:
        assert expose(runtime).rule == "deferred"


@pytest.mark.requirement("TS-10")
@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ("", "off"),
        (ON, "deferred"),
        (ON + "tool_search_threshold_percent = 10\n", "threshold"),
        (ON + f"tool_search_always_loaded = {list(NAMES)}\n", "nothing_deferred"),
    ],
)
async def test_the_rule_that_decided_is_known(
    tmp_path: Path, tools: str, config: str, rule: str
) -> None:
    profile = '[models.m]\nwire = "offline"\ncontext_window = 100000\n'
    async with opened(tmp_path, tools + config + profile) as runtime:
        exposure = expose(runtime)
    assert exposure.rule == rule
    full = set(NAMES)
    sent = set(exposure.next_turn().by_name)
    assert sent == ({"tool_search"} if rule == "deferred" else full)


@pytest.mark.requirement("TS-10")
async def test_a_profile_without_tool_search_gets_the_full_list(tmp_path: Path, tools: str) -> None:
    profile = '[models.m]\nwire = "offline"\nsupports_tool_search = false\n'
    async with opened(tmp_path, tools + ON + profile) as runtime:
        assert expose(runtime).rule == "unsupported"


def scope_of(runtime: Runtime, ran: list[str]) -> AskScope:
    deadline = asyncio.get_running_loop().time() + 60
    return AskScope(
        "ask_1",
        runtime.generation,
        Identity(),
        Emitter("ask_1", discard),
        CallGuard(1000),
        Budget(9),
        deadline,
        nobody_agrees(),
        LoopLimits(),
        resources={"ran": ran},
    )


@pytest.fixture(scope="module")
def property_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("property")
    for name in NAMES:
        write_handler(folder / "tools", name, code=RECORD)
    return folder


@dataclass(frozen=True)
class Seen:
    """All that a model could notice of a catalogue, and what ran."""

    exposed: tuple[str, ...]
    directory: str
    answers: tuple[object, ...]
    results: tuple[ToolResult, ...]
    ran: tuple[str, ...]


async def try_everything(runtime: Runtime, mask: int | None, queries: Sequence[str]) -> Seen:
    """Search, then call every name there is or might be in one turn."""
    exposure = expose(runtime, mask)
    answers: list[object] = []
    for query in queries:
        if exposure.session is not None:
            answers.append(exposure.session.search(query))
            exposure.next_turn()
    turn = exposure.next_turn()
    ran: list[str] = []
    made = [ToolCall(name, name, "{}") for name in (*NAMES, "made.up")]
    results: list[ToolResult] = []
    await run_calls(
        *(scope_of(runtime, ran), exposure, turn, made, []),
        lambda _, answered: results.extend(answered),
    )
    return Seen(
        tuple(turn.by_name),
        exposure.session.directory if exposure.session is not None else "",
        tuple(answers),
        tuple(replace(result, latency_s=0.0) for result in results),
        tuple(sorted(ran)),
    )


QUERIES = st.sampled_from(["select:" + name for name in NAMES] + ["music", "mail", "wipe", "x"])


@pytest.mark.requirement("TS-13")
@pytest.mark.requirement("TS-2")
@settings(max_examples=40, deadline=None)
@given(
    mask=st.integers(1, (1 << len(NAMES)) - 1),
    queries=st.lists(QUERIES, max_size=4),
    search=st.booleans(),
)
async def test_a_filtered_tool_leaves_the_trace_of_one_that_does_not_exist_and_only_the_exposed_run(
    property_tools: Path, mask: int, queries: list[str], search: bool
) -> None:
    permitted = {name for at, name in enumerate(sorted(NAMES)) if mask >> at & 1}
    config = '[handlers]\npaths = ["tools"]\nbundled = false\ndisabled = {}\n[skills]\n'
    config += f"prefetch_tools = []\ntool_search_enabled = {str(search).lower()}\n"
    async with opened(property_tools, config.format("[]")) as runtime:
        filtered = await try_everything(runtime, mask, queries)
    absent = sorted(set(NAMES) - permitted)
    async with opened(property_tools, config.format(absent)) as runtime:
        missing = await try_everything(runtime, None, queries)
    assert filtered == missing
    assert set(filtered.ran) == set(filtered.exposed) - {"tool_search"}
    assert set(filtered.ran) <= permitted
