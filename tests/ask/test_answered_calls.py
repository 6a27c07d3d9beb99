"""Whatever becomes of the calls of a turn, the service is sent a result of each, in order (ASK-4)."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime.testing.conversation import messages_of
from session_runtime.testing.misbehaviour import WIRES
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolFinished
from tests.support import Asked, ask, chat_profile, opened, tool_folder, write_handler

SETTINGS = """
[skills]
prefetch_tools = []
[ask]
max_tool_calls = 2
[access.rules.r]
deny = ["occrra.secret"]
"""
HIDDEN = "raise SystemExit('it ran')\n"


async def played(folder: Path, wire: str, first: Reply) -> tuple[Asked, list[dict[str, Any]]]:
    """The ask and the messages of its second request, chained or not."""
    write_handler(folder / "tools", "occrra.information")
    write_handler(folder / "tools", "occrra.secret", code=HIDDEN)
    write_handler(
        folder / "tools", "raises", code="def execute(args, context):\n    raise ValueError\n"
    )
    async with Upstream([first, reply_text("Done.")]) as upstream:
        profile = chat_profile(upstream.base_url, wire=wire, chain=False)
        async with opened(folder, tool_folder(folder) + profile + SETTINGS) as runtime:
            asked = await ask(runtime, "go")
        return asked, messages_of(upstream.requests[1])


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_that_ran_one_that_raised_and_one_over_the_limit_have_a_result_each(
    tmp_path: Path, wire: str
) -> None:
    first = reply_calls(("occrra__information", {}), ("raises", {}), ("occrra__information", {}))
    asked, sent = await played(tmp_path, wire, first)
    assert {each.call_id: each.error_code for each in asked.of(ToolFinished)} == {
        "c0": None,
        "c1": "tool.failed",
        "c2": "limit.calls",
    }
    assert [m["tool_call_id"] for m in sent if m["role"] == "tool"] == ["c0", "c1", "c2"]
    assert asked.result.text == "Done."


@pytest.mark.requirement("RTE-11")
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("invented", ["occcra__information", "occrra__secrets"])
async def test_an_invented_name_is_answered_with_near_ones_that_may_be_called(
    tmp_path: Path, wire: str, invented: str
) -> None:
    asked, sent = await played(tmp_path, wire, reply_calls((invented, {})))
    (told,) = [m["content"] for m in sent if m["role"] == "tool"]
    assert f"there is no tool named {invented!r}" in told
    assert "occrra.information" in told
    assert "occrra.secret," not in told
    assert asked.result.text == "Done."
