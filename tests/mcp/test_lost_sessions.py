"""However an HTTP server says that it no longer knows the session, a new one is begun, and only then."""

import asyncio
import json
from pathlib import Path

import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.errors import PermanentError
from session_runtime.mcp.connection import Edges
from session_runtime.testing.replies import RawReply
from session_runtime.testing.server import HttpRequest
from tests.mcp.peer import Json, Peer, started
from tests.mcp.web import Web, outcome, reached, refused, reply, served
from tests.models.clock import Clock

NO_SESSION: Json = {
    "jsonrpc": "2.0",
    "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"},
}


HANGS_S = 20.0  # a test that waits for what never comes fails instead of hanging


def error(id_: object, code: int = -32000) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": "no"}}


UNKNOWN = [
    reply(400),
    reply(400, {**NO_SESSION, "id": None}),
    reply(400, {**NO_SESSION, "id": "server-error"}),
    reply(400, NO_SESSION),
    reply(401),
    reply(403, error(None, -32602)),
    reply(410),
    reply(422),
    RawReply((b"Bad Request",), status=400, headers={"content-type": "text/plain"}),
]


@pytest.mark.requirement("RTE-4")
@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("unknown", UNKNOWN)
async def test_a_call_that_was_refused_otherwise_than_by_404_may_have_run_and_leads_to_a_new_session(
    unknown: RawReply,
) -> None:
    web = Web(Peer(), "none", unknown=unknown)
    async with reached(web, heartbeat_s=0) as it:
        web.forget_sessions()
        error = await refused(it)
        assert isinstance(error, PermanentError) or error.may_have_run, "it is not made again"
        assert "did not run" not in str(error)
        await it.seen.until(lambda: it.connection.health.restarts == 1)
        await it.is_in("ready")
        assert await it.call("echo") == "done"
        assert web.peer.methods().count("initialize") == 2


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize("unknown", [reply(404), *UNKNOWN])
async def test_the_heartbeat_notices_that_the_session_is_lost(
    unknown: RawReply, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    web = Web(Peer(), "none", unknown=unknown)
    async with reached(web, heartbeat_s=10.0, refresh_ttl_s=0) as it:
        web.forget_sessions()
        clock.advance(10.1)
        await it.seen.until(lambda: it.connection.health.restarts == 1)
        await it.is_in("ready")
        assert await it.call("echo") == "done"


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply(400), ("mcp.lost", True)),
        (reply(400, error(None, -32602)), ("mcp.invalid_arguments", None)),
        (reply(401), ("mcp.internal", None)),
        (reply(403, error(None)), ("mcp.internal", None)),
        (reply(413), ("mcp.lost", True)),
        (reply(404, error(None, -32601)), ("mcp.lost", True)),
    ],
)
async def test_a_refusal_of_one_call_ends_no_session_that_the_server_knows(
    answer: RawReply, expected: tuple[str, bool | None]
) -> None:
    web = Web(Peer(), "none")
    async with reached(web, heartbeat_s=0) as it:
        web.replies["tools/call"] = answer
        assert outcome(await refused(it)) == expected
        assert web.peer.methods().count("tools/call") == 1
        del web.replies["tools/call"]
        assert await it.call("echo") == "done"
        assert it.connection.health.restarts == 0


class Echoing(Web):
    """Refuses requests of sessions that it does not know with their own ids."""

    async def answer(self, request: HttpRequest) -> RawReply:
        if request.method == "POST":
            id_ = json.loads(request.body).get("id")
            self.unknown = reply(400, {**NO_SESSION, "id": id_})
        return await super().answer(request)


@pytest.mark.requirement("RTE-6")
async def test_a_new_session_is_begun_also_where_each_refusal_names_its_own_request() -> None:
    web = Echoing(Peer(), "none")
    async with reached(web, heartbeat_s=0) as it:
        web.forget_sessions()
        assert outcome(await refused(it)) == ("mcp.internal", None)
        await it.seen.until(lambda: it.connection.health.restarts == 1)
        await it.is_in("ready")
        assert await it.call("echo") == "done"


