"""A connection is made, kept, made anew and ended, whatever its server does; time passes as tests say."""

import asyncio
import json
import logging
import os
import signal
from pathlib import Path

import pytest

from session_runtime.config.mcp import McpCredential, McpServer
from session_runtime.errors import TransientError
from session_runtime.mcp.base import Health
from session_runtime.mcp.callers import OWN
from session_runtime.mcp.connection import Connection, Edges, open_connection
from session_runtime.mcp.session import Wanted
from session_runtime.mcp.transport import Place
from session_runtime.testing.mcp_servers.script import Script
from tests.mcp.peer import (
    Kept,
    Peer,
    Seen,
    command,
    kept,
    never_random,
    started,
)
from tests.mcp.processes import state
from tests.models.clock import Clock
from tests.system.leftovers import nothing_left


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize(("stateless", "revision"), [(False, "2025-11-25"), (True, "2026-07-28")])
async def test_a_connection_finds_out_which_generation_of_the_protocol_its_server_speaks(
    stateless: bool, revision: str
) -> None:
    async with kept(Peer(stateless=stateless)) as it:
        health = Health("ready", 1_000.0, protocol=revision, server="peer", version="7")
        assert it.connection.health == health
        assert it.names() == ["echo"]


@pytest.mark.requirement("RTE-1")
async def test_a_generation_that_is_configured_is_not_probed_for() -> None:
    peer = Peer()
    async with kept(peer, protocol="handshake"):
        assert peer.methods()[0] == "initialize"
    other = Peer(stateless=True)
    async with kept(other, protocol="stateless"):
        assert other.methods()[:2] == ["server/discover", "tools/list"]


async def test_a_server_that_ignores_what_it_does_not_know_is_shaken_hands_with_in_time(
    clock: Clock,
) -> None:
    peer = Peer(answers={"server/discover": None})
    edges = Edges(open_line=peer.line, jitter=never_random)
    async with started(McpServer(command="x"), Path(), edges, wait=False) as it:
        await peer.got("server/discover")
        clock.advance(4.1)
        await it.connection.settled()
        assert it.connection.health.protocol == "2025-11-25"


@pytest.mark.requirement("RTE-7")
async def test_a_server_that_never_answers_is_given_up_after_its_time_and_tried_again(
    clock: Clock,
) -> None:
    peer = Peer(answers={"initialize": None})
    edges = Edges(open_line=peer.line, wall=lambda: 1_000.0, jitter=never_random)
    server = McpServer(command="x", connect_timeout_s=3.0, protocol="handshake")
    async with started(server, Path(), edges, wait=False) as it:
        await peer.got("initialize")
        assert it.connection.health.state == "connecting"
        clock.advance(3.1)
        await it.connection.settled()
        health = it.connection.health
        assert (health.state, health.failures, it.connection.listing) == ("down", 1, None)
        assert health.error == "it did not answer within 3 s (connect_timeout_s)"
        peer.answers.clear()
        clock.advance(0.6)
        await it.is_in("ready")


@pytest.mark.requirement("RTE-7")
async def test_a_server_that_never_lists_is_given_up_after_its_time(clock: Clock) -> None:
    peer = Peer(answers={"tools/list": None})
    edges = Edges(open_line=peer.line, jitter=never_random)
    server = McpServer(command="x", list_timeout_s=2.0)
    async with started(server, Path(), edges, wait=False) as it:
        await peer.got("tools/list")
        clock.advance(2.1)
        await it.connection.settled()
        assert "did not list its tools within 2 s" in it.connection.health.error


@pytest.mark.requirement("RTE-6")
async def test_waits_between_attempts_double_up_to_a_minute(clock: Clock) -> None:
    peer = Peer(refusing=OSError("nobody there"))
    waits = []
    async with kept(peer) as it:
        for attempt in range(1, 10):
            await it.is_in("down")
            wait = it.connection.health.retry_in_s
            assert wait is not None
            waits.append(round(wait, 1))
            assert it.connection.health.failures == peer.opened == attempt
            clock.advance(wait + 0.01)
            await it.seen.until(lambda: peer.opened > attempt)  # noqa: B023 - used at once
        assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
        assert it.connection.health.error == "nobody there"


