"""Consent to calls of a kept ask while it is about to end, and what is told to whom of any ask."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import AskRequest, AskResult
from session_runtime.ask.kept_asks import KeptAsks
from session_runtime.ask.lengths import chars_of_request
from session_runtime.types import AskFinished, ConfirmationRequired, PendingCall
from tests.transports.asking import DETACHED, here
from tests.transports.configured import code
from tests.transports.stub import TEXT, Emit, StubDoor, bearer, calling, keyring_of

WAITS = PendingCall("token", "files.drop", {"n": 1}, "c", 9.5)


@dataclass
class Asks:
    """The first ask gives out a token, and ends when ``go_on`` is set; the next ones use it."""

    waiting: AskResult = field(
        default_factory=lambda: AskResult("a", "needs_confirmation", pending=(WAITS,))
    )
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[AskRequest] = field(default_factory=list)
    chars: list[int] = field(default_factory=list)

    async def __call__(self, request: AskRequest, emit: Emit, ask_id: str, chars: int) -> AskResult:
        self.asked.append(request)
        self.chars.append(chars)
        result = AskResult("b", "answered", "Gone.")
        if len(self.asked) == 1:
            emit(ConfirmationRequired(ask_id=ask_id, seq=1, pending=WAITS))
            await self.go_on.wait()
            result = self.waiting
        emit(AskFinished(ask_id=ask_id, seq=2, result=result))
        return result


@dataclass
class Waiting:
    """An ask of ann's that has given out its token, and has not ended."""

    client: httpx2.AsyncClient
    asks: Asks
    ask_id: str

    async def confirm(self, who: str = "ann", **body: Any) -> httpx2.Response:
        path = f"/v1/asks/{self.ask_id}/confirm"
        given = body or {"confirmations": ["token"], "detach": True}
        return await self.client.post(path, json=given, headers=bearer(who))


@asynccontextmanager
async def waiting(asks: Asks) -> AsyncIterator[Waiting]:
    door = StubDoor(keyring=keyring_of(ann={}, bob={}, boss={"roles": ("admin",)}))
    door.kept = KeptAsks(asks)
    async with asyncio.timeout(60), calling(door) as client:
        accepted = await client.post("/v1/ask", json=DETACHED, headers=bearer("ann"))
        yield Waiting(client, asks, accepted.json()["ask_id"])
    await door.kept.aclose()


@pytest.mark.requirement("NET-1b")
@pytest.mark.requirement("RTE-9")
async def test_consent_that_comes_before_the_ask_has_ended_counts_when_it_has() -> None:
    async with waiting(Asks()) as ask:
        confirming = asyncio.create_task(ask.confirm())
        for _ in range(5):
            await asyncio.sleep(0)
        assert (confirming.done(), len(ask.asks.asked)) == (False, 1)
        ask.asks.go_on.set()
        assert (await confirming).status_code == 202
        assert [each.confirmations for each in ask.asks.asked] == [(), ("token",)]
        assert ask.asks.chars == [*map(chars_of_request, ask.asks.asked)]


@pytest.mark.requirement("RTE-9")
async def test_a_token_that_a_running_ask_has_not_given_out_is_refused_at_once() -> None:
    async with waiting(Asks()) as ask:
        for body in ({"confirmations": ["token", "other"]}, {"declined": ["other"]}):
            assert code(await ask.confirm(**body)) == (409, "request.nothing_to_confirm")
        for who in ("bob", "boss"):
            assert code(await ask.confirm(who)) == (404, "request.unknown_ask")
        assert len(ask.asks.asked) == 1


@pytest.mark.requirement("RTE-9")
async def test_consent_to_an_ask_that_ends_otherwise_runs_nothing() -> None:
    async with waiting(Asks(AskResult("a", "cancelled"))) as ask:
        confirming = asyncio.create_task(ask.confirm())
        for _ in range(5):
            await asyncio.sleep(0)
        ask.asks.go_on.set()
        assert code(await confirming) == (409, "request.nothing_to_confirm")
        assert len(ask.asks.asked) == 1


@pytest.mark.requirement("NET-1b")
async def test_what_owner_admin_and_others_are_told_of_an_ask(tmp_path: Path) -> None:
    """For the owner, another principal and an admin, in this order."""
    unknown = 404
    expected = {
        "of its connection": {"GET": (200, unknown, 200), "EVENTS": (409, unknown, 409)},
        "ended": {"GET": (200, unknown, 200), "EVENTS": (200, unknown, 200)},
    }
    confirmed = {
        "of its connection": (409, unknown, 409),
        "running": (409, unknown, unknown),
        "ended": (409, unknown, unknown),
    }
    async with here(tmp_path, texts=("a", "b")) as at:

        async def told(ask_id: str, what: str) -> tuple[int, ...]:
            answers = []
            for who in ("ann", "bob", "boss"):
                method = {"EVENTS": "GET", "CONFIRM": "POST"}.get(what, what)
                path = {"EVENTS": "/events", "CONFIRM": "/confirm"}.get(what, "")
                body = {"json": {"declined": ["t"]}} if what == "CONFIRM" else {}
                url = f"/v1/asks/{ask_id}{path}"
                answers.append(await at.client.request(method, url, headers=bearer(who), **body))
            return tuple(each.status_code for each in answers)

        attached = asyncio.create_task(at.ask(TEXT))
        await at.upstream.received(1)
        [running] = at.runtime.running.list()
        for what, statuses in expected["of its connection"].items():
            assert await told(running.ask_id, what) == statuses
        assert await told(running.ask_id, "CONFIRM") == confirmed["of its connection"]
        ask_id = (await at.ask(DETACHED)).json()["ask_id"]
        assert await told(ask_id, "CONFIRM") == confirmed["running"]
        at.go_on.set()
        await asyncio.gather(attached, at.ended(ask_id))
        for what, statuses in expected["ended"].items():
            assert await told(ask_id, what) == statuses
        assert await told(ask_id, "CONFIRM") == confirmed["ended"]
        assert await told(ask_id, "DELETE") == (200, unknown, 200)