class PerSession(Web):
    """A bridge with a child per session that dies in a call, which it runs first."""

    runs = 0

    async def answer(self, request: HttpRequest) -> RawReply:
        if b"tools/call" in request.body:
            self.runs += 1
            self.forget_sessions()
        return await super().answer(request)


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("status", [400, 401, 408, 409, 410, 422])
async def test_a_call_in_which_the_session_was_lost_is_not_said_not_to_have_run(
    status: int,
) -> None:
    web = PerSession(Peer(), "none", unknown=reply(status))
    expected = ("mcp.internal", None) if status == 401 else ("mcp.lost", True)
    async with served(web), asyncio.timeout(HANGS_S):
        server = McpServer(url=web.url, heartbeat_s=0)
        async with started(server, Path(), Edges(jitter=lambda: 1_000.0)) as it:
            assert outcome(await refused(it)) == expected
            await it.seen.until(lambda: it.connection.health.restarts == 1)
            await it.is_in("ready")  # at once: another wait would be endless
    assert web.runs == 1


@pytest.mark.requirement("RTE-7")
async def test_a_refused_call_is_told_at_once_even_if_the_server_then_says_nothing_more() -> None:
    peer = Peer()
    web = Web(peer, "none", replies={"tools/call": reply(401)})
    silent = reached(web, heartbeat_s=0, connect_timeout_s=3 * HANGS_S)
    async with silent as it, asyncio.timeout(HANGS_S):
        peer.answers = {"ping": None, "tools/list": None}
        assert outcome(await refused(it)) == ("mcp.internal", None)
        assert it.connection.health.state == "ready"


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_looks_at_headers_only_when_it_lists_is_told_so(status: int) -> None:
    web = Web(Peer(), "none", replies={"tools/list": reply(status)})
    async with served(web):
        server = McpServer(url=web.url, heartbeat_s=0)
        async with started(server, Path(), Edges(jitter=lambda: 100.0)) as it:
            health = it.connection.health
            assert "it does not accept the headers configured" in health.error
            assert (health.state, health.failures, health.restarts) == ("down", 1, 0)


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize("body", [None, error(None)])
async def test_a_server_that_takes_no_requests_for_a_while_keeps_its_session(
    body: Json | None,
) -> None:
    web = Web(Peer(), "none")
    async with reached(web, heartbeat_s=0) as it:
        busy = reply(429, body)
        web.replies = {"tools/call": reply(400), "ping": busy, "tools/list": busy}
        assert outcome(await refused(it)) == ("mcp.lost", True)
        await web.peer.got("ping")
        await it.connection.refresh()
        web.replies.clear()
        assert await it.call("echo") == "done"
        assert it.connection.health.restarts == 0


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(
    ("listed", "state"), [(None, "ready"), (reply(429), "ready"), (reply(401), "down")]
)
async def test_a_server_without_sessions_that_refuses_signs_of_life_must_list_its_tools(
    listed: RawReply | None, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    web = Web(Peer())
    async with reached(web, heartbeat_s=10.0, refresh_ttl_s=0) as it:
        web.replies["ping"] = reply(401)
        if listed is not None:
            web.replies["tools/list"] = listed
        clock.advance(10.1)
        await web.peer.got("tools/list", 2)
        if state == "down":
            await it.is_in("down")
            assert "it does not accept the headers configured" in it.connection.health.error
        else:
            assert [await it.call("echo") for _ in range(5)] == ["done"] * 5
            assert (it.connection.health.state, it.connection.health.failures) == ("ready", 0)


async def test_a_session_id_that_cannot_be_sent_back_is_refused_and_nothing_logged_in_full(
    caplog: pytest.LogCaptureFixture,
) -> None:
    web = Web(Peer())
    answer = await web.peer.body({"id": 2, "method": "initialize"})
    web.replies["initialize"] = reply(200, answer, {"mcp-session-id": "\xe9"})
    async with reached(web) as it:
        assert it.connection.health.error == "its session id cannot stand in a header"
    assert {each.name for each in caplog.records} == {"session_runtime.mcp.connection"}


async def test_a_server_that_fails_to_end_a_session_is_left_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    web = Web(Peer(), "none", replies={"DELETE": reply(500)})
    async with reached(web) as it:
        assert await it.call("echo") == "done"
    assert "DELETE" in web.verbs()
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
