"""Tools that an operator takes away: for new asks they are not there, in running ones they are refused."""

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.registry.patterns import Patterns
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolFinished, ToolsLoaded, TurnStarted
from session_runtime.wire import event_to_json
from tests.support import (
    Asked,
    ask,
    calls,
    chat_profile,
    opened,
    says,
    scripted,
    tool_folder,
    write_handler,
)

SEARCH = "[skills]\ntool_search_enabled = true\nprefetch_tools = []\n"
RECORD = "async def execute(args, context):\n    context.resources['ran'].append({name!r})\n"
WAITS = """
async def execute(args, context):
    context.resources["reached"].set()
    await context.resources["go_on"].wait()
"""
NAMES = ("files.read", "files.write", "mail.send", "mail.list", "clock", "notes.add")
PATTERNS = (*NAMES, "*", "files.*", "*.list", "mail.?????", "[cn]*", "none.such")


@dataclass(frozen=True)
class Heard:
    """All that an ask let others notice: the model, the caller, and the tools that ran."""

    bodies: str
    events: list[Any]
    listed: list[str]
    ran: list[str] = field(default_factory=list)


async def everything_heard(
    folder: Path, config: str, revoked: Sequence[str], names: Sequence[str]
) -> Heard:
    """Let a model search for and call all ``names`` after ``revoked`` was taken away."""
    wires = [name.replace(".", "__") for name in names]
    replies = [
        reply_calls(
            ("tool_search", {"query": f"select:{','.join(names)}"}),
            ("tool_search", {"query": "read or list or send"}),
        ),
        reply_calls(*((wire, {}) for wire in wires)),
        reply_text("done"),
    ]
    ran: list[str] = []
    async with Upstream(replies) as upstream:
        text = config + chat_profile(upstream.base_url)
        state = {"runtime.state_dir": str(folder / f"state {len(revoked)}")}
        async with opened(folder, text, resources={"ran": ran}, explicit=state) as runtime:
            for pattern in revoked:
                await runtime.brake.revoke(pattern)
            listed = [tool["name"] for tool in runtime.tools(Identity())]
            asked = await ask(runtime, "go")
        bodies = b"\n".join(upstream.bodies).decode()
    # tools that run side by side end in any order
    events = [{**event_to_json(e), "ask_id": "", "seq": 0} for e in asked.events[:-1]]
    events.sort(key=json.dumps)
    return Heard(bodies.replace(asked.result.ask_id, "ASK"), events, listed, ran)


@pytest.mark.requirement("REL-9")
@pytest.mark.requirement("TS-2")
@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True),
    st.booleans(),
)
def test_for_a_new_ask_a_revoked_tool_is_one_that_does_not_exist(
    names: list[str], patterns: list[str], searching: bool
) -> None:
    gone = [name for name in names if name in Patterns(patterns)]
    skills = (
        f"[skills]\ntool_search_enabled = {json.dumps(searching)}\n"
        f"prefetch_tools = {json.dumps(names[:1])}\ntool_search_always_loaded = "
        f"{json.dumps(names[1:2])}\n"
    )
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        for name in names:
            write_handler(folder / "tools", name, code=RECORD.format(name=name))
        tools = '[handlers]\npaths = ["tools"]\nbundled = false\n'
        without = f"{tools}disabled = {json.dumps(gone)}\n"
        revoked = asyncio.run(everything_heard(folder, tools + skills, patterns, NAMES))
        absent = asyncio.run(everything_heard(folder, without + skills, (), NAMES))
    assert revoked.listed == sorted(set(names) - set(gone))
    assert revoked.bodies == absent.bodies
    assert revoked.events == absent.events
    assert set(revoked.ran) == set(names) - set(gone)


class RunningAsk:
    """An ask whose model first calls ``wait``, which goes on when the test has done its part."""

    def __init__(self, runtime: Runtime, resources: dict[str, Any]) -> None:
        self._runtime = runtime
        self._resources = resources

    async def meanwhile(self, *changes: Any) -> Asked:
        asking = asyncio.create_task(ask(self._runtime, AskRequest("go")))
        await self._resources["reached"].wait()
        for change in changes:
            await change
        self._resources["go_on"].set()
        return await asking


def waiting_tools(folder: Path, *names: str) -> str:
    write_handler(folder / "tools", "wait", code=WAITS)
    for name in names:
        write_handler(folder / "tools", name, code=RECORD.format(name=name))
    return tool_folder(folder) + "bundled = false\n"


