"""A person agrees to a destructive call, over every wire to the model and every door to the daemon."""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import AskRequest, Identity
from session_runtime.testing.conversation import messages_of, tool_names
from session_runtime.testing.replies import Reply, reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.transports.http.openapi import OPENAPI
from session_runtime.wire import request_from_json, result_to_json
from tests.support import ask, calls, chat_profile, opened, says, scripted, write_handler
from tests.system.test_principals import keys_toml
from tests.transports.configured import fits
from tests.transports.stub import EVENTS, bearer, calling, frames

RECORDS = """
async def execute(args, context):
    context.resources["ran"].append((context.identity.user, args))
    return {"gone": args}
"""
NUMBER = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
WIRES = tuple(itertools.product(("chat", "responses", "anthropic"), (True, False), (True, False)))


def configured(folder: Path, model: str, *, search: bool = False) -> str:
    for name, destructive in (("mail.delete", True), ("mail.read", False)):
        if not (folder / "tools" / name.replace(".", "/")).exists():
            runtime = {"destructive": destructive}
            write_handler(folder / "tools", name, parameters=NUMBER, runtime=runtime, code=RECORDS)
    skills = f"[skills]\ntool_search_enabled = {json.dumps(search)}\nprefetch_tools = []\n"
    handlers = f'[handlers]\nbundled = false\npaths = ["{folder / "tools"}"]\n'
    return f"{skills}{handlers}{model}"


def assert_all_answered(messages: Sequence[Mapping[str, Any]]) -> None:
    """Every call has one result right behind the calls of its turn, in their order; ids are unique."""
    called: list[str] = []
    waiting: list[str] = []
    for message in messages:
        made = [call["id"] for call in message.get("tool_calls") or ()]
        called += made
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        elif made:
            waiting += made
        else:
            assert waiting == []
    assert waiting == []
    assert len(set(called)) == len(called)


@pytest.mark.requirement("ASK-2c")
@pytest.mark.requirement("RTE-9b")
@pytest.mark.parametrize(("wire", "stream", "search"), WIRES)
async def test_a_confirmed_call_and_its_result_reach_the_model_over_every_wire(
    tmp_path: Path, wire: str, stream: bool, search: bool
) -> None:
    looks = [reply_calls(("tool_search", {"query": "select:mail.delete,mail.read"}))]
    replies: list[Reply] = [
        *(looks if search else ()),
        reply_calls(("mail__delete", {"id": 7}), ("mail__read", {"id": 8}), text="May I?"),
        reply_text("It is gone."),
    ]
    ran: list[Any] = []
    async with Upstream(replies) as upstream:
        profile = chat_profile(upstream.base_url, wire=wire, stream=stream)
        config = configured(tmp_path, profile, search=search)
        async with opened(tmp_path, config, resources={"ran": ran}) as runtime:
            first = await ask(runtime, "delete mail 7")
            assert (first.result.outcome, first.result.text) == ("needs_confirmation", "May I?")
            assert ran == [(None, {"id": 8})]
            told = result_to_json(first.result)
            tokens = [call["token"] for call in told["pending"]]
            data = {"text": "yes", "history": told["new_messages"], "confirmations": tokens}
            second = await ask(runtime, request_from_json(json.loads(json.dumps(data))))
        sent = messages_of(upstream.requests[-1])
    assert (second.result.outcome, second.result.text) == ("answered", "It is gone.")
    assert ran == [(None, {"id": 8}), (None, {"id": 7})]
    assert_all_answered(sent)
    assert_all_answered([*told["new_messages"], *result_to_json(second.result)["new_messages"]])
    assert sent[-1]["content"] == '{"gone":{"id":7}}'
    assert not any(
        token in json.dumps(request) for token in tokens for request in upstream.requests
    )
    assert ("mail__delete" in tool_names(upstream.requests[-1])) is not search