@pytest.mark.requirement("RTE-6")
async def test_waits_are_random_parts_of_the_longest_and_begin_anew_after_good_times(
    clock: Clock,
) -> None:
    peer = Peer(refusing=OSError("nobody there"))
    edges = Edges(open_line=peer.line, jitter=lambda: 0.6)

    async def next_wait(it: Kept) -> float:
        attempts = peer.opened
        await it.is_in("down")
        wait = it.connection.health.retry_in_s
        assert wait is not None
        clock.advance(wait + 0.01)
        await it.seen.until(lambda: peer.opened > attempts)
        return round(wait, 1)

    async with started(McpServer(command="x", heartbeat_s=0), Path(), edges) as it:
        assert [await next_wait(it) for _ in range(3)] == [0.3, 0.6, 1.2]
        await it.is_in("down")
        peer.refusing = None
        assert await next_wait(it) == 2.4
        await it.is_in("ready")
        peer.hang_up()
        assert await next_wait(it) == 4.8, "it was not well for long enough"
        await it.is_in("ready")
        clock.advance(31)
        peer.hang_up()
        assert await next_wait(it) == 0.3


@pytest.mark.requirement("RTE-6")
async def test_the_end_of_a_connection_is_noticed_at_once_and_calls_are_refused_then() -> None:
    peer = Peer()
    async with kept(peer) as it:
        peer.hang_up()
        await it.is_in("down")
        with pytest.raises(TransientError) as caught:
            await it.call("echo")
        assert (caught.value.code, caught.value.may_have_run) == ("mcp.down", False)
        assert caught.value.retry_after_s is not None
        assert (it.names(), it.listing.stale) == (["echo"], True)


@pytest.mark.requirement("RTE-8")
async def test_a_call_that_nobody_reads_any_more_did_not_run() -> None:
    peer = Peer()
    async with kept(peer) as it:
        peer.stop_listening()
        with pytest.raises(TransientError) as caught:
            await it.call("echo")
        assert (caught.value.code, caught.value.may_have_run) == ("mcp.lost", False)


@pytest.mark.requirement("RTE-8")
async def test_a_call_to_a_process_that_is_dead_already_did_not_run(tmp_path: Path) -> None:
    async with started(command(Script()), tmp_path, Edges()) as it:
        pid = it.connection.health.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        while state(pid):
            os.sched_yield()  # the event loop must not see it before the call does
        with pytest.raises(TransientError) as caught:
            await it.call("echo", text="x")
        assert (caught.value.code, caught.value.may_have_run) == ("mcp.lost", False)


@pytest.mark.requirement("RTE-6")
async def test_a_connection_is_down_as_soon_as_it_is_lost_however_long_its_process_goes_on(
    tmp_path: Path,
) -> None:
    script = Script(tools=("close_output", "echo"), ignores=("eof",))
    async with started(command(script), tmp_path, Edges(jitter=never_random)) as it:
        pid = it.connection.health.pid
        assert pid is not None
        with pytest.raises(TransientError):
            await it.call("close_output")
        await it.seen.until(lambda: it.connection.health.state == "down")
        assert state(pid) not in ("Z", "")
        with pytest.raises(TransientError) as caught:
            await it.call("echo", text="x")
        assert (caught.value.code, caught.value.may_have_run) == ("mcp.down", False)
        assert it.connection.health.error == "the connection ended"


@pytest.mark.requirement("RTE-1")
async def test_a_hanging_server_holds_up_no_other(tmp_path: Path) -> None:
    hanging = command(Script(silent=("initialize", "server/discover")))
    with nothing_left():
        links = [
            Connection(Place(f"s{number}", tmp_path, tmp_path), server, lambda: None, Edges())
            for number, server in enumerate([hanging, command(Script()), command(Script())])
        ]
        for link in links:
            link.start()
        await asyncio.gather(*(link.settled() for link in links[1:]))
        assert [link.health.state for link in links] == ["connecting", "ready", "ready"]
        await asyncio.gather(*(link.aclose() for link in links))


