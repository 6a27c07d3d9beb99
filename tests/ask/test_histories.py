"""Histories as callers send them: on every wire the service gets a conversation that it accepts (ASK-2)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Message
from session_runtime.testing.conversation import messages_of
from session_runtime.testing.misbehaviour import WIRES
from session_runtime.testing.replies import reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolCall
from tests.support import ask, chat_profile, opened

SEARCH_OFF = "[skills]\nprefetch_tools = []\n"
ASKED = Message("user", "before")
SAID = Message("assistant", "said")


def called(*ids: str, name: str = "calculator.evaluate", content: str | None = None) -> Message:
    calls = tuple(ToolCall(each, name, '{"a": 1}') for each in ids)
    return Message("assistant", content, calls)


def result(call_id: str, content: str | None = "found") -> Message:
    return Message("tool", content, tool_call_id=call_id)


HISTORIES: Mapping[str, tuple[Sequence[Message], Sequence[str]]] = {
    "null content beside calls": ((ASKED, called("a"), result("a"), SAID), ["found"]),
    "text beside calls": ((ASKED, called("a", content="wait"), result("a")), ["found"]),
    "no result": ((ASKED, called("a")), ["lost"]),
    "one result of three": (
        (ASKED, called("a", "b", "c"), result("b")),
        ["lost", "found", "lost"],
    ),
    "orphan at the beginning": ((result("z"), ASKED, SAID), []),
    "orphan behind an answer": ((ASKED, SAID, result("z")), []),
    "orphan of another id": ((ASKED, called("a"), result("z"), result("a")), ["found"]),
    "orphan without an id": (
        (ASKED, called("a"), Message("tool", "x"), result("a")),
        ["found"],
    ),
    "second result": ((ASKED, called("a"), result("a"), result("a", "again")), ["found"]),
    "out of order": (
        (ASKED, called("a", "b"), result("b", "second"), result("a", "first")),
        ["first", "second"],
    ),
    "behind the next question": ((ASKED, called("a"), ASKED, result("a")), ["found"]),
    "null result": ((ASKED, called("a"), result("a", None)), ["lost"]),
    "empty result": ((ASKED, called("a"), result("a", "")), [""]),
    "a tool that is gone": ((ASKED, called("a", name="old.tool, sir"), result("a")), ["found"]),
    "the same id twice in a message": ((ASKED, called("a", "a"), result("a")), ["found"]),
    "the same id in two messages": (
        (ASKED, called("a"), result("a", "1"), called("a"), result("a", "2")),
        ["1", "2"],
    ),
    "an id that services refuse": ((ASKED, called("c\n" * 90), result("c\n" * 90)), ["found"]),
    "an empty id": ((ASKED, called(""), result("")), ["found"]),
    "empty messages": ((Message("user", ""), Message("assistant"), ASKED, SAID), []),
    "nothing but an answer": ((SAID,), []),
}


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", HISTORIES)
async def test_a_malformed_history_is_repaired_for_every_wire(
    tmp_path: Path, name: str, wire: str
) -> None:
    history, results = HISTORIES[name]
    async with Upstream([reply_text("Done.")]) as upstream:
        profile = chat_profile(upstream.base_url, wire=wire, chain=False)
        async with opened(tmp_path, SEARCH_OFF + profile) as runtime:
            asked = await ask(runtime, AskRequest("now", history=history))
    assert asked.result.text == "Done.", asked.result.error
    sent = [each for each in messages_of(upstream.requests[0]) if each["role"] != "system"]
    found = ["lost" if "not recorded" in text else text for text in check_order(sent)]
    assert found == list(results)


def check_order(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Behind each message with calls stand their results, and nowhere else; returns their texts."""
    waiting: list[str] = []
    seen: set[str] = set()
    texts: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            texts.append(message["content"])
            continue
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        assert calls or (not waiting and message["content"]), message
        assert seen.isdisjoint(calls)
        assert all(each.isascii() and each.isprintable() and 0 < len(each) <= 40 for each in calls)
        seen |= set(calls)
        waiting += calls
    assert waiting == []
    return texts
