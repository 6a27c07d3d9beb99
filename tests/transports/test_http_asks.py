"""Asks as resources: keys, asks that go on alone, looking at them, following, ending, confirming."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import AskRequest, AskResult
from session_runtime.ask.kept_asks import Bounds, KeptAsks
from session_runtime.testing.upstream import Upstream
from tests.ask.confirming import Home
from tests.support import calls, says
from tests.transports.asking import KEYED, Here, here, keys
from tests.transports.configured import code, fits
from tests.transports.stub import (
    EVENTS,
    TEXT,
    BlockedAsk,
    Emit,
    StubDoor,
    bearer,
    calling,
    finish,
    frames,
    keyring_of,
    serving,
)


@pytest.mark.requirement("NET-1b")
async def test_a_detached_ask_is_found_followed_and_kept(tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        accepted = await at.ask()
        ask_id = accepted.json()["ask_id"]
        assert (accepted.status_code, accepted.json()) == (
            202,
            {"ask_id": ask_id, "state": "running"},
        )
        assert accepted.headers["location"] == f"/v1/asks/{ask_id}"
        await at.upstream.received(1)
        running = (await at.get(f"/{ask_id}")).json()
        assert fits("RunningAsk", running) == []
        assert running["state"] == "model"
        following = asyncio.create_task(at.events(ask_id))
        at.go_on.set()
        live, ended = await following, await at.ended(ask_id)
        assert fits("EndedAsk", ended) == []
        assert (ended["state"], ended["result"]["text"]) == ("ended", "Hello.")
        assert live[-1] == ("ask.finished", {**live[-1][1], "result": ended["result"]})
        assert [data["seq"] for _, data in live] == list(range(1, len(live) + 1))
        assert await at.events(ask_id, "?after=2") == live[2:]
        assert await at.events(ask_id, "?after=999") == []


@pytest.mark.requirement("NET-1b")
async def test_the_same_request_with_the_same_key_is_one_ask(tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        together = [asyncio.create_task(at.ask(TEXT, **KEYED)) for _ in range(5)]
        streamed = asyncio.create_task(at.ask(TEXT, **KEYED, **EVENTS))
        await at.upstream.received(1)
        at.go_on.set()
        answers = [(await each).json() for each in together]
        assert all(each == answers[0] for each in answers)
        assert frames((await streamed).text)[-1][1]["result"] == answers[0]
        assert (await at.ask(TEXT, **KEYED)).json() == answers[0]
        assert code(await at.ask({"text": "other"}, **KEYED)) == (422, "request.key_reused")
        assert len(at.upstream.requests) == 1


@pytest.mark.requirement("NET-1b")
async def test_a_result_that_made_room_is_gone_for_its_owner_and_admins_and_runs_no_second_time() -> (
    None
):
    ran: list[str] = []

    async def ask(request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        ran.append(ask_id)
        return finish(AskResult(ask_id, "answered", "x"), emit)

    door = StubDoor(keyring=keyring_of(ann={}, bob={}, boss={"roles": ("admin",)}))
    door.kept = KeptAsks(ask, Bounds(ended=1))
    async with calling(door) as client:

        async def post(key: str) -> httpx2.Response:
            headers = {**bearer("ann"), "idempotency-key": key}
            return await client.post("/v1/ask", json=TEXT, headers=headers)

        gone, _ = (await post("one")).json()["ask_id"], await post("two")
        assert code(await post("one")) == (410, "request.gone")
        assert len(ran) == 2
        told = {"ann": (410, "request.gone"), "boss": (410, "request.gone")}
        for who in ("ann", "bob", "boss"):
            for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events")):
                answer = await client.request(method, f"/v1/asks/{gone}{path}", headers=bearer(who))
                assert code(answer) == told.get(who, (404, "request.unknown_ask"))
    await door.kept.aclose()


@pytest.mark.parametrize("bad", ["", " ", "a b", "x" * 256, "é"])
async def test_a_key_that_cannot_be_used_is_refused(bad: str) -> None:
    async with calling() as client:
        headers = [("idempotency-key", bad.encode("latin-1"))]
        answer = await client.post("/v1/ask", json=TEXT, headers=headers)  # type: ignore[arg-type]
    assert code(answer) == (400, "request.invalid")


@pytest.mark.requirement("NET-1b")
async def test_nobody_else_sees_or_touches_an_ask_but_an_admin(tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        ask_id = (await at.ask()).json()["ask_id"]
        await at.upstream.received(1)
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/events"), ("POST", "/confirm")):
            body = {"json": {"declined": ["t"]}} if method == "POST" else {}
            told = [
                await at.client.request(
                    method, f"/v1/asks/{wanted}{path}", headers=bearer("bob"), **body
                )
                for wanted in (ask_id, "ask_unknown")
            ]
            assert [code(each) for each in told] == [(404, "request.unknown_ask")] * 2
        lists = [(await at.get("", who)).json()["asks"] for who in ("ann", "bob", "boss")]
        assert [len(each) for each in lists] == [1, 0, 1]
        assert (await at.get(f"/{ask_id}", "boss")).status_code == 200
        everything = await at.client.delete("/v1/asks/all", headers=bearer("ann"))
        assert code(everything) == (403, "auth.admin_needed")
        mine = await at.client.delete(f"/v1/asks/{ask_id}", headers=bearer("ann"))
        assert mine.json() == {"cancelled": 1}
        error = (await at.ended(ask_id))["result"]["error"]
        assert (error["code"], error["message"]) == (
            "cancelled.caller",
            "its caller ended this ask",
        )
        again = await at.client.delete(f"/v1/asks/{ask_id}", headers=bearer("ann"))
        assert again.json() == {"cancelled": 0}


BY_CALLER = ("cancelled.caller", "its caller ended this ask")
BY_OPERATOR = ("cancelled.operator", "an operator ended this ask")


@pytest.mark.requirement("NET-1b")
@pytest.mark.parametrize(
    ("owner", "who", "query", "told"),
    [
        ("boss", "boss", "", BY_CALLER),
        ("ann", "boss", "", BY_OPERATOR),
        ("boss", "boss", "?reason=stuck", ("cancelled.operator", "stuck")),
        ("ann", "ann", "?reason=stuck", ("cancelled.caller", "stuck")),
    ],
)
async def test_who_ends_an_ask_of_its_own_without_a_reason_is_its_caller_and_no_operator(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    owner: str,
    who: str,
    query: str,
    told: tuple[str, str],
) -> None:
    async with here(tmp_path) as at:
        ask_id = (await at.ask(who=owner)).json()["ask_id"]
        await at.upstream.received(1)
        answer = await at.client.delete(f"/v1/asks/{ask_id}{query}", headers=bearer(who))
        assert answer.json() == {"cancelled": 1}
        kept = at.runtime.kept.find(ask_id)
        assert kept is not None
        error = (await kept.finished()).error
    assert error is not None
    assert (error.code, error.message) == told
    warned = [each.levelname for each in caplog.records if "told to end" in each.getMessage()]
    assert warned == (["WARNING"] if told[0] == "cancelled.operator" else [])


@pytest.mark.parametrize("headers", [KEYED, {**KEYED, **EVENTS}], ids=["json", "stream"])
async def test_a_client_that_leaves_does_not_disturb_an_ask_with_a_key(
    headers: dict[str, str],
) -> None:
    ask = BlockedAsk()
    door = StubDoor(ask)
    async with serving(door) as served:
        asking = asyncio.create_task(served.client.post("/v1/ask", json=TEXT, headers=headers))
        await ask.started.wait()
        asking.cancel()
        await asyncio.wait([asking])
        assert (await served.client.get("/healthz")).status_code == 200
        assert not ask.cancelled.is_set()
        again = asyncio.create_task(served.client.post("/v1/ask", json=TEXT, headers=headers))
        await asyncio.sleep(0)
        served.stop.set()
        await asyncio.wait([again])
    await door.kept.aclose()
    assert ask.cancelled.is_set()


async def test_of_an_ask_that_belongs_to_its_connection_no_events_are_kept(tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        asking = asyncio.create_task(at.ask(TEXT))
        await at.upstream.received(1)
        [running] = at.runtime.running.list()
        assert code(await at.get(f"/{running.ask_id}/events")) == (409, "request.not_kept")
        at.go_on.set()
        assert (await asking).status_code == 200
        assert code(await at.get(f"/{running.ask_id}")) == (404, "request.unknown_ask")


@pytest.mark.requirement("NET-1b")
async def test_a_reader_that_comes_back_goes_on_after_the_event_it_saw_last(tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        at.go_on.set()
        ask_id = (await at.ask()).json()["ask_id"]
        await at.ended(ask_id)
        everything = await at.events(ask_id)

        async def since(seen: str, query: str = "") -> httpx2.Response:
            headers = {**bearer("ann"), "last-event-id": seen}
            return await at.client.get(f"/v1/asks/{ask_id}/events{query}", headers=headers)

        raw = (await since("")).text
        numbers = [line for line in raw.splitlines() if line.startswith("id: ")]
        assert numbers == [f"id: {data['seq']}" for _, data in everything]
        for query in ("", "?after=0", "?after=1"):
            assert frames((await since("2", query)).text) == everything[2:]
        assert frames((await since("2", "?after=3")).text) == everything[3:]
        assert code(await since("x")) == (400, "request.invalid")


@pytest.mark.parametrize(
    "query", ["?after=x", "?after=-1", "?after=", "?after=1&after=2", "?since=1"]
)
async def test_a_wrong_place_to_go_on_from_is_refused(query: str, tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        ask_id = (await at.ask()).json()["ask_id"]
        assert code(await at.get(f"/{ask_id}/events{query}")) == (400, "request.invalid")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_completion_that_its_caller_ended_is_not_to_be_asked_again(
    stream: bool, tmp_path: Path
) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": stream}
    async with here(tmp_path) as at:
        asking = asyncio.create_task(
            at.client.post("/v1/chat/completions", json=body, headers=bearer("ann"))
        )
        await at.upstream.received(1)
        [running] = at.runtime.running.list()
        await at.client.delete(f"/v1/asks/{running.ask_id}", headers=bearer("ann"))
        answer = await asking
    assert code(answer) == (409, "cancelled.caller")
    assert answer.headers["x-should-retry"] == "false"


async def test_a_restart_forgets_every_ask(tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        at.go_on.set()
        ask_id = (await at.ask()).json()["ask_id"]
        await at.ended(ask_id)
    async with here(tmp_path) as at:
        assert code(await at.get(f"/{ask_id}")) == (404, "request.unknown_ask")


@pytest.mark.requirement("NET-1b")
@pytest.mark.requirement("RTE-9")
async def test_consent_goes_on_where_the_ask_waits_and_counts_once(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.write("files.drop")
    replies = [calls(("files.drop", {"n": 1})), says("Gone.")]
    async with home.open(*replies, extra=keys()) as runtime, calling(runtime) as client:
        at = Here(runtime, client, Upstream([]))
        ask_id = (await at.ask()).json()["ask_id"]
        waiting = await at.ended(ask_id)
        assert waiting["result"]["outcome"] == "needs_confirmation"
        yes = {"confirmations": [waiting["result"]["pending"][0]["token"]]}

        async def confirm(body: Any, who: str = "ann", path: str = ask_id) -> httpx2.Response:
            return await client.post(f"/v1/asks/{path}/confirm", json=body, headers=bearer(who))

        assert code(await confirm(yes, "boss")) == (404, "request.unknown_ask")
        assert code(await confirm({})) == (400, "request.invalid")
        foreign = {"confirmations": ["confirm_x_y"]}
        assert code(await confirm(foreign)) == (409, "confirmation.invalid")
        assert home.arguments == []
        done = (await confirm(yes)).json()
        assert (done["outcome"], done["text"], home.arguments) == ("answered", "Gone.", [{"n": 1}])
        assert done["new_messages"][0] == {"role": "user", "content": "Yes."}
        assert code(await confirm(yes)) == (409, "confirmation.invalid")
        assert home.arguments == [{"n": 1}]


async def test_an_ask_that_waits_for_nothing_cannot_be_confirmed(tmp_path: Path) -> None:
    async with here(tmp_path) as at:
        ask_id = (await at.ask()).json()["ask_id"]
        for _ in range(2):
            body = json.dumps({"declined": ["t"]})
            headers = {**bearer("ann"), "content-type": "application/json"}
            told = await at.client.post(f"/v1/asks/{ask_id}/confirm", content=body, headers=headers)
            assert code(told) == (409, "request.nothing_to_confirm")
            at.go_on.set()
            await at.ended(ask_id)
