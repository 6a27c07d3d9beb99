"""However an HTTP server says that it no longer knows the session, a new one is begun, and only then."""

import pytest

from session_runtime.testing.replies import RawReply
from tests.mcp.peer import Json, Peer
from tests.mcp.web import Web, outcome, reached, refused, reply
from tests.models.clock import Clock

NO_SESSION: Json = {
    "jsonrpc": "2.0",
    "error": {"code": -32000, "message": "Bad Request: No valid session ID provided"},
}


def error(id_: object, code: int = -32000) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": "no"}}


UNKNOWN = pytest.mark.parametrize(
    "unknown",
    [
        reply(404),
        reply(400),
        reply(400, {**NO_SESSION, "id": None}),
        reply(400, {**NO_SESSION, "id": "server-error"}),
        reply(400, NO_SESSION),
        reply(401),
        reply(403, error(None, -32602)),
        reply(410),
        RawReply((b"Bad Request",), status=400, headers={"content-type": "text/plain"}),
    ],
)


@pytest.mark.requirement("RTE-4")
@UNKNOWN
async def test_a_call_that_was_refused_as_the_session_is_lost_did_not_run(
    unknown: RawReply,
) -> None:
    web = Web(Peer(), "none", unknown=unknown)
    async with reached(web, heartbeat_s=0) as it:
        web.forget_sessions()
        assert outcome(await refused(it)) == ("mcp.expired", False)
        await it.seen.until(lambda: it.connection.health.restarts == 1)
        await it.is_in("ready")
        assert await it.call("echo") == "done"
        assert web.peer.methods().count("initialize") == 2


@pytest.mark.requirement("RTE-6")
@UNKNOWN
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
        (reply(400), "mcp.internal"),
        (reply(400, error(None, -32602)), "mcp.invalid_arguments"),
        (reply(401), "mcp.internal"),
        (reply(403), "mcp.internal"),
        (reply(413), "mcp.internal"),
    ],
)
async def test_a_refusal_of_one_call_ends_no_session_that_the_server_knows(
    answer: RawReply, expected: str
) -> None:
    web = Web(Peer(), "none")
    async with reached(web, heartbeat_s=0) as it:
        web.replies["tools/call"] = answer
        assert outcome(await refused(it)) == (expected, None)
        assert web.peer.methods().count("tools/call") == 1
        del web.replies["tools/call"]
        assert await it.call("echo") == "done"
        assert it.connection.health.restarts == 0


@pytest.mark.requirement("RTE-8")
async def test_an_error_for_the_very_call_is_taken_at_its_word() -> None:
    web = Web(Peer(), "none")
    async with reached(web, heartbeat_s=0) as it:
        lists = web.peer.methods().count("tools/list")
        web.replies["tools/call"] = reply(400, error(await next_id(web)))
        assert outcome(await refused(it)) == ("mcp.internal", None)
        assert web.peer.methods().count("tools/list") == lists, "it was not asked for the session"


async def next_id(web: Web) -> int:
    return max(each["id"] for each in web.peer.received if "id" in each) + 1


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
