"""Sub-agents share calls and turns of the ask, side by side and inside of each other."""

import threading
from pathlib import Path

import pytest

from session_runtime.ask.guards import CallGuard
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.types import ToolFinished
from tests.ask.agent_plays import SHARED, Play, calls, played, recorded
from tests.support import write_agent, write_handler


@pytest.mark.requirement("ASK-8")
@pytest.mark.requirement("ASK-11")
async def test_agents_side_by_side_cannot_make_more_calls_than_the_ask_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    def slow_look(self: CallGuard) -> bool:
        """In two threads at once, none decides before the other has looked."""
        exhausted = self._calls.left <= 0
        if threading.current_thread() is not threading.main_thread():
            both.wait(timeout=10)
        return exhausted

    monkeypatch.setattr(CallGuard, "exhausted", property(slow_look))
    root = tmp_path / "tools"
    write_handler(root, "shared")
    for name in ("a", "b"):
        write_agent(root, name, prompt=name.upper(), settings=SHARED)
    long = {name: calls("shared", text=name * 20_000) for name in "ab"}
    play = Play(
        {
            "": [reply_calls(("a", {"task": "x"}), ("b", {"task": "y"})), reply_text("Done.")],
            "A": [long["a"], reply_text("ok")],
            "B": [long["b"], reply_text("ok")],
        }
    )
    asked = await played(tmp_path, play, more="[ask]\nmax_tool_calls = 3\n")
    codes = [each.error_code for each in asked.of(ToolFinished) if each.name == "shared"]
    assert sorted(codes, key=str) == [None, "limit.calls"]


async def ended(folder: Path, play: Play, most: int) -> dict[str, tuple[str | None, int]]:
    """How each loop ended and after how many turns, "" being the ask's."""
    record = await recorded(folder, play, f"[ask]\nmax_steps = {most}\n")
    code = None if record.error is None else record.error.code
    agents = {each.agent: (each.error_code, len(each.turns)) for each in record.agents}
    return agents | {"": (code, len(record.turns))}


def polls(times: int) -> list[Reply]:
    return [calls("shared", n=at) for at in range(times)]


@pytest.mark.requirement("ASK-8")
@pytest.mark.requirement("ASK-11")
async def test_turns_of_an_agent_count_for_the_ask_which_keeps_one_to_answer(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "shared")
    write_agent(tmp_path / "tools", "a", prompt="A", settings=SHARED)
    play = Play({"": [calls("a", task="x"), reply_text("Without it.")], "A": polls(9)})
    assert await ended(tmp_path, play, 5) == {"a": ("limit.steps", 3), "": (None, 2)}
    assert play.said("").startswith(
        "a stopped before it was done: the limit of 5 model turns is reached."
    )


@pytest.mark.requirement("ASK-8")
@pytest.mark.requirement("ASK-11")
async def test_an_agent_that_waits_for_another_keeps_a_turn_as_well(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_agent(root, "a", prompt="A", settings='tools = ["b"]\nmax_steps = 4\n')
    write_agent(root, "b", prompt="B", settings=f'{SHARED}callers = ["a"]\n')
    play = {
        "": [calls("a", task="x"), reply_text("Done.")],
        "A": [calls("b", task="y"), reply_text("b did not come to an end")],
        "B": polls(9),
    }
    ends = await ended(tmp_path, Play(play), 5)
    assert ends == {"a/b": ("limit.steps", 1), "a": (None, 2), "": (None, 2)}
    ends = await ended(tmp_path, Play(play), 32)
    assert ends == {"a/b": ("limit.steps", 2), "a": (None, 2), "": (None, 2)}


@pytest.mark.requirement("ASK-8")
@pytest.mark.requirement("ASK-11")
async def test_agents_side_by_side_cannot_take_more_turns_than_the_ask_has_left(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "shared")
    for name in ("a", "b"):
        write_agent(tmp_path / "tools", name, prompt=name.upper(), settings=SHARED)
    both = reply_calls(("a", {"task": "x"}), ("b", {"task": "y"}))
    play = Play({"": [both, reply_text("Done.")], "A": polls(9), "B": polls(9)})
    ends = await ended(tmp_path, play, 8)
    assert (ends["a"][0], ends["b"][0], ends[""]) == ("limit.steps", "limit.steps", (None, 2))
    assert ends["a"][1] + ends["b"][1] == 6


@pytest.mark.requirement("ASK-8")
async def test_an_agent_for_which_no_turn_is_left_does_not_begin(tmp_path: Path) -> None:
    write_agent(tmp_path / "tools", "a", prompt="A")
    play = Play({"": [calls("a", task="x"), reply_text("Then not.")], "A": []})
    assert await ended(tmp_path, play, 2) == {"a": ("limit.steps", 0), "": (None, 2)}
