"""While there is a connection its list is kept fresh, and a server that shows no life is noticed."""

import asyncio
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from session_runtime.errors import PermanentError
from session_runtime.mcp import unasked
from session_runtime.mcp.connection import Edges
from session_runtime.testing.mcp_servers.script import Script
from tests.mcp.peer import (
    META,
    Json,
    Peer,
    Refusal,
    command,
    kept,
    never,
    started,
    tool,
    turns,
)
from tests.models.clock import Clock


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.mark.requirement("RTE-4")
@pytest.mark.parametrize("stateless", [False, True])
async def test_tools_that_come_and_go_are_noticed_when_the_server_says_so(
    tmp_path: Path, stateless: bool
) -> None:
    era = "stateless" if stateless else "handshake"
    script = Script(era=era, tools=("echo", "change_list"), next_tools=("add",))
    async with started(command(script), tmp_path, Edges()) as it:
        await it.call("echo", text="x")
        await it.call("change_list")
        await it.seen.until(lambda: it.names() == ["add"])
        with pytest.raises(PermanentError) as caught:
            await it.call("echo", text="x")
        assert caught.value.code == "mcp.tool_not_found"


@pytest.mark.requirement("RTE-4")
async def test_a_flood_of_changes_is_answered_by_few_lists_and_the_last_one_counts(
    clock: Clock,
) -> None:
    peer = Peer()
    gate = asyncio.Event()

    async def slow_list(_: Json) -> Json:
        seen = list(peer.tools)
        await gate.wait()
        return {"tools": seen}

    async with kept(peer) as it:
        peer.answers["tools/list"] = slow_list
        for _ in range(50):
            await peer.say_that_the_list_changed()
        await peer.got("tools/list", 2)
        peer.tools = [tool("newest")]
        await peer.say_that_the_list_changed()
        await turns()
        gate.set()
        await it.seen.until(lambda: it.names() == ["echo"])
        await turns()
        clock.advance(1.1)
        await it.seen.until(lambda: it.names() == ["newest"])
        assert peer.methods().count("tools/list") == 3


@pytest.mark.requirement("RTE-4")
async def test_a_server_that_never_stops_telling_of_changes_is_listed_ever_more_rarely(
    clock: Clock,
) -> None:
    peer = Peer()

    async def endless(_: Json) -> Json:
        await peer.say_that_the_list_changed()
        return {"tools": peer.tools}

    async def lists_within(seconds: int) -> int:
        before = peer.methods().count("tools/list")
        for _ in range(10 * seconds):
            clock.advance(0.1)
            await turns()
        return peer.methods().count("tools/list") - before

    async with kept(peer, heartbeat_s=0, refresh_ttl_s=0) as it:
        peer.answers["tools/list"] = endless
        await peer.say_that_the_list_changed()
        await turns()
        assert peer.methods().count("tools/list") == 2, "the first one is heeded at once"
        assert [await lists_within(15), await lists_within(50)] == [4, 2]
        before = peer.methods().count("tools/list")
        await it.connection.refresh()
        assert peer.methods().count("tools/list") == before + 1, "who asks for it gets it at once"
        del peer.answers["tools/list"]
        clock.advance(61)
        await turns()
        before = peer.methods().count("tools/list")
        clock.advance(121)
        await turns()
        await peer.say_that_the_list_changed()
        await turns()
        assert peer.methods().count("tools/list") == before + 1, "it was quiet for long enough"
        await peer.say_that_the_list_changed()
        assert await lists_within(2) == 1, "pauses begin anew"


@pytest.mark.requirement("RTE-4")
async def test_attempts_to_list_anew_grow_rarer_until_one_succeeds_and_then_begin_anew(
    clock: Clock,
) -> None:
    peer = Peer()

    async def broken(_: Json) -> Json:
        return {"tools": "none"}

    async def next_attempt_s() -> int:
        before, waited = peer.methods().count("tools/list"), 0
        while peer.methods().count("tools/list") == before:
            clock.advance(1)
            waited += 1
            await turns()
        return waited

    async with kept(peer, heartbeat_s=0, refresh_ttl_s=0) as it:
        peer.answers["tools/list"] = broken
        await it.connection.refresh()
        assert [await next_attempt_s() for _ in range(5)] == [1, 1, 2, 4, 8]
        del peer.answers["tools/list"]
        await it.connection.refresh()
        peer.answers["tools/list"] = broken
        await it.connection.refresh()
        assert await next_attempt_s() == 1


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(
    "noise",
    [
        {"method": "notifications/message", "params": {"level": "info", "data": "x"}},
        {"id": 7_000, "method": "ping"},
        {"id": 7_000, "result": {}},
    ],
)
async def test_a_server_that_says_too_much_unasked_is_not_listened_to_any_longer(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, noise: Json
) -> None:
    monkeypatch.setattr(unasked, "MOST_AT_ONCE", 50)
    peer = Peer()
    async with kept(peer, heartbeat_s=0) as it:
        for _ in range(3):
            for _ in range(40):
                await peer.say(noise)
            await turns()
            clock.advance(1)
        assert it.connection.health.state == "ready"
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            for _ in range(60):
                await peer.say(noise)
        await it.is_in("down")
        assert "it said more than 200 things a second unasked" in it.connection.health.error