def resources() -> dict[str, Any]:
    return {"ran": [], "reached": asyncio.Event(), "go_on": asyncio.Event()}


def finished(asked: Asked) -> list[tuple[str, str, str | None]]:
    return [(e.name, e.status, e.error_code) for e in asked.of(ToolFinished)]


@pytest.mark.requirement("REL-9")
@pytest.mark.requirement("TS-11")
async def test_a_running_ask_keeps_its_list_and_is_refused_the_revoked_tool_at_once(
    tmp_path: Path,
) -> None:
    config = waiting_tools(tmp_path, "files.read", "mail.send") + "[skills]\nprefetch_tools = []\n"
    script = scripted(
        tmp_path,
        calls(("wait", {})),
        calls(("files.read", {}), ("mail.send", {}), ("files.raed", {})),
        says("done"),
    )
    shared = resources()
    async with opened(tmp_path, config + script, resources=shared) as runtime:
        running = RunningAsk(runtime, shared)
        asked = await running.meanwhile(runtime.brake.revoke("files.*", "secret reason"))
        later = await ask(runtime, "again")
    assert "Tools that can be called now: mail.send, wait." in str(asked.result.new_messages)
    assert sorted(finished(asked)[1:]) == [
        ("files.raed", "refused", "tool.unknown"),
        ("files.read", "refused", "tool.revoked"),
        ("mail.send", "ok", None),
    ]
    assert [turn.exposed for turn in asked.of(TurnStarted)] == [
        ("files.read", "mail.send", "wait")
    ] * 3
    assert shared["ran"] == ["mail.send"] * 2
    assert "secret reason" not in repr(asked)
    assert ("files.read", "refused", "tool.unknown") in finished(later)
    assert {turn.exposed for turn in later.of(TurnStarted)} == {("mail.send", "wait")}


@pytest.mark.requirement("REL-9")
async def test_a_running_ask_neither_finds_nor_loads_what_is_revoked_meanwhile(
    tmp_path: Path,
) -> None:
    config = waiting_tools(tmp_path, "files.read", "files.list", "mail.send") + SEARCH
    query = {"query": "select:files.read,files.list"}
    script = scripted(
        tmp_path,
        calls(("tool_search", {"query": "select:wait"})),
        calls(("wait", {})),
        calls(("tool_search", query), ("files.read", {}), ("file.read", {})),
        calls(("files.list", {})),
        says("done"),
    )
    shared = resources()
    async with opened(tmp_path, config + script, resources=shared) as runtime:
        revoke = runtime.brake.revoke("files.read")
        asked = await RunningAsk(runtime, shared).meanwhile(revoke)
    texts = [str(m.content) for m in asked.result.new_messages if m.role == "tool"]
    assert json.loads(texts[2]) == {
        "loaded": ["files.list"],
        "already_loaded": [],
        "not_found": ["files.read"],
        "truncated": False,
        "total_deferred_tools": 4,
    }
    assert [event.names for event in asked.of(ToolsLoaded)] == [("wait",), ("files.list",)]
    assert "there is no tool named 'files.read' here" in texts[3]
    assert [("files.read", "refused", "tool.unknown"), ("files.list", "ok", None)] == [
        each for each in finished(asked) if each[0].startswith("files.")
    ]
    assert asked.of(TurnStarted)[-1].exposed == ("tool_search", "wait", "files.list")


@pytest.mark.requirement("REL-9")
async def test_a_search_that_was_answered_before_is_answered_anew_after_a_revocation(
    tmp_path: Path,
) -> None:
    config = waiting_tools(tmp_path, "mail.send") + SEARCH
    both = ("tool_search", {"query": "select:mail.send,wait"})
    script = scripted(tmp_path, calls(both), calls(("wait", {})), calls(both), says("done"))
    shared = resources()
    async with opened(tmp_path, config + script, resources=shared) as runtime:
        revoke = runtime.brake.revoke("mail.*")
        asked = await RunningAsk(runtime, shared).meanwhile(revoke)
    found = json.loads([str(m.content) for m in asked.result.new_messages if m.role == "tool"][-1])
    assert (found["already_loaded"], found["not_found"]) == (["wait"], ["mail.send"])


