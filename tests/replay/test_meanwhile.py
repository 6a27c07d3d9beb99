"""What happened while an ask ran, and is no matter of its configuration, is in its replay as it was."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from session_runtime import Runtime
from session_runtime.generation import Generation
from session_runtime.replay import Difference, Replayed, replay
from session_runtime.trace.reading import record_from_json
from tests.replay.world import edited, prepared, record, replay_all
from tests.support import ask, calls, says, scripted, write_handler

PULL = "async def execute(args, context):\n    await context.resources['brake'](args['names'])\n"
LONG = "def execute(args, context):\n    return 'word ' * 600\n"
TOOLS = (
    '[handlers]\npaths = ["tools"]\n[trace]\npath = "trace.jsonl"\n[runtime]\nstate_dir = "state"\n'
)
SEARCH = (
    f'{TOOLS}[skills]\ntool_search_enabled = true\ntool_search_always_loaded = ["brake.pull"]\n'
)
LATER = "tool_search", {"query": "select:weather.next"}


def build(folder: Path) -> None:
    names = {"type": "object", "properties": {"names": {"type": "string"}}}
    write_handler(folder / "tools", "brake.pull", parameters=names, code=PULL)
    write_handler(folder / "tools", "weather.past", description="Tells the weather of days ago.")
    write_handler(folder / "tools", "weather.next", description="Tells the weather to come.")
    write_handler(folder / "tools", "report.write", description="Writes a report.", code=LONG)


async def _asked(folder: Path, text: str, *revoked: str) -> Generation:
    """Ask once; gives the generation that answered, with ``revoked`` taken away since."""
    (folder / "config.toml").write_text(text)
    brakes: dict[str, Any] = {}
    async with Runtime.open(
        folder / "config.toml", env={}, watch=False, resources=brakes
    ) as runtime:
        brakes["brake"] = runtime.brake.revoke
        await ask(runtime, "how is it?")
        for pattern in revoked:
            await runtime.brake.revoke(pattern)
        return runtime.generation


def asked(
    folder: Path, text: str, replies: Sequence[Any], *revoked: str, profile: str = ""
) -> list[Replayed]:
    build(folder)
    text += scripted(folder, *replies) + profile
    generation = asyncio.run(_asked(folder, text, *revoked))
    return replay_all(generation, folder / "trace.jsonl")


@pytest.mark.requirement("OPS-2")
def test_what_is_revoked_while_an_ask_runs_is_revoked_from_there_on(tmp_path: Path) -> None:
    replies = [
        calls(("tool_search", {"query": "select:weather.past"})),
        calls(("weather.past", {}), ("brake.pull", {"names": "weather.*"})),
        calls(LATER, ("weather.past", {}), ("weather.next", {})),
        says("rain"),
    ]
    assert asked(tmp_path, SEARCH, replies) == [_same(tmp_path)]
    [line] = map(json.loads, (tmp_path / "trace.jsonl").read_text().splitlines())
    assert [turn.get("revoked") for turn in line["turns"]] == [
        *(None, None, ["weather.next", "weather.past"], None)
    ]
    [search, past, following] = line["turns"][2]["calls"]
    assert search["search"]["loaded"] == []
    assert (past["error_code"], following["error_code"]) == ("tool.revoked", "tool.unknown")


@pytest.mark.requirement("OPS-2")
def test_what_is_revoked_by_now_was_not_when_an_ask_was_recorded(tmp_path: Path) -> None:
    replies = [calls(LATER), calls(("weather.next", {})), says("sun")]
    assert asked(tmp_path, SEARCH, replies, "weather.*") == [_same(tmp_path)]


@pytest.mark.requirement("OPS-2")
def test_results_that_a_short_conversation_has_no_room_for_can_be_read_as_they_could(
    tmp_path: Path,
) -> None:
    replies = [
        calls(("tool_search", {"query": "select:report.write"})),
        calls(("report.write", {})),
        calls(("brake.pull", {"names": "weather.*"})),
        says("done"),
    ]
    why = "how long a conversation may be: results.read is loaded as it was"
    replayed = asked(tmp_path, SEARCH, replies, profile="context_window = 950\n")
    assert replayed == [_same(tmp_path, why)]
    [line] = map(json.loads, (tmp_path / "trace.jsonl").read_text().splitlines())
    assert "results.read" in line["turns"][-1]["exposed"]


def _same(folder: Path, *unknown: str) -> Replayed:
    [line] = map(json.loads, (folder / "trace.jsonl").read_text().splitlines())
    return Replayed(line["ask_id"], line["started_at"], (), unknown)


@pytest.mark.requirement("OPS-2")
def test_without_the_limit_of_then_long_results_are_as_they_were_and_that_is_told(
    tmp_path: Path,
) -> None:
    trace = record(tmp_path, rounds=1)
    line = next(
        each
        for each in map(json.loads, trace.read_text().splitlines())
        if any(call["name"] == "report.write" for turn in each["turns"] for call in turn["calls"])
    )
    del line["max_result_chars"]
    again = replay(prepared(tmp_path), record_from_json(line))
    assert (again.same, again.unknown) == (True, ())
    longer = prepared(tmp_path, edited("max_result_chars = 4000", "max_result_chars = 40000"))
    doubtful = replay(longer, record_from_json(line))
    assert doubtful.same
    assert doubtful.unknown == ("how much of a result was shown was not recorded",)


@pytest.mark.requirement("OPS-2")
def test_a_result_that_its_marks_may_make_too_long_is_not_known_to_be(tmp_path: Path) -> None:
    trace = record(tmp_path, rounds=1)
    line = next(
        each
        for each in map(json.loads, trace.read_text().splitlines())
        if any(call["name"] == "report.write" for turn in each["turns"] for call in turn["calls"])
    )
    call = line["turns"][1]["calls"][0]
    call["result_chars"] = 3_100
    del call["whole_chars"]
    shorter = prepared(tmp_path, edited("max_result_chars = 4000", "max_result_chars = 3000"))
    assert replay(shorter, record_from_json(line)).unknown == (
        "whether the result of report.write is too long without what stands around it",
    )


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize(
    "edit",
    [
        edited('fallback = "main"', ""),
        edited("[models.main]", "[models.main]\nsupports_tool_search = false"),
    ],
    ids=["no fallback", "an unfit one"],
)
def test_a_profile_that_takes_over_now_is_told(edit: str, tmp_path: Path) -> None:
    trace = record(tmp_path, 1, edit)
    failed = [each for each in replay_all(prepared(tmp_path), trace) if _of_profile(each)]
    assert [each.differences for each in failed] == [
        (
            Difference(
                "profile", 1, "when model profile shaky fails, main takes over now", None, "main"
            ),
        )
    ]


def _of_profile(replayed: Replayed) -> bool:
    return any(each.kind == "profile" for each in replayed.differences)
