"""Replies that break off in the middle of a call, on every wire: the call never runs (ASK-5)."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime.testing.replies import Pace, Reply, reply_bytes, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolStarted
from tests.support import ask, chat_profile, opened, tool_folder, write_handler

PLAIN = "[skills]\ntool_search_enabled = false\nprefetch_tools = []\n"
DONE = b"data: [DONE]\n\n"


def events(*chunks: dict[str, Any]) -> bytes:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()


def delta(*calls: tuple[str, str], reason: str | None = None) -> dict[str, Any]:
    """A chunk in which these calls begin, by id and with the arguments so far."""
    pieces = [
        {"index": at, "id": call_id, "function": {"name": "count", "arguments": arguments}}
        for at, (call_id, arguments) in enumerate(calls)
    ]
    return {"choices": [{"delta": {"tool_calls": pieces}, "finish_reason": reason}]}


def item(call_id: str, arguments: str, **more: Any) -> dict[str, Any]:
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "count"}
    return {**item, "arguments": arguments, **more}


def added(call_id: str, at: int = 0) -> dict[str, Any]:
    began = item(call_id, "", status="in_progress")
    return {"type": "response.output_item.added", "output_index": at, "item": began}


def ended(how: str, *output: dict[str, Any], reason: str = "max_output_tokens") -> dict[str, Any]:
    details = {"reason": reason} if how == "incomplete" else None
    response = {"status": how, "incomplete_details": details, "output": list(output)}
    return {"type": f"response.{how}", "response": response}


WHOLE = {"id": "a", "function": {"name": "count", "arguments": ""}}
CHAT: dict[str, bytes] = {
    "an end mark without a reason": events(delta(("a", ""))) + DONE,
    "no arguments yet": events(delta(("a", ""), reason="length")) + DONE,
    "a placeholder yet": events(delta(("a", "{}"), reason="length")) + DONE,
    "two calls side by side": events(delta(("a", ""), ("b", ""), reason="length")) + DONE,
    "half of the arguments": events(delta(("a", '{"n": 1'))) + DONE,
    "another reason": events(delta(("a", ""), reason="insufficient_system_resource")) + DONE,
    "another reason in a whole answer": json.dumps(
        {"choices": [{"message": {"tool_calls": [WHOLE]}, "finish_reason": "max_tokens"}]}
    ).encode(),
}
RESPONSES: dict[str, bytes] = {
    "no arguments yet": events(added("a"), ended("incomplete", item("a", "", status="incomplete"))),
    "two calls side by side": events(added("a"), added("b", 1), ended("incomplete")),
    "another reason": events(ended("incomplete", item("a", ""), reason="something_new")),
    "a hollow response": events(added("a"), ended("completed")),
    "a call in progress": events(ended("completed", item("a", "", status="in_progress"))),
    "a call that is incomplete": events(ended("completed", item("a", "{}", status="incomplete"))),
    "half of the arguments": events(
        added("a"), ended("incomplete", item("a", '{"n": 1', status="incomplete"))
    ),
}
BEGUN = {"type": "message_start", "message": {"type": "message", "content": []}}
BLOCK_END = {"type": "content_block_stop", "index": 0}


def block(call_id: str, at: int = 0) -> dict[str, Any]:
    begun = {"type": "tool_use", "id": call_id, "name": "count", "input": {}}
    return {"type": "content_block_start", "index": at, "content_block": begun}


def written(arguments: str) -> dict[str, Any]:
    piece = {"type": "input_json_delta", "partial_json": arguments}
    return {"type": "content_block_delta", "index": 0, "delta": piece}


def stopped(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


MESSAGES: dict[str, bytes] = {
    "no arguments yet": events(BEGUN, block("a"), stopped("max_tokens")),
    "nothing says that the call ended": events(BEGUN, block("a"), stopped("tool_use")),
    "two calls side by side": events(BEGUN, block("a"), block("b", 1), stopped("max_tokens")),
    "half of the arguments": events(BEGUN, block("a"), written('{"n": 1'), stopped("max_tokens")),
    "a placeholder yet": events(BEGUN, block("a"), BLOCK_END, stopped("max_tokens")),
    "an end without a reason": events(BEGUN, block("a"), BLOCK_END, {"type": "message_stop"}),
    "a window that is full": events(
        BEGUN, block("a"), BLOCK_END, stopped("model_context_window_exceeded")
    ),
}
BODIES = {"chat": CHAT, "responses": RESPONSES, "anthropic": MESSAGES}
CUTS = [(wire, cut) for wire, bodies in BODIES.items() for cut in bodies]


async def started(folder: Path, wire: str, *replies: Reply, **settings: Any) -> list[ToolStarted]:
    """The calls that were accepted in an ask that ends well."""
    write_handler(folder / "tools", "count")
    async with Upstream(replies) as upstream:
        profile = chat_profile(upstream.base_url, wire=wire, chain=False, **settings)
        async with opened(folder, PLAIN + tool_folder(folder) + profile) as runtime:
            asked = await ask(runtime, "how many?")
    assert (asked.result.outcome, asked.result.text) == ("answered", "sorry")
    return asked.of(ToolStarted)


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(("wire", "cut"), CUTS)
async def test_a_call_that_broke_off_does_not_run(tmp_path: Path, wire: str, cut: str) -> None:
    body = reply_bytes(BODIES[wire][cut])
    assert await started(tmp_path, wire, body, reply_text("sorry")) == []


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    ("wire", "begun"),
    [
        ("chat", events(delta(("a", "{}")))),
        ("responses", events(added("a"))),
        ("anthropic", events(BEGUN, block("a"), BLOCK_END)),
    ],
    ids=["chat", "responses", "anthropic"],
)
@pytest.mark.parametrize("cut_after", [1, None], ids=["the connection broke", "the body ended"])
async def test_a_stream_that_is_cut_in_a_call_is_asked_for_again(
    tmp_path: Path, wire: str, begun: bytes, cut_after: int | None
) -> None:
    cut = reply_bytes(begun, b"", pace=Pace(cut_after=cut_after))
    assert await started(tmp_path, wire, cut, reply_text("sorry"), max_retries=1) == []


@pytest.mark.requirement("ASK-5")
@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("chat", events(delta(("a", ""), reason="tool_calls")) + DONE),
        ("chat", events(delta(("a", "{}"))) + DONE),
        ("responses", events(ended("completed", item("a", "", status="completed")))),
        ("anthropic", events(BEGUN, block("a"), BLOCK_END, stopped("tool_use"))),
        (
            "responses",
            events(
                added("a"),
                {
                    "type": "response.function_call_arguments.done",
                    "item_id": "fc_a",
                    "arguments": "",
                },
                ended("completed"),
            ),
        ),
    ],
)
async def test_a_call_that_wants_no_arguments_runs(tmp_path: Path, wire: str, body: bytes) -> None:
    calls = await started(tmp_path, wire, reply_bytes(body), reply_text("sorry"))
    assert [call.name for call in calls] == ["count"]