@pytest.mark.requirement("REL-9")
async def test_what_is_lifted_works_again_in_an_ask_that_ran_all_the_time(tmp_path: Path) -> None:
    config = waiting_tools(tmp_path, "mail.send") + SEARCH
    script = scripted(
        tmp_path,
        calls(("tool_search", {"query": "select:wait"})),
        calls(("wait", {})),
        calls(("tool_search", {"query": "mail"})),
        calls(("mail.send", {})),
        says("done"),
    )
    shared = resources()
    async with opened(tmp_path, config + script, resources=shared) as runtime:
        asked = await RunningAsk(runtime, shared).meanwhile(
            runtime.brake.revoke("mail.*"), runtime.brake.lift("mail.*")
        )
    assert finished(asked)[-1] == ("mail.send", "ok", None)


@pytest.mark.requirement("REL-9")
async def test_an_ask_that_began_while_a_tool_was_revoked_goes_on_without_it(
    tmp_path: Path,
) -> None:
    config = waiting_tools(tmp_path, "mail.send") + "[skills]\nprefetch_tools = []\n"
    script = scripted(tmp_path, calls(("wait", {})), calls(("mail.send", {})), says("done"))
    shared = resources()
    async with opened(tmp_path, config + script, resources=shared) as runtime:
        await runtime.brake.revoke("mail.*")
        asked = await RunningAsk(runtime, shared).meanwhile(runtime.brake.lift(1))
        later = await ask(runtime, "again")
    assert finished(asked)[-1] == ("mail.send", "refused", "tool.unknown")
    assert finished(later)[-1] == ("mail.send", "ok", None)


LONG = "def execute(args, context):\n    return 'abcde' * 1000\n"


@pytest.mark.requirement("REL-9")
@pytest.mark.parametrize("pattern", ["long", "results.read"])
async def test_the_kept_result_of_a_revoked_tool_cannot_be_read_on(
    tmp_path: Path, pattern: str
) -> None:
    write_handler(tmp_path / "tools", "wait", code=WAITS)
    write_handler(tmp_path / "tools", "long", code=LONG)
    read = ("results.read", {"reference": "result_1"})
    script = scripted(
        tmp_path, calls(("long", {})), calls(read), calls(("wait", {})), calls(read), says("done")
    )
    shared = resources()
    config = (
        tool_folder(tmp_path) + "[skills]\nprefetch_tools = []\n[ask]\nmax_result_chars = 600\n"
    )
    async with opened(tmp_path, config + script, resources=shared) as runtime:
        asked = await RunningAsk(runtime, shared).meanwhile(runtime.brake.revoke(pattern))
    reads = [each[1:] for each in finished(asked) if each[0] == "results.read"]
    status = "error" if pattern == "long" else "refused"
    assert reads == [("ok", None), (status, "tool.revoked")]


async def test_no_reference_is_given_once_what_reads_it_is_revoked(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "wait", code=WAITS)
    write_handler(tmp_path / "tools", "long", code=LONG)
    script = scripted(tmp_path, calls(("wait", {})), calls(("long", {})), says("done"))
    shared = resources()
    config = (
        tool_folder(tmp_path) + "[skills]\nprefetch_tools = []\n[ask]\nmax_result_chars = 600\n"
    )
    async with opened(tmp_path, config + script, resources=shared) as runtime:
        revoke = runtime.brake.revoke("results.read")
        asked = await RunningAsk(runtime, shared).meanwhile(revoke)
    [shown] = [m.content for m in asked.result.new_messages if "abcde" in str(m.content)]
    assert "result_" not in str(shown)


@pytest.mark.requirement("REL-9")
async def test_what_is_revoked_is_in_the_status_and_outlives_the_runtime(tmp_path: Path) -> None:
    config = waiting_tools(tmp_path, "mail.send") + scripted(tmp_path, says("done"))
    async with opened(tmp_path, config) as runtime:
        revocation = await runtime.brake.revoke("mail.*", "why", "ann")
    async with opened(tmp_path, config) as runtime:
        assert runtime.status()["revocations"] == [revocation.to_json()]
        assert [tool["name"] for tool in runtime.tools(Identity())] == ["wait"]
        assert [(t["name"], t["revoked"]) for t in runtime.tools()] == [
            ("mail.send", True),
            ("wait", False),
        ]
        await runtime.brake.lift(1)
        assert runtime.status()["revocations"] == []
