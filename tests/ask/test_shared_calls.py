"""Sub-agents that run side by side share the calls of the ask, whatever it takes to read their arguments."""

import threading
from pathlib import Path

import pytest

from session_runtime.ask.guards import CallGuard
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.types import ToolFinished
from tests.ask.agent_plays import SHARED, Play, calls, played
from tests.support import write_agent, write_handler


@pytest.mark.requirement("ASK-8")
@pytest.mark.requirement("ASK-11")
async def test_agents_side_by_side_cannot_make_more_calls_than_the_ask_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    def slow_look(self: CallGuard) -> bool:
        """In two threads at once, none decides before the other has looked."""
        exhausted = self.left <= 0
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
