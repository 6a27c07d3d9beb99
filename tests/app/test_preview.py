"""Before an edit is applied it is told what it would change of recorded asks (OPS-3)."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.app.preview import (
    MOST_EXAMPLES,
    MOST_SECONDS,
    NONE_YET,
    NOT_TRACED,
    ReplayPreview,
)
from session_runtime.replay.play import INSTRUCTED
from tests.support import calls, says, scripted, tool_folder, write_handler

SETTINGS = "[skills]\nprefetch_tools = []\n[ask]\nmax_steps = 5\n"
GUESTS = '[access.rules.guests]\nroles = ["guest"]\ndeny = ["orders.*"]\n'
TOLD = "call of orders.find: ran -> tool.unknown (denied by access.rules.guests)"

pytestmark = pytest.mark.requirement("OPS-3")


def written(folder: Path, text: str = "") -> Path:
    path = folder / "config.toml"
    replies = scripted(folder, calls(("orders.find", {})), says("done"))
    path.write_text(tool_folder(folder) + SETTINGS + replies + text, "utf-8")
    return path


@asynccontextmanager
async def recorded(folder: Path, asks: int) -> AsyncIterator[Runtime]:
    """A runtime with so many asks in its trace, every other one for a guest."""
    write_handler(folder / "tools", "orders.find")
    path = written(folder)
    async with Runtime.open(path, env={}, watch=False) as runtime:
        for number in range(asks):
            who = Identity("u", frozenset({"guest" if number % 2 else "staff"}))
            await runtime.ask(AskRequest("find it", identity=who))
    async with Runtime.open(path, env={}, watch=False) as runtime:
        yield runtime


def figures(told: dict[str, Any]) -> tuple[int, int, list[tuple[str, int]]]:
    """How many asks were replayed, how many differ, and in what calls."""
    replay = told["replay"]
    changed = [(each["what"], each["asks"]) for each in replay["changes"] if each["kind"] == "call"]
    return replay["asks"], replay["differ"], changed


async def test_it_is_told_how_many_asks_an_edit_would_change_and_how_and_nothing_changes(
    tmp_path: Path,
) -> None:
    async with recorded(tmp_path, 5) as runtime:
        before = runtime.status()["config"]
        told = await runtime.preview.of(written(tmp_path, GUESTS).read_bytes(), 100)
        assert runtime.status()["config"] == before
    assert figures(told) == (5, 2, [(TOLD, 2)])
    assert told["receipt"]["verdict"] == "applied"
    assert (told["why_not"], told["replay"]["out_of_time"]) == (None, False)
    first = told["replay"]["examples"][0]
    assert TOLD in [each["what"] for each in first["differences"]]
    assert len(told["replay"]["examples"]) == 2


async def test_another_prompt_and_another_model_are_told_as_unknown_of_every_ask(
    tmp_path: Path,
) -> None:
    async with recorded(tmp_path, 2) as runtime:
        prompt = {"ask.system_prompt": "Refuse everything."}
        told = await runtime.preview.of_values(prompt, 100, any_key=False)
        text = written(tmp_path).read_text("utf-8")
        model = text.replace("[models.main]", "[models.main]\ntemperature = 1.5")
        also = await runtime.preview.of(model.encode(), 100)
        same = await runtime.preview.of_values({"ask.max_steps": 6}, 100, any_key=False)
    assert [told["replay"][key] for key in ("differ", "uncertain")] == [0, 2]
    assert told["replay"]["unknown"] == [{"what": INSTRUCTED["prompt"], "asks": 2}]
    assert also["replay"]["unknown"] == [{"what": INSTRUCTED["profile"].format("main"), "asks": 2}]
    assert same["replay"]["unknown"] == []


async def test_an_edit_of_keys_is_tried_for_the_file_as_it_is(tmp_path: Path) -> None:
    async with recorded(tmp_path, 2) as runtime:
        text = (tmp_path / "config.toml").read_bytes()
        told = await runtime.preview.of_values({"ask.max_steps": 1}, 100, any_key=False)
        same = await runtime.preview.of_values({"ask.max_steps": 6}, 100, any_key=False)
        wrong = await runtime.preview.of_values({"ask.max_steps": 0}, 100, any_key=False)
        assert (tmp_path / "config.toml").read_bytes() == text
    assert figures(told)[:2] == (2, 2)
    assert "ending" in {each["kind"] for each in told["replay"]["changes"]}
    assert figures(same) == (2, 0, [])
    assert (wrong["receipt"]["verdict"], wrong["replay"]) == ("rejected", None)


async def test_what_came_to_differ_before_is_not_the_edit_s_doing_unless_it_takes_it_back(
    tmp_path: Path,
) -> None:
    async with recorded(tmp_path, 4) as runtime:
        before = (tmp_path / "config.toml").read_bytes()
        written(tmp_path, GUESTS)
        assert (await runtime.live.reload("cli")).good
        other = await runtime.preview.of_values({"ask.max_steps": 6}, 100, any_key=False)
        back = await runtime.preview.of(before, 100)
    assert figures(other) == (4, 0, [])
    assert figures(back) == (4, 2, [(f"no longer: {TOLD}", 2)])


async def test_no_more_asks_than_wanted_are_replayed_the_last_ones_first(tmp_path: Path) -> None:
    async with recorded(tmp_path, 4) as runtime:
        told = await runtime.preview.of(written(tmp_path, GUESTS).read_bytes(), 1)
    assert figures(told)[:2] == (1, 1)


async def test_no_more_time_than_there_is_is_taken(tmp_path: Path) -> None:
    ticks = count(step=MOST_SECONDS * 0.4)
    async with recorded(tmp_path, MOST_EXAMPLES) as runtime:
        preview = ReplayPreview(
            runtime.live, runtime.editor, runtime._builder.generations, lambda: next(ticks)
        )
        told = await preview.of(None, 100)
    assert (told["replay"]["asks"], told["replay"]["out_of_time"]) == (2, True)


async def test_it_is_told_why_there_is_nothing_to_replay(tmp_path: Path) -> None:
    async with recorded(tmp_path, 0) as runtime:
        nothing = await runtime.preview.of(None, 100)
        assert (nothing["replay"], nothing["why_not"]) == (None, NONE_YET)
    path = written(tmp_path, "[trace]\nenabled = false\n")
    async with Runtime.open(path, env={}, watch=False) as runtime:
        untraced = await runtime.preview.of(None, 100)
    assert (untraced["replay"], untraced["why_not"]) == (None, NOT_TRACED)


def test_a_daemon_imports_what_replays_only_when_a_replay_is_wanted() -> None:
    code = (
        "import session_runtime.app.serve, sys; sys.exit('session_runtime.replay' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