@pytest.mark.requirement("RTE-6")
async def test_a_process_that_dies_is_down_at_once_and_started_again(tmp_path: Path) -> None:
    edges = Edges(jitter=lambda: 0.01)
    async with started(command(Script()), tmp_path, edges) as it:
        pid = it.connection.health.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await it.is_in("down")
        assert it.connection.health.error == "it was ended by SIGKILL"
        await it.is_in("ready")
        assert it.connection.health.pid not in (None, pid)
        assert await it.call("echo", text="again") == "again"


async def test_a_command_that_is_not_there_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    async with started(McpServer(command="no-such-program"), tmp_path, Edges()) as it:
        assert it.connection.health.state == "down"
        assert "'no-such-program' was not found by PATH" in it.connection.health.error


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
async def test_connections_end_cleanly_from_any_task_in_any_order(
    order: tuple[int, ...], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with nothing_left():
        links = [
            Connection(Place(f"s{number}", tmp_path, tmp_path), command(Script()), Seen(), Edges())
            for number in range(3)
        ]
        for link in links:
            link.start()
        await asyncio.gather(*(link.settled() for link in links))
        for number in order:
            await asyncio.create_task(links[number].aclose())
        assert {link.health.state for link in links} == {"stopped"}
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize("method", ["server/discover", "initialize", "tools/list", "tools/call"])
async def test_a_connection_ends_in_whatever_state_it_is(method: str) -> None:
    peer = Peer(answers={method: None})
    edges = Edges(open_line=peer.line, jitter=never_random)
    settings = McpServer(
        command="x", protocol="auto" if method == "server/discover" else "handshake"
    )
    async with started(settings, Path(), edges, wait=False) as it:
        call = None
        if method == "tools/call":
            await it.connection.settled()
            call = asyncio.create_task(it.call("echo"))
        await peer.got(method)
    if call is not None:
        with pytest.raises(TransientError) as caught:
            await call
        assert (caught.value.code, caught.value.may_have_run) == ("mcp.lost", True)


async def test_a_connection_ends_between_two_attempts_and_before_it_was_started() -> None:
    async with kept(Peer(refusing=OSError("nobody there"))) as it:
        await it.is_in("down")
    with nothing_left():
        connection = Connection(Place("x", Path(), Path()), McpServer(command="x"), Seen(), Edges())
        await connection.aclose()
        await connection.settled()


async def test_what_a_server_is_given_in_secret_stands_in_no_error() -> None:
    peer = Peer(refusing=OSError("the key hunter2-hunter2 is wrong\x1b[2J\nreally"))
    async with kept(peer, env={"KEY": "hunter2-hunter2"}) as it:
        assert it.connection.health.error == r"the key *** is wrong\x1b[2J really"


@pytest.mark.requirement("RTE-5")
async def test_of_the_worst_list_that_a_process_can_give_the_good_tools_stay(
    tmp_path: Path,
) -> None:
    bad = ("null_schema", "string_root", "url_ref", "deep_schema", "no_object", "long_name")
    async with started(command(Script(tools=(*bad, "echo"))), tmp_path, Edges()) as it:
        assert it.names() == ["echo"]
        assert len(it.listing.refused) == 8
        assert await it.call("echo", text="still") == "still"


@pytest.mark.requirement("RTE-2")
async def test_a_connection_for_a_credential_has_its_variables_over_those_of_the_server(
    tmp_path: Path,
) -> None:
    credential = McpCredential(roles=("staff",), env={"NAME": "of the staff", "OWN": "own"})
    script = Script(tools=("environ",))
    server = command(script, env={"NAME": "of the server"}, credentials={"staff": credential})
    seen: list[dict[str, str]] = []
    with nothing_left():
        for name in (OWN, "staff"):
            wanted = Wanted("srv", name, server, tmp_path, tmp_path, "key")
            link = open_connection(wanted, lambda: None)
            link.start()
            await link.settled()
            seen.append(json.loads(str(await link.call("environ", {}, "k", lambda *_: None))))
            await link.aclose()
    assert [(env["NAME"], env.get("OWN")) for env in seen] == [
        ("of the server", None),
        ("of the staff", "own"),
    ]