@pytest.mark.requirement("RTE-4")
async def test_all_who_want_a_fresh_list_meanwhile_share_the_next_one() -> None:
    peer = Peer()
    async with kept(peer) as it:
        peer.tools = [tool("fresh")]
        await asyncio.gather(*(it.connection.refresh() for _ in range(20)))
        assert it.names() == ["fresh"]
        assert peer.methods().count("tools/list") == 2


@pytest.mark.requirement("RTE-4")
async def test_a_list_that_grows_old_is_fetched_anew(clock: Clock) -> None:
    peer = Peer()
    async with kept(peer, heartbeat_s=0, refresh_ttl_s=100.0) as it:
        clock.advance(99)
        await turns()
        assert peer.methods().count("tools/list") == 1
        peer.tools = [tool("new")]
        clock.advance(1.5)
        await it.seen.until(lambda: it.names() == ["new"])


@pytest.mark.requirement("RTE-4")
async def test_a_server_can_shorten_the_age_of_its_list_but_not_below_a_second(
    clock: Clock,
) -> None:
    peer = Peer(stateless=True, ttl_ms=10)
    async with kept(peer, heartbeat_s=0):
        clock.advance(0.9)
        await turns()
        assert peer.methods().count("tools/list") == 1
        clock.advance(0.2)
        await peer.got("tools/list", 2)


@pytest.mark.requirement("RTE-4")
async def test_a_failed_refresh_keeps_the_old_list_marked_stale_until_one_succeeds(
    clock: Clock,
) -> None:
    peer = Peer()

    async def broken(_: Json) -> Json:
        return {"tools": "none"}

    async with kept(peer, heartbeat_s=0) as it:
        peer.answers["tools/list"] = broken
        await it.connection.refresh()
        assert (it.names(), it.listing.stale) == (["echo"], True)
        assert it.connection.health.state == "ready"
        assert "a page with a str instead of tools" in it.connection.health.error
        del peer.answers["tools/list"]
        clock.advance(1.1)
        await it.seen.until(lambda: not it.listing.stale)
        assert it.connection.health.error == ""


@pytest.mark.requirement("RTE-5")
async def test_one_bad_definition_in_front_of_the_sdk_costs_only_itself() -> None:
    peer = Peer(tools=[tool("bad", inputSchema={"type": "string"}), None, tool("good")])
    async with kept(peer) as it:
        assert it.names() == ["good"]
        assert [each.name for each in it.listing.refused] == ["bad", "(number 2)"]


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(("stateless", "sign"), [(False, "ping"), (True, "server/discover")])
async def test_only_a_silent_server_is_asked_for_a_sign_of_life(
    clock: Clock, stateless: bool, sign: str
) -> None:
    peer = Peer(stateless=stateless)
    async with kept(peer, heartbeat_s=10.0, refresh_ttl_s=0) as it:
        await turns()
        before = peer.methods().count(sign)
        clock.advance(9)
        await it.call("echo")
        clock.advance(9)
        await turns()
        assert peer.methods().count(sign) == before
        clock.advance(2)
        await peer.got(sign, before + 1)


@pytest.mark.requirement("RTE-6")
async def test_a_server_that_shows_no_life_is_connected_anew(clock: Clock) -> None:
    peer = Peer()
    async with kept(peer, heartbeat_s=10.0, connect_timeout_s=5.0) as it:
        peer.answers["ping"] = None
        clock.advance(10.1)
        await peer.got("ping")
        clock.advance(5.1)
        await it.is_in("down")
        assert "it showed no life for 5 s" in it.connection.health.error
        clock.advance(0.6)
        await it.is_in("ready")
        assert (peer.opened, it.connection.health.restarts) == (2, 1)


