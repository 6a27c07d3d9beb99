"""What a replay makes of single asks: what it knows, and what it says that it does not know."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.replay import Difference, Replayed, Summary, replay
from session_runtime.replay.summary import MAX_GROUPS
from session_runtime.trace.reading import record_from_json
from session_runtime.types import Principal
from tests.replay.world import CONFIG, build, edited, prepared, record, replay_all
from tests.support import ask


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded"), rounds=1)


def recorded(
    folder: Path, *requests: AskRequest, text: str = CONFIG, revoked: Iterable[str] = ()
) -> Path:
    """The trace of these asks, made while some tools were revoked."""
    build(folder)
    (folder / "config.toml").write_text(text)
    asyncio.run(_ask(folder, requests, revoked))
    return folder / "trace.jsonl"


async def _ask(folder: Path, requests: Iterable[AskRequest], revoked: Iterable[str]) -> None:
    async with Runtime.open(folder / "config.toml", env={}, watch=False) as runtime:
        for pattern in revoked:
            await runtime.brake.revoke(pattern)
        for request in requests:
            await ask(runtime, request)


def told(replayed: Replayed) -> list[str]:
    return [each.what for each in replayed.differences]


@pytest.mark.requirement("OPS-2")
def test_two_replays_tell_the_same(trace: Path) -> None:
    text = edited("max_steps = 5", "max_steps = 2")
    once, twice = (replay_all(prepared(trace.parent, text), trace) for _ in range(2))
    assert once == twice
    assert any(not each.same for each in once)


@pytest.mark.requirement("OPS-2")
def test_without_arguments_repeated_calls_are_taken_as_recorded(tmp_path: Path) -> None:
    text = edited("content = true", "content = false")
    trace = recorded(tmp_path, AskRequest("again"), AskRequest("weather"), text=text)
    again, weather = replay_all(prepared(tmp_path, text), trace)
    assert again.differences == ()
    assert again.unknown == ("arguments were not kept: repeated calls are taken as recorded",)
    assert weather.unknown == ()


@pytest.mark.requirement("OPS-2")
def test_what_was_revoked_then_is_revoked_in_the_replay(tmp_path: Path) -> None:
    trace = recorded(tmp_path, AskRequest("weather"), revoked=["weather.*"])
    (replayed,) = replay_all(prepared(tmp_path), trace)
    assert replayed.same


@pytest.mark.requirement("OPS-2")
def test_an_embedding_program_is_bound_as_it_was(tmp_path: Path) -> None:
    intern = Principal("app", Identity("app", frozenset({"intern"})), ["ann"])
    trace = recorded(tmp_path, AskRequest("payroll", principal=intern, identity=Identity("ann")))
    (same,) = replay_all(prepared(tmp_path), trace)
    assert same.same
    free = edited('deny = ["payroll.*"]', 'deny = ["shop.*"]')
    (differs,) = replay_all(prepared(tmp_path, free), trace)
    assert "call of payroll.list: tool.unknown -> ran" in told(differs)
    assert differs.unknown == ("the result of payroll.list, which did not run then",)


@pytest.mark.requirement("OPS-2")
def test_traces_of_earlier_versions_are_replayed_as_far_as_they_tell(trace: Path) -> None:
    generation = prepared(trace.parent)
    old = [_as_before(json.loads(line)) for line in trace.read_text().splitlines()]
    replayed = [replay(generation, record_from_json(line)) for line in old]
    assert all(each.unknown for each in replayed)
    differing = [line for line, each in zip(old, replayed, strict=True) if not each.same]
    called = [turn["calls"][0]["name"] for line in differing for turn in line["turns"][:1]]
    assert called == ["weather.past"]  # loaded again, as the history had it, which was not kept


def _as_before(line: Any) -> Any:
    del line["request"]
    for turn in line["turns"]:
        for call in turn["calls"]:
            call.pop("counted", None)
            call.get("search", {}).pop("max_results", None)
    return line


@pytest.mark.requirement("OPS-2")
def test_a_shorter_time_limit_ends_what_took_longer(tmp_path: Path) -> None:
    trace = recorded(tmp_path, AskRequest("plain"))
    line = json.loads(trace.read_text()) | {"duration_s": 30.0}
    text = CONFIG.replace("[runtime]", "[runtime]\nask_timeout_s = 20.0")
    replayed = replay(prepared(tmp_path, text), record_from_json(line))
    assert told(replayed) == ["ends as answered after 30.0 s -> limit.deadline"]


@pytest.mark.requirement("OPS-2")
def test_a_malformed_request_leaves_a_trace_that_tells_that_nothing_was_chosen(
    tmp_path: Path,
) -> None:
    malformed: Any = {"history": 5, "model": ["main"]}
    trace = recorded(tmp_path, AskRequest("plain", **malformed))
    (replayed,) = replay_all(prepared(tmp_path), trace)
    assert replayed.same
    assert replayed.unknown == ("the ask ended before its tools were chosen",)


@pytest.mark.requirement("OPS-2")
def test_calls_of_a_sub_agent_count_for_the_limit_of_the_ask(tmp_path: Path) -> None:
    enough = edited("max_steps = 5", "max_steps = 9")
    trace = recorded(tmp_path, AskRequest("delegate"), text=enough)
    assert [each.same for each in replay_all(prepared(tmp_path, enough), trace)] == [True]
    fewer = enough.replace("max_tool_calls = 5", "max_tool_calls = 3")
    (replayed,) = replay_all(prepared(tmp_path, fewer), trace)
    assert told(replayed) == [
        "call of notes.add: ran -> limit.calls",
        "ends as answered after 4 turns -> limit.calls after 3",
    ]


@pytest.mark.requirement("OPS-2")
def test_turns_of_a_sub_agent_count_for_the_limit_of_the_ask(tmp_path: Path) -> None:
    trace = recorded(
        tmp_path, AskRequest("delegate"), text=edited("max_steps = 5", "max_steps = 9")
    )
    (replayed,) = replay_all(prepared(tmp_path, edited("max_steps = 5", "max_steps = 4")), trace)
    assert told(replayed) == ["ends as answered after 4 turns -> limit.steps after 3"]
    (replayed,) = replay_all(prepared(tmp_path, edited("max_steps = 5", "max_steps = 2")), trace)
    assert replayed.unknown == ("how a sub-agent ends that has fewer turns",)


def test_a_summary_names_a_bounded_number_of_things() -> None:
    summary = Summary()
    for number in range(MAX_GROUPS + 5):
        summary.add(Replayed(str(number), "", (Difference("call", 1, f"thing {number}"),)))
    assert (summary.differing, len(list(summary.changes()))) == (MAX_GROUPS + 5, MAX_GROUPS)
    assert summary.to_json()["changes_not_named"] == 5
