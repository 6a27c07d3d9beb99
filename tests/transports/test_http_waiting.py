"""Asks over HTTP that wait for their turn: in which order, how many, and what becomes of their clients."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from session_runtime import AskRequest, AskResult, Runtime
from tests.transports.asking import DETACHED, Here, here, keys
from tests.transports.configured import code
from tests.transports.stub import EVENTS, TEXT, Emit, bearer, serving


@pytest.mark.requirement("ASK-13")
async def test_an_ask_waits_for_its_conversation_and_can_be_ended_meanwhile(tmp_path: Path) -> None:
    talk = {**DETACHED, "conversation": "c"}
    async with here(tmp_path, texts=("one", "three")) as at:
        one, two, three = [(await at.ask(talk)).json()["ask_id"] for _ in range(3)]
        await at.upstream.received(1)
        states = [each["state"] for each in (await at.get("")).json()["asks"]]
        assert states == ["model", "queued", "queued"]
        await at.client.delete(f"/v1/asks/{two}", headers=bearer("ann"))
        assert (await at.ended(two))["result"]["outcome"] == "cancelled"
        at.go_on.set()
        texts = [(await at.ended(each))["result"]["text"] for each in (one, three)]
        assert texts == ["one", "three"]


@pytest.mark.requirement("ASK-13")
async def test_a_newer_ask_takes_the_place_of_its_conversation_s_others(tmp_path: Path) -> None:
    talk = {**DETACHED, "conversation": "c"}
    config = '[ask]\nconversations = "cancel_previous"\n'
    async with here(tmp_path, config, ("one", "three")) as at:
        first, second, third = [(await at.ask(talk)).json()["ask_id"] for _ in range(3)]
        at.go_on.set()
        for replaced in (first, second):
            error = (await at.ended(replaced))["result"]["error"]
            assert error["code"] == "cancelled.replaced"
        assert (await at.ended(third))["result"]["outcome"] == "answered"


@pytest.mark.requirement("NET-5b")
async def test_a_principal_with_too_many_asks_that_wait_is_told_when_to_come_back(
    tmp_path: Path,
) -> None:
    config = "[runtime]\nmax_waiting_asks = 2\n" + keys(ann="max_concurrent_asks = 1\n")
    async with here(tmp_path, config, ("a", "b", "c")) as at:
        kept = [(await at.ask()).json()["ask_id"] for _ in range(2)]
        for body in (DETACHED, TEXT):
            refused = await at.ask(body)
            assert code(refused) == (429, "busy.queue")
            assert refused.headers["retry-after"] == "1"
        bobs = await at.ask(who="bob")
        assert bobs.status_code == 202
        at.go_on.set()
        assert [(await at.ended(each))["result"]["outcome"] for each in kept] == ["answered"] * 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.requirement("ASK-13")
async def test_completions_take_the_same_turns_as_all_asks(stream: bool, tmp_path: Path) -> None:
    config = "[runtime]\nmax_waiting_asks = 1\n"
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "stream": stream,
        "session_runtime": {"conversation": "c"},
    }

    async def complete(at: Here) -> httpx2.Response:
        return await at.client.post("/v1/chat/completions", json=body, headers=bearer("ann"))

    async with here(tmp_path, config, ("one", "two")) as at:
        first = (await at.ask({**DETACHED, "conversation": "c"})).json()["ask_id"]
        await at.upstream.received(1)
        asking = [asyncio.create_task(complete(at)) for _ in range(2)]
        [told], [waits] = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        refused = told.result()
        assert code(refused) == (429, "busy.queue")
        assert refused.headers["x-should-retry"] == "true"
        at.go_on.set()
        assert (await at.ended(first))["result"]["text"] == "one"
        assert "two" in (await waits).text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.requirement("NET-1e")
async def test_a_completion_whose_turn_did_not_come_in_time_is_an_error(
    stream: bool, tmp_path: Path
) -> None:
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "stream": stream,
        "session_runtime": {"conversation": "c", "deadline_s": 0.01},
    }
    async with here(tmp_path) as at:
        await at.ask({**DETACHED, "conversation": "c"})
        await at.upstream.received(1)
        late = await at.client.post("/v1/chat/completions", json=body, headers=bearer("ann"))
        at.go_on.set()
    assert code(late) == (503, "busy.no_turn")
    assert (late.headers["retry-after"], late.headers["x-should-retry"]) == ("1", "true")


@pytest.mark.requirement("NET-5b")
async def test_where_too_many_asks_wait_in_all_others_are_told_to_come_back(
    tmp_path: Path,
) -> None:
    config = "[runtime]\nmax_waiting_asks_in_all = 1\n" + keys()
    talk = {**DETACHED, "conversation": "c"}
    async with here(tmp_path, config, ("a", "b", "c")) as at:
        for who in ("ann", "bob"):
            assert (await at.ask(talk, who)).status_code == 202
        assert (await at.ask(talk)).status_code == 202
        for path, body in (
            ("/v1/ask", talk),
            (
                "/v1/chat/completions",
                {
                    "messages": [{"role": "user", "content": "hi"}],
                    "session_runtime": {"conversation": "c"},
                },
            ),
        ):
            refused = await at.client.post(path, json=body, headers=bearer("bob"))
            assert code(refused) == (503, "busy.waiting")
            assert refused.headers["retry-after"] == "1"
        at.go_on.set()


@pytest.mark.parametrize("path", ["/v1/ask", "/v1/chat/completions"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.requirement("NET-5b")
async def test_a_client_that_leaves_while_its_ask_waits_frees_its_place_in_the_queue(
    stream: bool, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = {"conversation": "c"}
    completion = {
        "messages": [{"role": "user", "content": "hi"}],
        "stream": stream,
        "session_runtime": talk,
    }
    body = {**TEXT, **talk} if path == "/v1/ask" else completion
    headers = EVENTS if stream and path == "/v1/ask" else {}
    config = "[runtime]\nmax_waiting_asks = 1\n" + keys()
    begun, left = asyncio.Event(), asyncio.Event()
    async with here(tmp_path, config, ("one", "two")) as at:

        async def watched(request: AskRequest, emit: Emit, *, chars: int) -> AskResult:
            begun.set()
            try:
                return await Runtime.ask(at.runtime, request, emit, chars=chars)
            finally:
                left.set()

        monkeypatch.setattr(at.runtime, "ask", watched)
        async with serving(at.runtime) as served:
            await at.ask({**DETACHED, **talk})
            await at.upstream.received(1)
            asking = asyncio.create_task(
                served.client.post(path, json=body, headers={**bearer("ann"), **headers})
            )
            await begun.wait()
            assert at.runtime.running.waiting == 1
            asking.cancel()
            await left.wait()
            again = await at.ask({**DETACHED, **talk})
            assert again.status_code == 202
            at.go_on.set()
            assert (await at.ended(again.json()["ask_id"]))["result"]["text"] == "two"