@pytest.mark.requirement("RTE-6")
async def test_an_error_is_a_sign_of_life_too(clock: Clock) -> None:
    async def refuse(_: Json) -> Json:
        raise Refusal(-32601)

    peer = Peer(answers={"ping": refuse})
    async with kept(peer, heartbeat_s=10.0, refresh_ttl_s=0) as it:
        clock.advance(10.1)
        await peer.got("ping")
        await turns()
        clock.advance(10.1)
        await peer.got("ping", 2)
        assert it.connection.health.state == "ready"


@pytest.mark.requirement("RTE-6")
async def test_a_server_that_is_busy_with_a_call_is_not_asked_for_a_sign(clock: Clock) -> None:
    peer = Peer(answers={"tools/call": never})
    async with kept(peer, heartbeat_s=10.0, refresh_ttl_s=0) as it:
        call = asyncio.create_task(it.call("echo"))
        await peer.got("tools/call")
        clock.advance(25)
        await turns()
        assert "ping" not in peer.methods()
        call.cancel()
        await asyncio.wait((call,))
        clock.advance(10.1)
        await peer.got("ping")


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(("silent_s", "asked"), [(6, True), (4, False)])
async def test_a_server_that_said_nothing_during_a_call_until_that_was_given_up_is_asked_for_a_sign(
    clock: Clock, silent_s: float, asked: bool
) -> None:
    peer = Peer(answers={"tools/call": never})
    async with kept(peer, heartbeat_s=0, refresh_ttl_s=0, idle_timeout_s=5.0) as it:
        calls = [asyncio.create_task(it.call("echo")) for _ in range(2)]
        await peer.got("tools/call", 2)
        clock.advance(silent_s)
        for number, call in enumerate(calls):
            call.cancel()
            await asyncio.wait((call,))
            await turns()
            assert ("ping" in peer.methods()) is (asked and number == 1), "not while it is busy"


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(
    "noise",
    [
        {"method": "notifications/message", "params": {"level": "info", "data": "x"}},
        {"id": 7_000, "method": "ping"},
    ],
)
async def test_a_server_that_hangs_but_talks_is_asked_for_a_sign_of_life(
    clock: Clock, noise: Json
) -> None:
    peer = Peer()
    async with kept(peer, heartbeat_s=10.0, refresh_ttl_s=0, connect_timeout_s=5.0) as it:
        peer.answers["ping"] = None
        for _ in range(4):
            clock.advance(2.6)
            await peer.say(noise)
            await turns()
        await peer.got("ping")
        clock.advance(5.1)
        await it.is_in("down")
        assert "it showed no life for 5 s" in it.connection.health.error


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(("told", "asked"), [(False, True), (True, False)])
async def test_a_call_that_was_given_up_in_silence_makes_the_server_suspect_whatever_else_it_said(
    clock: Clock, told: bool, asked: bool
) -> None:
    peer = Peer(answers={"tools/call": never})
    async with kept(peer, heartbeat_s=0, refresh_ttl_s=0, idle_timeout_s=5.0) as it:
        call = asyncio.create_task(it.call("echo"))
        message = await peer.got("tools/call")
        clock.advance(3)
        token = message["params"]["_meta"]["progressToken"] if told else "another"
        params = {"progressToken": token, "progress": 1}
        await peer.say({"method": "notifications/progress", "params": params})
        await turns()
        clock.advance(3)
        call.cancel()
        await asyncio.wait((call,))
        await turns()
        assert ("ping" in peer.methods()) is asked


async def test_whoever_waits_for_a_list_is_let_go_when_the_connection_ends() -> None:
    peer = Peer()
    async with kept(peer) as it:
        peer.answers["tools/list"] = None
        refreshing = asyncio.create_task(it.connection.refresh())
        await peer.got("tools/list", 2)
        peer.hang_up()
        await refreshing
        await it.connection.refresh()


@pytest.mark.requirement("RTE-4")
async def test_what_changed_before_a_stateless_server_heard_that_somebody_listens_is_not_missed() -> (
    None
):
    peer = Peer(stateless=True)

    async def acknowledge(message: Json) -> Json:
        peer.tools = [tool("newer")]
        meta = {"_meta": {f"{META}subscriptionId": message["id"]}}
        told = {"notifications": {"toolsListChanged": True}, **meta}
        await peer.say({"method": "notifications/subscriptions/acknowledged", "params": told})
        return await never(message)

    peer.answers["subscriptions/listen"] = acknowledge
    async with kept(peer) as it:
        await it.seen.until(lambda: it.names() == ["newer"])