@pytest.mark.requirement("INT-2b")
@pytest.mark.requirement("INT-3b")
@pytest.mark.parametrize("streamed", [False, True])
async def test_over_http_a_call_waits_for_the_key_and_the_identity_that_asked(
    tmp_path: Path, streamed: bool
) -> None:
    model = scripted(tmp_path, calls(("mail.delete", {"id": 7})), says("It is gone."))
    config = f"{configured(tmp_path, model)}\n{keys_toml()}\n"
    ran: list[Any] = []
    async with (
        opened(tmp_path, config, resources={"ran": ran}) as runtime,
        calling(runtime) as client,
    ):
        ann = {"identity": {"user": "ann"}}
        status, first = await post(client, "bot", {"text": "delete it", **ann}, streamed)
        assert (status, first["outcome"]) == (200, "needs_confirmation")
        assert fits("AskResult", first) == []
        [pending] = first["pending"]
        yes = {"text": "yes", "confirmations": [pending["token"]], "history": first["new_messages"]}
        for name, stated in (("desk", ann), ("bot", {"identity": {"user": "eve"}}), ("bot", {})):
            status, refused = await post(client, name, {**yes, **stated}, streamed)
            assert (status, refused["error"]["code"]) == (409, "confirmation.invalid")
            assert "confirmations[0] is not known here" in refused["error"]["message"]
            assert ran == []
        status, second = await post(client, "bot", {**yes, **ann}, streamed)
        assert (status, second["outcome"], second["text"]) == (200, "answered", "It is gone.")
        status, again = await post(client, "bot", {**yes, **ann}, streamed)
        assert (status, again["error"]["code"]) == (409, "confirmation.invalid")
    assert pending == {**pending, "tool": "mail.delete", "arguments": {"id": 7}}
    assert ran == [("ann", {"id": 7})]


async def post(
    client: httpx2.AsyncClient, name: str, body: Mapping[str, Any], streamed: bool
) -> tuple[int, Any]:
    """Ask with a key; of a stream, the result, if what it asks for is in the events before."""
    headers = bearer(name) | (EVENTS if streamed else {})
    response = await client.post("/v1/ask", json=body, headers=headers)
    if not streamed or response.status_code != 200:
        return response.status_code, response.json()
    events = frames(response.text)
    asked_for = [data for kind, data in events if kind == "confirmation.required"]
    result = events[-1][1]["result"]
    keys = ("token", "tool", "arguments", "call_id", "expires_at")
    assert [{key: data[key] for key in keys} for data in asked_for] == result.get("pending", [])
    return response.status_code, result


def test_the_description_of_the_routes_knows_the_tokens() -> None:
    fields = OPENAPI["components"]["schemas"]["AskRequest"]["properties"]
    assert fields["confirmations"] == fields["declined"]
    assert (
        fits("AskRequest", {"text": "yes", "confirmations": ["t"], "declined": ["t" * 201]}) != []
    )
    assert fits("AskRequest", {"text": "yes", "confirmations": ["t"] * 32}) == []


async def test_a_real_tool_waits_too(tmp_path: Path) -> None:
    """``notes.delete`` is destructive: a note goes only when somebody agrees."""
    model = scripted(tmp_path)
    wish = [calls(("notes.add", {"text": "milk"})), calls(("notes.delete", {"id": 1}))]
    scenes = [
        {"match": "drop", "replies": wish},
        {"match": "yes", "replies": [says("the confirmed call"), says("Deleted.")]},
    ]
    (tmp_path / "script.json").write_text(json.dumps({"scenes": scenes}), encoding="utf-8")
    ann = Identity("ann")
    async with opened(tmp_path, f"{model}[skills]\nprefetch_tools = []\n") as runtime:
        first = await ask(runtime, AskRequest("note milk, then drop it", identity=ann))
        assert [call.tool for call in first.result.pending] == ["notes.delete"]
        tokens = [call.token for call in first.result.pending]
        yes = AskRequest("yes", identity=ann, confirmations=tokens)
        second = await ask(runtime, yes)
    assert second.result.text == "Deleted."
    [deleted] = [m.content for m in second.result.new_messages if m.role == "tool"]
    assert "milk" in str(deleted)
