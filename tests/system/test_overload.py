"""Far more asks than there is room for: refused at once by every door, with when to come back (NET-5)."""

import asyncio
import socket
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from session_runtime.testing.replies import Pace, reply_text
from session_runtime.testing.upstream import Upstream
from tests.support import chat_profile
from tests.system.test_daemon import Daemon, daemon
from tests.transports.stub import EVENTS

ROOM = 4
TIMES = 10
HELD = 200
"""More connections than a daemon with so much room takes."""

COMPLETION = {"messages": [{"role": "user", "content": "hi"}]}
WAYS = (
    ("/v1/ask", {"text": "hi"}, {}),
    ("/v1/ask", {"text": "hi"}, EVENTS),
    ("/v1/ask", {"text": "hi", "detach": True}, {}),
    ("/v1/chat/completions", COMPLETION, {}),
    ("/v1/chat/completions", {**COMPLETION, "stream": True}, {}),
)


async def refusals(client: httpx2.AsyncClient, running: Daemon) -> set[tuple[int, str, str]]:
    """What ten times as many asks come to as there is room for, by every way in."""
    answers = await asyncio.gather(
        *(
            client.post(f"{running.url}{path}", json=body, headers=headers)
            for path, body, headers in WAYS * (ROOM * TIMES // len(WAYS))
        )
    )
    return {
        (answer.status_code, answer.headers["retry-after"], answer.headers["content-type"])
        for answer in answers
    }


@pytest.mark.requirement("NET-5a")
async def test_a_flood_is_refused_without_work_and_leaves_who_was_let_in_alone(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    replies = [reply_text("sun", pace=Pace(gate=gate))] * (2 * ROOM)
    async with (
        Upstream(replies) as upstream,
        httpx2.AsyncClient(trust_env=False, timeout=60) as client,
        asyncio.timeout(60),
    ):
        config = tmp_path / "config.toml"
        room = f"[runtime]\nmax_concurrent_asks = {ROOM}\n[skills]\nprefetch_tools = []\n"
        config.write_text(room + chat_profile(upstream.base_url), encoding="utf-8")
        async with daemon(config) as running:

            async def ask() -> str:
                answer = await client.post(f"{running.url}/v1/ask", json={"text": "hi"})
                return str(answer.json()["text"])

            let_in = [asyncio.create_task(ask()) for _ in range(ROOM)]
            await upstream.received(ROOM)
            for _ in range(3):
                assert await refusals(client, running) == {(503, "1", "application/json")}
            status = (await client.get(f"{running.url}/v1/status")).json()
            assert (len(upstream.requests), status["asks"]) == (ROOM, ROOM)
            gate.set()
            assert await asyncio.gather(*let_in) == ["sun"] * ROOM
            assert await asyncio.gather(*(ask() for _ in range(ROOM))) == ["sun"] * ROOM


@pytest.mark.requirement("NET-5a")
async def test_a_flood_of_connections_is_answered_before_anything_of_it_is_read(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.toml"
    room = f"[runtime]\nmax_concurrent_asks = {ROOM}\nmax_waiting_asks_in_all = {ROOM}\n"
    config.write_text(room, encoding="utf-8")
    async with (
        daemon(config) as running,
        httpx2.AsyncClient(trust_env=False, timeout=60) as client,
        asyncio.timeout(60),
    ):
        port = int(running.url.rpartition(":")[2])
        with ExitStack() as held:
            for _ in range(HELD):
                held.enter_context(socket.create_connection(("127.0.0.1", port)))
            many = await asyncio.gather(
                *(client.post(f"{running.url}/v1/ask", json={"text": "hi"}) for _ in range(20))
            )
        answers = {
            (each.status_code, each.json()["error"]["code"], each.headers["retry-after"])
            for each in many
        }
        assert answers == {(503, "busy.connections", "1")}
        while (await client.get(f"{running.url}/healthz")).status_code != 200:
            pass  # the daemon has yet to notice that they are gone
        good = await client.post(f"{running.url}/v1/ask", json={"text": "hi"})
        assert good.status_code == 200
