"""The wire name of a tool that this caller may not know is no name at all."""

from pathlib import Path

import pytest

from session_runtime import AskRequest, Message
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolCall
from tests.support import Asked, ask, chat_profile, opened, tool_folder, write_handler

SEARCH_OFF = "[skills]\nprefetch_tools = []\n"
HISTORY = (
    Message("user", "before"),
    Message("assistant", None, (ToolCall("h1", "secret.tool", "{}"),)),
    Message("tool", "done", tool_call_id="h1"),
)


async def call_secret(folder: Path, config: str) -> tuple[Asked, str]:
    """Let the model call ``secret__tool`` after a history that used the canonical name."""
    replies = [reply_calls(("secret__tool", {})), reply_text("ok")]
    async with Upstream(replies) as upstream:
        text = config + SEARCH_OFF + chat_profile(upstream.base_url)
        async with opened(folder, text) as runtime:
            asked = await ask(runtime, AskRequest("go", history=HISTORY))
        bodies = b"\n".join(upstream.bodies).decode()
    return asked, bodies.replace(asked.result.ask_id, "ASK")


@pytest.mark.requirement("TS-2")
@pytest.mark.requirement("ASK-12")
async def test_calling_a_hidden_tool_by_its_wire_name_is_calling_one_that_does_not_exist(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "open.tool")
    absent, absent_bodies = await call_secret(tmp_path, tool_folder(tmp_path))
    write_handler(tmp_path / "tools", "secret.tool", runtime={"requires": ["admin"]})
    hidden, hidden_bodies = await call_secret(tmp_path, tool_folder(tmp_path))
    assert hidden_bodies == absent_bodies
    assert hidden.result.new_messages == absent.result.new_messages
    assert [e.type for e in hidden.events] == [e.type for e in absent.events]
    assert "secret.tool" not in str(hidden.result)


@pytest.mark.requirement("PRE-1")
@pytest.mark.requirement("TS-2")
async def test_a_tool_hidden_by_its_prefetch_has_no_wire_name_either(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "secret.tool")
    prefetch = '[skills]\nprefetch_tools = ["secret.tool"]\n'
    replies = [reply_calls(("secret__tool", {})), reply_text("ok")]
    async with Upstream(replies) as upstream:
        text = tool_folder(tmp_path) + prefetch + chat_profile(upstream.base_url)
        async with opened(tmp_path, text) as runtime:
            asked = await ask(runtime, "go")
    (call,) = asked.result.new_messages[1].tool_calls
    assert call.name == "secret__tool"
