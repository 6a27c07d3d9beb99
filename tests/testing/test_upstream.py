"""The fake chat server: what it plays, records, holds back and breaks."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from session_runtime.testing.chains import Chains
from session_runtime.testing.replies import (
    Call,
    ChatReply,
    Pace,
    RawReply,
    Reply,
    reply_bytes,
    reply_error,
    reply_text,
)
from session_runtime.testing.upstream import Replies, Upstream


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as opened:
        yield opened


def asking(question: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": question}], **more}


async def post(
    client: httpx2.AsyncClient, upstream: Upstream, body: dict[str, Any]
) -> httpx2.Response:
    return await client.post(f"{upstream.base_url}/chat/completions", json=body)


def text_of(response: httpx2.Response) -> Any:
    return response.json()["choices"][0]["message"]["content"]


async def played(client: httpx2.AsyncClient, replies: Replies, *questions: str) -> list[Any]:
    async with Upstream(replies) as upstream:
        return [text_of(await post(client, upstream, asking(q))) for q in questions]


async def test_replies_are_played_in_order(client: httpx2.AsyncClient) -> None:
    assert await played(client, [reply_text("a"), reply_text("b")], "x", "y") == ["a", "b"]


async def test_replies_can_belong_to_questions(client: httpx2.AsyncClient) -> None:
    replies = {"x": [reply_text("x1"), reply_text("x2")], "y": [reply_text("y1")]}
    assert await played(client, replies, "x", "y", "x") == ["x1", "y1", "x2"]


async def test_replies_can_be_made_by_a_function(client: httpx2.AsyncClient) -> None:
    def plain(request: Any) -> Reply:
        return reply_text(f"re: {request['messages'][0]['content']}")

    async def slow(request: Any) -> Reply:
        return plain(request)

    assert await played(client, plain, "x") == ["re: x"]
    assert await played(client, slow, "y") == ["re: y"]


async def test_replies_belong_to_questions_on_either_wire(client: httpx2.AsyncClient) -> None:
    async with Upstream({"x": [reply_text("x1")], "y": [reply_text("y1")]}) as upstream:
        url = f"{upstream.base_url}/responses"
        answer = await client.post(url, json={"model": "m", "input": "y"})
        assert text_of(await post(client, upstream, asking("x"))) == "x1"
    assert answer.json()["output"][0]["content"][0]["text"] == "y1"


def test_only_the_newest_conversations_are_remembered() -> None:
    chains = Chains()
    for number in range(1_001):
        chains.keep(f"resp_{number}", ())
    forgotten = chains.complete({"previous_response_id": "resp_0"})
    assert isinstance(forgotten, RawReply)
    assert forgotten.status == 404
    assert chains.complete({"previous_response_id": "resp_1"}) == {
        "previous_response_id": "resp_1",
        "input": [],
    }


async def test_a_request_too_many_is_refused_in_words(client: httpx2.AsyncClient) -> None:
    async with Upstream([]) as upstream:
        response = await post(client, upstream, asking("x"))
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "the fake upstream has no reply left"


async def test_what_arrives_is_recorded_as_bytes_as_json_and_with_headers(
    client: httpx2.AsyncClient,
) -> None:
    async with Upstream([reply_text("a")]) as upstream:
        await client.post(
            f"{upstream.base_url}/chat/completions?v=1",
            content=b'{ "messages": [] }',
            headers={"x-seen": "yes"},
        )
    assert upstream.bodies == [b'{ "messages": [] }']
    assert upstream.requests == [{"messages": []}]
    assert upstream.headers[0]["x-seen"] == "yes"


async def test_other_paths_and_bodies_are_refused(client: httpx2.AsyncClient) -> None:
    async with Upstream([]) as upstream:
        lost = await client.get(f"{upstream.base_url}/models")
        broken = await client.post(f"{upstream.base_url}/chat/completions", content=b"{")
    assert (lost.status_code, broken.status_code) == (404, 400)


async def test_a_stream_arrives_piece_by_piece(client: httpx2.AsyncClient) -> None:
    steps = asyncio.Semaphore(0)
    async with Upstream([reply_bytes(b"one", b"two", pace=Pace(step=steps))]) as upstream:
        url, body = f"{upstream.base_url}/chat/completions", asking("x")
        async with client.stream("POST", url, json=body) as response:
            pieces = response.aiter_raw()
            steps.release()
            assert await anext(pieces) == b"one"
            steps.release()
            assert await anext(pieces) == b"two"


async def test_a_streamed_reply_has_the_form_of_chunks(client: httpx2.AsyncClient) -> None:
    reply = ChatReply("Hi you", (Call("t", '{"a": 1}', "c0"),), usage={"total_tokens": 3})
    async with Upstream([reply]) as upstream:
        body = asking("x", stream=True, stream_options={"include_usage": True})
        response = await post(client, upstream, body)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    chunks = [json.loads(line) for line in lines]
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "t", "arguments": ""}}
    assert [choice["delta"] for chunk in chunks for choice in chunk["choices"]] == [
        {"role": "assistant", "content": None},
        {"content": "Hi "},
        {"content": "you"},
        {"tool_calls": [call]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]},
        {},
    ]
    assert (chunks[-1]["choices"], chunks[-1]["usage"]) == ([], {"total_tokens": 3})


async def test_a_gate_holds_a_reply_back_while_others_pass(client: httpx2.AsyncClient) -> None:
    gate = asyncio.Event()
    replies = {"slow": [reply_text("late", pace=Pace(gate=gate))], "fast": [reply_text("soon")]}
    async with Upstream(replies) as upstream:
        slow = asyncio.create_task(post(client, upstream, asking("slow")))
        await upstream.received(1)
        assert text_of(await post(client, upstream, asking("fast"))) == "soon"
        assert not slow.done()
        gate.set()
        assert text_of(await slow) == "late"


async def test_a_connection_can_be_cut_before_and_within_a_reply(
    client: httpx2.AsyncClient,
) -> None:
    silent = reply_bytes(b"x", pace=Pace(cut_after=0))
    half = reply_bytes(b"one", b"two", pace=Pace(cut_after=1))
    async with Upstream([silent, half]) as upstream:
        with pytest.raises(httpx2.RemoteProtocolError, match="without sending a response"):
            await post(client, upstream, asking("x"))
        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete"):
            await post(client, upstream, asking("x"))


async def test_statuses_headers_and_bodies_are_free(client: httpx2.AsyncClient) -> None:
    error = reply_error(429, "slow", code="rate", headers={"retry-after": "1"})
    page = reply_bytes(b"<html>", b"", b"</html>", content_type="text/html")
    async with Upstream([error, page]) as upstream:
        refused = await post(client, upstream, asking("x"))
        shown = await post(client, upstream, asking("x"))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.json() == {
        "error": {"message": "slow", "type": "error", "param": None, "code": "rate"}
    }
    assert (shown.headers["content-type"], shown.text) == ("text/html", "<html></html>")


async def test_leaving_ends_replies_that_are_still_held_back(client: httpx2.AsyncClient) -> None:
    async with Upstream([reply_text("never", pace=Pace(gate=asyncio.Event()))]) as upstream:
        asked = asyncio.create_task(post(client, upstream, asking("x")))
        await upstream.received(1)
    with pytest.raises(httpx2.TransportError):
        await asked
    assert upstream.open_connections == 0


async def test_a_client_that_leaves_is_noticed(client: httpx2.AsyncClient) -> None:
    async with Upstream([reply_text("never", pace=Pace(gate=asyncio.Event()))]) as upstream:
        asked = asyncio.create_task(post(client, upstream, asking("x")))
        await upstream.received(1)
        asked.cancel()
        await upstream.left()
        assert upstream.open_connections == 0


async def test_a_function_that_fails_breaks_the_connection_and_is_told_to_the_loop(
    client: httpx2.AsyncClient,
) -> None:
    def broken(request: Any) -> Reply:
        raise LookupError(request["model"])

    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))
    async with Upstream(broken) as upstream:
        with pytest.raises(httpx2.RemoteProtocolError):
            await post(client, upstream, asking("x"))
    assert [repr(context["exception"]) for context in told] == ["LookupError('m')"]
