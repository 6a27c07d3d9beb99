"""Rates and budgets of principals and users, at every door alike (NET-5)."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_runtime import AskRequest, Identity, Runtime
from session_runtime.app.mqtt import RuntimeDoor
from session_runtime.limits import Limits
from session_runtime.registry.keyring import hash_of
from session_runtime.testing.replies import Pace, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import Principal
from tests.support import chat_profile, opened
from tests.transports.configured import code
from tests.transports.mqtt.memory import asking, body_of, served
from tests.transports.stub import EVENTS, bearer, calling, key_of

PLAIN = '[skills]\nprefetch_tools = []\n[mqtt]\nprefix = "rt"\n'
USAGE = {"prompt_tokens": 90, "completion_tokens": 20, "total_tokens": 110}
KEYS = "".join(
    f'[http.keys.{name}]\nhash = "{hash_of(key_of(name))}"\nact_for = ["*"]\n'
    for name in ("ann", "bob")
)


@dataclass
class Here:
    runtime: Runtime
    client: httpx2.AsyncClient
    upstream: Upstream
    config: str
    file: Path

    async def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        return await self.client.post(path, json=body, headers=headers)

    async def ask(self, user: str | None = None, **headers: str) -> httpx2.Response:
        body: dict[str, Any] = {"text": "hi"}
        if user is not None:
            body["identity"] = {"user": user}
        return await self.post("/v1/ask", body, **headers)

    async def edit(self, more: str) -> None:
        self.file.write_text(self.config + more, "utf-8")
        await self.runtime.live.reload("watch")


@asynccontextmanager
async def here(folder: Path, more: str, replies: int = 9) -> AsyncIterator[Here]:
    async with asyncio.timeout(60), Upstream([reply_text("Yes.", usage=USAGE)] * replies) as up:
        config = PLAIN + chat_profile(up.base_url)
        async with opened(folder, config + more) as runtime, calling(runtime) as client:
            yield Here(runtime, client, up, config, folder / "config.toml")


async def in_process(at: Here) -> str | None:
    result = await at.runtime.ask(AskRequest("hi", identity=Identity(user="u")))
    return result.error and result.error.code


async def over_http(at: Here) -> str | None:
    return _code(await at.ask("u"))


async def as_events(at: Here) -> str | None:
    answer = await at.ask("u", **EVENTS)
    return _code(answer) if answer.status_code != 200 else None


async def detached(at: Here) -> str | None:
    return _code(
        await at.post("/v1/ask", {"text": "hi", "detach": True, "identity": {"user": "u"}})
    )


async def completed(at: Here) -> str | None:
    body = {"messages": [{"role": "user", "content": "hi"}], "user": "u"}
    answer = await at.post("/v1/chat/completions", body)
    error = answer.json().get("error")
    return None if error is None else str(error["session_runtime"]["code"])


async def over_mqtt(at: Here) -> str | None:
    message = asking()
    body = json.dumps({"text": "hi", "identity": {"user": "u"}}).encode()
    async with served(RuntimeDoor(at.runtime)) as door:  # type: ignore[arg-type]
        *_, last = await door.send(replace(message, body=body))
    error = body_of(last).get("error")
    return None if error is None else str(error["code"])


def _code(answer: httpx2.Response) -> str | None:
    error = answer.json().get("error") if answer.status_code != 200 else None
    return None if error is None else str(error["code"])


DOORS = [in_process, over_http, as_events, detached, completed, over_mqtt]


@pytest.mark.requirement("NET-5c")
@pytest.mark.parametrize("first", DOORS, ids=lambda door: door.__name__)
async def test_every_door_counts_for_every_other(
    first: Callable[[Here], Awaitable[str | None]], tmp_path: Path
) -> None:
    async with here(tmp_path, "[limits]\nuser_asks_per_minute = 1\n") as at:
        assert await first(at) is None
        assert [await door(at) for door in DOORS] == ["busy.rate"] * len(DOORS)
        assert (await at.ask("other")).status_code == 200
        assert len(at.upstream.requests) == 2


@pytest.mark.requirement("NET-5c")
async def test_who_asks_too_often_is_told_when_to_come_back_and_others_are_not_harmed(
    tmp_path: Path,
) -> None:
    async with here(tmp_path, KEYS + "[limits]\nasks_per_minute = 2\n") as at:
        answers = [await at.ask(**bearer("ann")) for _ in range(3)]
        assert [each.status_code for each in answers] == [200, 200, 429]
        assert code(answers[2]) == (429, "busy.rate")
        assert 1 <= int(answers[2].headers["retry-after"]) <= 30
        assert (await at.ask(**bearer("bob"))).status_code == 200


@pytest.mark.requirement("NET-5c")
@pytest.mark.requirement("NET-2d")
async def test_tokens_of_a_user_of_a_principal_are_counted_when_its_ask_ends(
    tmp_path: Path,
) -> None:
    async with here(tmp_path, KEYS + "[limits]\nuser_tokens_per_day = 100\n") as at:
        assert (await at.ask("u", **bearer("ann"))).status_code == 200
        refused = await at.ask("u", **bearer("ann"))
        assert code(refused) == (429, "busy.budget")
        assert 9_000 < int(refused.headers["retry-after"]) <= 11 * 864
        others = [await at.ask("v", **bearer("ann")), await at.ask("u", **bearer("bob"))]
        assert [each.status_code for each in others] == [200, 200]


@pytest.mark.requirement("NET-5c")
async def test_a_budget_that_is_used_up_has_its_own_name_for_clients_of_openai(
    tmp_path: Path,
) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    async with here(tmp_path, "[limits]\ntokens_per_day = 100\n") as at:
        answers = [await at.post("/v1/chat/completions", body) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 429]
    error = answers[1].json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "insufficient_quota")
    assert answers[1].headers["x-should-retry"] == "false"


@pytest.mark.requirement("NET-5c")
@pytest.mark.requirement("CFG-6")
async def test_an_edit_of_limits_acts_on_the_next_ask_and_a_key_s_own_wins(
    tmp_path: Path,
) -> None:
    async with here(tmp_path, "[limits]\nasks_per_minute = 1\n") as at:
        first = [(await at.ask()).status_code for _ in range(2)]
        await at.edit("[limits]\nasks_per_minute = 2\n")
        second = [(await at.ask()).status_code for _ in range(2)]
        own = "[http.keys.own]\n" + f'hash = "{hash_of(key_of("own"))}"\nasks_per_minute = 3\n'
        await at.edit("[limits]\nasks_per_minute = 1\n" + own)
        third = [(await at.ask(**bearer("own"))).status_code for _ in range(4)]
    assert (first, second, third) == ([200, 429], [200, 429], [200, 200, 200, 429])


@pytest.mark.requirement("NET-5c")
async def test_an_embedding_program_states_the_limits_of_its_principals(tmp_path: Path) -> None:
    tenant = Principal("tenant", limits=Limits(asks_per_minute=1))
    async with here(tmp_path, "") as at:
        results = [await at.runtime.ask(AskRequest("hi", principal=tenant)) for _ in range(2)]
    assert [each.outcome for each in results] == ["answered", "failed"]
    assert results[1].error is not None
    assert (results[1].error.code, results[1].error.retryable) == ("busy.rate", True)


@pytest.mark.requirement("NET-5c")
async def test_a_user_that_has_as_many_asks_as_it_may_waits_and_others_do_not(
    tmp_path: Path,
) -> None:
    go_on = asyncio.Event()
    replies = [reply_text(f"{n}", pace=Pace(gate=go_on)) for n in range(3)]
    config = PLAIN + "[limits]\nuser_max_concurrent_asks = 1\n"
    async with (
        asyncio.timeout(60),
        Upstream(replies) as upstream,
        opened(tmp_path, config + chat_profile(upstream.base_url)) as runtime,
    ):
        asks = [
            asyncio.create_task(runtime.ask(AskRequest("hi", identity=Identity(user=user))))
            for user in ("ann", "ann", "bob")
        ]
        await upstream.received(2)
        states = {(each.user, each.state == "queued") for each in runtime.running.list()}
        assert states == {("ann", False), ("ann", True), ("bob", False)}
        go_on.set()
        assert [(await each).outcome for each in asks] == ["answered"] * 3


@pytest.mark.requirement("NET-5c")
async def test_what_is_refused_is_counted_by_its_code(tmp_path: Path) -> None:
    limits = "[limits]\nuser_asks_per_minute = 1\ntokens_per_day = 100\n"
    async with here(tmp_path, limits) as at:
        await at.ask("a")
        await at.ask("b")
        text = at.runtime.metrics()
    assert 'session_runtime_asks_refused_total{code="busy.budget"} 1' in text
    assert 'session_runtime_asks_refused_total{code="busy.rate"} 0' in text
    assert "session_runtime_limits_users 1" in text
    assert "session_runtime_asks_waiting 0" in text
