"""What a replay tells of an edit is what really changes: the same asks are made under the edit, too."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime.replay import Summary
from tests.replay.edits import EDITS, Edit
from tests.replay.world import prepared, record, replay_all

SECOND_HAND = "a query was blacked out or cut: its answer is taken as recorded"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded"), rounds=1)


def decided(line: str) -> Any:
    """What a trace tells of an ask that a configuration decides about."""
    ask = json.loads(line)
    outcome = ask["outcome"], ask["error"] and ask["error"]["code"]
    turns = [
        (turn["model"], turn["exposed"], turn["exposed_tokens"], calls(turn))
        for turn in ask["turns"]
    ]
    prefetched = [call["name"] for call in ask["prefetch"]]
    searching = ask["tool_search"] if ask["turns"] else None
    inside = [turn["exposed"] for agent in ask["agents"] for turn in agent["turns"]]
    return ask["model"], searching, prefetched, turns, outcome, inside, ask["tokens_full_list"]


def calls(turn: Any) -> Any:
    return [(call["name"], call["error_code"], call.get("search")) for call in turn["calls"]]


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_the_asks_that_would_differ_are_those_that_do(
    edit: Edit, trace: Path, tmp_path: Path
) -> None:
    replayed = replay_all(prepared(trace.parent, edit.text), trace)
    before = trace.read_text().splitlines()
    after = record(tmp_path, 1, edit.text).read_text().splitlines()
    told = [at for at, each in enumerate(replayed) if not each.same]
    known = {at for at, each in enumerate(replayed) if SECOND_HAND not in each.unknown}
    real = [at for at in sorted(known) if decided(before[at]) != decided(after[at])]
    assert [at for at in told if at in known] == real


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_exactly_the_differences_of_an_edit_are_named(edit: Edit, trace: Path) -> None:
    summary = Summary()
    for each in replay_all(prepared(trace.parent, edit.text), trace):
        summary.add(each)
    assert {what: asks for _, what, asks in summary.changes()} == edit.changes
