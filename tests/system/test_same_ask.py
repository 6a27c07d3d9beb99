"""The same ask by every door: the model is sent the same, and the same comes of it (NET-1)."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import AskRequest, Identity, Message, Runtime
from session_runtime.registry.keyring import hash_of
from session_runtime.testing.replies import Call, ChatReply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import AskResult
from session_runtime.wire import result_to_json
from tests.support import chat_profile, opened, tool_folder, write_handler
from tests.transports.stub import EVENTS, bearer, calling, frames, key_of

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
SEARCH = '{"query": "select:weather.now,mail.send"}'
REPLIES = (
    ChatReply("", (Call("tool_search", SEARCH, "c0"),), USAGE, "tool_calls"),
    reply_calls(("weather__now", {"city": "Bonn"}), ("mail__send", {}), ("no__such", {})),
    reply_calls(("send_message", {"text": "Sun so far."})),
    reply_text("Sun, then rain.", usage=USAGE),
)
WAITS = (*REPLIES[:1], reply_calls(("notes__delete", {"id": 3}), text="Shall I?"))
CONFIG = f"""
[skills]
tool_search_enabled = true
prefetch_tools = []
tool_search_always_loaded = ["send_message", "notes.delete"]

[access.rules.guests]
roles = ["guest"]
deny = ["mail.*"]

[http.keys.bot]
hash = "{hash_of(key_of("bot"))}"
act_for = ["tg-*"]
channel = "telegram"
"""
INSTRUCTIONS = "Be short."
CONVERSATION = [
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "Hello!"},
]
QUESTION = {"role": "user", "content": "How is the weather?"}
WHO = {"user": "tg-1", "roles": ["guest"]}


@dataclass(frozen=True)
class Came:
    """What a door gave: the result as far as it tells it, and the text for the person."""

    result: dict[str, Any]
    content: str | None = None


Door = Callable[[Runtime, httpx2.AsyncClient], Awaitable[Came]]


def as_json(result: AskResult) -> dict[str, Any]:
    return dict(json.loads(json.dumps(result_to_json(result))))


async def in_process(runtime: Runtime, client: httpx2.AsyncClient) -> Came:
    owner = runtime.keys().owner(key_of("bot").encode())
    assert owner is not None
    request = AskRequest(
        messages=(Message("user", QUESTION["content"]),),
        history=tuple(Message(m["role"], m["content"]) for m in CONVERSATION),  # type: ignore[arg-type]
        instructions=INSTRUCTIONS,
        identity=Identity("tg-1", frozenset({"guest"})),
        principal=owner,
    )
    return Came(as_json(await runtime.ask(request)))


ASK = {
    "messages": [QUESTION],
    "history": CONVERSATION,
    "instructions": INSTRUCTIONS,
    "identity": WHO,
}
COMPLETION = {
    "model": "main",
    "messages": [{"role": "system", "content": INSTRUCTIONS}, *CONVERSATION, QUESTION],
    "user": "tg-1",
    "session_runtime": {"identity": {"roles": ["guest"]}},
}


async def over_http(runtime: Runtime, client: httpx2.AsyncClient) -> Came:
    response = await client.post("/v1/ask", json=ASK, headers=bearer("bot"))
    return Came(response.json())


async def as_events(runtime: Runtime, client: httpx2.AsyncClient) -> Came:
    response = await client.post("/v1/ask", json=ASK, headers=bearer("bot") | EVENTS)
    return Came(frames(response.text)[-1][1]["result"])


async def as_completion(runtime: Runtime, client: httpx2.AsyncClient) -> Came:
    response = await client.post("/v1/chat/completions", json=COMPLETION, headers=bearer("bot"))
    told = response.json()
    return Came(told["session_runtime"], told["choices"][0]["message"]["content"])


async def as_chunks(runtime: Runtime, client: httpx2.AsyncClient) -> Came:
    body = {**COMPLETION, "stream": True}
    response = await client.post("/v1/chat/completions", json=body, headers=bearer("bot"))
    *frames_, done, _ = response.text.split("\n\n")
    assert done == "data: [DONE]"
    chunks = [json.loads(frame.removeprefix("data: ")) for frame in frames_]
    pieces = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    return Came(chunks[-1]["session_runtime"], "".join(pieces))


DOORS: tuple[Door, ...] = (in_process, over_http, as_events, as_completion, as_chunks)


async def through(folder: Path, door: Door, replies: Any) -> tuple[list[Any], Came]:
    """What the model was sent, and what came of it."""
    tools = folder / "tools"
    for name in ("weather.now", "mail.send"):
        write_handler(tools, name)
    write_handler(tools, "notes.delete", runtime={"destructive": True})
    async with (
        Upstream(replies) as upstream,
        opened(folder, tool_folder(folder) + CONFIG + chat_profile(upstream.base_url)) as runtime,
        calling(runtime) as client,
    ):
        came = await door(runtime, client)
    return upstream.requests, came


def told_by_all(came: Came) -> dict[str, Any]:
    """The result without what names this ask alone, and what not every door tells."""
    own = ("ask_id", "new_messages", "usage", "ignored")
    told = {name: value for name, value in came.result.items() if name not in own}
    for call in told.get("pending", ()):
        call.update(token="", expires_at=0)
    return told


@pytest.mark.requirement("NET-1e")
@pytest.mark.parametrize(
    ("replies", "content"),
    [
        (REPLIES, "Sun so far.\n\nSun, then rain."),
        (
            WAITS,
            "Shall I?\n\nThis call waits for your consent and did not run:\n"
            '- notes.delete {"id": 3}',
        ),
    ],
    ids=["answered", "waits"],
)
async def test_every_door_exposes_refuses_and_answers_the_same(
    tmp_path: Path, replies: Any, content: str
) -> None:
    sent, came = await through(tmp_path / "first", DOORS[0], replies)
    assert [tool["function"]["name"] for tool in sent[1]["tools"]][-1] == "weather__now"
    assert "mail" not in json.dumps([request["tools"] for request in sent])
    for door in DOORS[1:]:
        also_sent, also_came = await through(tmp_path / door.__name__, door, replies)
        assert also_sent == sent
        assert told_by_all(also_came) == told_by_all(came)
        assert also_came.content in (None, content)


async def test_every_door_refuses_whom_the_key_may_not_act_for(tmp_path: Path) -> None:
    async with opened(tmp_path, CONFIG) as runtime, calling(runtime) as client:
        ask = {**ASK, "identity": {"user": "eve"}}
        completion = {**COMPLETION, "user": "eve"}
        by_ask = await client.post("/v1/ask", json=ask, headers=bearer("bot"))
        by_completion = await client.post(
            "/v1/chat/completions", json={**completion, "model": None}, headers=bearer("bot")
        )
    assert (by_ask.status_code, by_completion.status_code) == (403, 403)
    told, also_told = by_ask.json()["error"], by_completion.json()["error"]
    assert also_told["session_runtime"] == told
