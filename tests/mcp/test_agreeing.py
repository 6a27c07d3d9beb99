"""Whatever a server does at the first question, a generation of the protocol that both speak is found."""

import json
import os
import signal
from pathlib import Path

import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.mcp.connection import Edges
from session_runtime.testing.mcp_servers.script import Script
from session_runtime.testing.replies import Pace, RawReply
from tests.mcp.peer import Peer, command, never_random, started
from tests.mcp.web import EVENTS, PLAIN, Web, reached, reply
from tests.models.clock import Clock


def methods(path: Path) -> list[str]:
    lines = path.read_text("utf-8").splitlines()
    return [json.loads(line)["method"] for line in lines]


@pytest.mark.requirement("RTE-1")
async def test_a_process_that_ends_at_the_question_for_the_newer_generation_joins_at_once(
    tmp_path: Path,
) -> None:
    log = tmp_path / "received"
    script = Script(era="handshake", dies_at=("server/discover",), received=str(log))
    async with started(command(script), tmp_path, Edges(jitter=never_random)) as it:
        health = it.connection.health
        assert (health.state, health.failures, health.error) == ("ready", 0, "")
        assert health.pid is not None
        os.kill(health.pid, signal.SIGKILL)
        await it.seen.until(lambda: it.connection.health.restarts == 1)
        await it.is_in("ready")
        assert await it.call("echo", text="again") == "again"
    assert methods(log).count("server/discover") == 1, "it is not asked that again"


@pytest.mark.requirement("RTE-1")
async def test_a_process_that_ends_whatever_it_is_asked_is_down_and_asked_both_ways(
    tmp_path: Path,
) -> None:
    log = tmp_path / "received"
    script = Script(dies_at=("server/discover", "initialize"), received=str(log))
    async with started(command(script), tmp_path, Edges(jitter=lambda: 1_000.0)) as it:
        health = it.connection.health
        assert (health.state, health.failures) == ("down", 1)
        assert health.error == "it exited with status 3"
    assert methods(log) == ["server/discover", "initialize"]


@pytest.mark.requirement("RTE-1")
async def test_a_server_that_hangs_after_the_question_is_shaken_hands_with_at_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    peer = Peer(answers={"server/discover": None, "initialize": None})
    edges = Edges(open_line=peer.line, jitter=never_random)
    async with started(McpServer(command="x"), Path(), edges, wait=False) as it:
        await peer.got("server/discover")
        clock.advance(4.1)
        await peer.got("initialize")
        clock.advance(6.1)
        await it.is_in("down")
        peer.received.clear()
        del peer.answers["initialize"]
        clock.advance(0.6)
        await it.is_in("ready")
        assert peer.methods()[0] == "initialize"


@pytest.mark.requirement("RTE-1")
async def test_a_stateless_server_is_found_also_where_the_handshake_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    peer = Peer(stateless=True, refusing=OSError("not yet"))
    edges = Edges(open_line=peer.line, jitter=never_random)
    async with started(McpServer(command="x", heartbeat_s=0), Path(), edges) as it:
        peer.refusing = None
        clock.advance(0.6)
        await it.is_in("ready")
        assert it.connection.health.protocol == "2026-07-28"
        assert peer.methods()[:2] == ["initialize", "server/discover"]


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize(
    "answer",
    [
        reply(500),
        reply(502, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "no"}}),
        reply(503, headers={"retry-after": "60"}),
        reply(429),
        reply(401),
        reply(200),
        reply(202),
        reply(204),
        RawReply((b"<html>",), headers={"content-type": "text/html"}),
        RawReply((b"x",), status=400, headers={**PLAIN, "content-encoding": "gzip"}),
        RawReply((b"",), headers=EVENTS),
        RawReply((b"data: {}\n\n",), headers=EVENTS),
        RawReply((b"",), pace=Pace(cut_after=0)),
        reply(200, {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete"}}),
    ],
)
async def test_an_http_server_whose_answer_to_the_question_is_of_no_use_is_shaken_hands_with(
    answer: RawReply,
) -> None:
    web = Web(Peer(), "none", replies={"server/discover": answer})
    async with reached(web) as it:
        assert (it.connection.health.state, it.connection.health.failures) == ("ready", 0)
        assert it.connection.health.protocol == "2025-11-25"
        assert await it.call("echo") == "done"


@pytest.mark.requirement("RTE-1")
async def test_a_server_that_refuses_everything_is_asked_each_question_once_per_attempt() -> None:
    web = Web(Peer(), replies={method: reply(401) for method in ("server/discover", "initialize")})
    async with reached(web) as it:
        assert (it.connection.health.state, it.connection.health.failures) == ("down", 1)
        assert "it does not accept the headers configured" in it.connection.health.error
        assert web.peer.methods() == ["server/discover", "initialize"]
