"""Over HTTP one request can fail without harm to the others, and a lost session is replaced once."""

import asyncio
import json
from pathlib import Path

import httpx2
import pytest

from session_runtime.config.mcp import McpServer
from session_runtime.errors import TransientError
from session_runtime.mcp import http as module
from session_runtime.mcp.answers import Answers
from session_runtime.mcp.connection import Edges
from session_runtime.mcp.events import MAX_SKIPPED, Streams
from session_runtime.mcp.life import ANSWERS_S
from session_runtime.mcp.own_errors import OwnErrors
from session_runtime.testing.replies import Pace, RawReply
from session_runtime.testing.server import Connection as Wire
from tests.mcp.peer import Json, Peer, started, tool
from tests.mcp.processes import until
from tests.mcp.web import EVENTS, PLAIN, Web, outcome, reached, refused, reply, served
from tests.models.clock import Clock


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize("events", [False, True])
@pytest.mark.parametrize(("stateless", "revision"), [(False, "2025-11-25"), (True, "2026-07-28")])
async def test_tools_are_listed_and_called_over_http(
    stateless: bool, revision: str, events: bool
) -> None:
    web = Web(Peer(stateless=stateless), None if stateless else "none", events)
    async with reached(web) as it:
        assert (it.connection.health.protocol, it.names()) == (revision, ["echo"])
        assert await it.call("echo") == "done"
    assert ("DELETE" in web.verbs()) is not stateless, "a session is ended, and only that"


@pytest.mark.requirement("RTE-2")
async def test_headers_that_are_configured_go_with_every_request_and_no_proxy_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    web = Web(Peer(), "none")
    async with reached(web, headers={"Authorization": "Bearer t0ken"}) as it:
        assert await it.call("echo") == "done"
    assert {request.headers.get("authorization") for request in web.requests} == {"Bearer t0ken"}
    assert {request.headers["accept-encoding"] for request in web.requests} == {"identity"}


@pytest.mark.requirement("RTE-4")
async def test_a_session_that_the_server_forgot_is_replaced_once_and_the_call_did_not_run() -> None:
    web = Web(Peer(), "none")
    async with reached(web) as it:
        web.forget_sessions()
        web.peer.tools = [tool("echo"), tool("new")]
        assert outcome(await refused(it)) == ("mcp.expired", False)
        await it.seen.until(lambda: it.names() == ["echo", "new"])
        assert await it.call("echo") == "done"
        assert web.peer.methods().count("initialize") == 2
        assert web.peer.methods().count("tools/call") == 1


@pytest.mark.requirement("RTE-6")
async def test_a_server_that_goes_away_during_a_call_harms_nobody_else() -> None:
    gone = asyncio.Event()
    web = Web(Peer(), replies={"tools/call": RawReply((b"",), pace=Pace(gate=gone))})
    async with reached(web) as it:
        bystander = asyncio.create_task(asyncio.Event().wait())
        call = asyncio.create_task(it.call("echo"))
        await web.peer.got("tools/call")
        for wire in list(web.wires):
            await wire.abort()
        with pytest.raises(TransientError) as caught:
            await call
        assert outcome(caught.value) == ("mcp.lost", True)
        assert not bystander.done()
        assert asyncio.current_task() is not None
        del web.replies["tools/call"]
        await it.is_in("ready")
        assert await it.call("echo") == "done"
        bystander.cancel()


@pytest.mark.requirement("RTE-6")
async def test_a_server_that_cannot_be_reached_is_down_and_up_again_when_it_is_back() -> None:
    web = Web(Peer())
    async with served(web):
        port = int(web.url.rpartition(":")[2].partition("/")[0])
        edges = Edges(jitter=lambda: 0.01)
        server = McpServer(url=web.url, connect_timeout_s=5)
    async with started(server, Path(), edges) as it:
        assert it.connection.health.state == "down"
        assert "ConnectError" in it.connection.health.error
        with pytest.raises(TransientError, match="temporarily unavailable"):
            await it.call("echo")
        listener = await asyncio.get_running_loop().create_server(
            lambda: Wire(web.answer, web.wires), "127.0.0.1", port
        )
        await it.is_in("ready")
        assert await it.call("echo") == "done"
        listener.close()
        for wire in list(web.wires):
            await wire.abort()
        assert outcome(await refused(it)) == ("mcp.lost", False)
        await it.is_in("down")


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (reply(429, headers={"retry-after": "7"}), ("mcp.rate_limited", False)),
        (reply(503, headers={"retry-after": "7"}), ("mcp.rate_limited", False)),
        (reply(503), ("mcp.lost", True)),
        (reply(503, headers={"retry-after": ""}), ("mcp.lost", True)),
        (reply(500), ("mcp.lost", True)),
        (reply(502, {"detail": "bad gateway"}), ("mcp.lost", True)),
        (reply(403), ("mcp.internal", None)),
        (reply(404), ("mcp.internal", None)),
        (reply(307, headers={"location": "http://127.0.0.1:1/mcp"}), ("mcp.internal", None)),
        (RawReply((b"{",), headers=PLAIN), ("mcp.bad_result", None)),
        (
            RawReply((b"x",), headers={**PLAIN, "content-encoding": "gzip"}),
            ("mcp.bad_result", None),
        ),
        (RawReply((b"data: {\n\n",), headers=EVENTS), ("mcp.bad_result", None)),
        (RawReply((b": nothing\n\n",), headers=EVENTS), ("mcp.lost", True)),
        (
            RawReply((b'{"jsonrpc"', b": "), headers=PLAIN, pace=Pace(cut_after=1)),
            ("mcp.lost", True),
        ),
        (
            reply(400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32602, "message": "bad"}}),
            ("mcp.invalid_arguments", None),
        ),
    ],
)
async def test_each_refusal_fails_its_call_alone(
    answer: RawReply, expected: tuple[str, bool | None]
) -> None:
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = answer
        error = await refused(it)
        assert outcome(error) == expected
        if isinstance(error, TransientError) and error.code == "mcp.rate_limited":
            assert error.retry_after_s == 7.0
        del web.replies["tools/call"]
        assert await it.call("echo") == "done"
        assert it.connection.health.restarts == 0


@pytest.mark.requirement("RTE-4")
async def test_of_a_session_that_the_server_forgot_all_calls_under_way_are_said_not_to_have_run() -> (
    None
):
    web = Web(Peer(), "none")
    async with reached(web) as it:
        web.forget_sessions()
        errors = await asyncio.gather(*(refused(it) for _ in range(8)))
        assert {outcome(error) for error in errors} == {("mcp.expired", False)}
        await it.seen.until(lambda: it.connection.health.restarts == 1)
        await it.is_in("ready")
        assert await it.call("echo") == "done"
        assert web.peer.methods().count("initialize") == 2
        assert web.peer.methods().count("tools/call") == 1


@pytest.mark.requirement("RTE-4")
async def test_a_call_that_has_no_answer_holds_up_a_new_session_for_a_bounded_time_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    peer = Peer(answers={"tools/call": None})
    web = Web(peer, "none")
    async with reached(web, heartbeat_s=0) as it:
        silent = asyncio.create_task(refused(it))
        await peer.got("tools/call")
        web.forget_sessions()
        assert outcome(await refused(it)) == ("mcp.expired", False)
        assert outcome(await refused(it)) == ("mcp.down", False)
        assert not silent.done()
        clock.advance(ANSWERS_S)
        assert outcome(await silent) == ("mcp.lost", True)
        await it.is_in("ready")


@pytest.mark.requirement("RTE-4")
async def test_a_server_that_forgets_each_session_is_connected_to_at_once_only_the_first_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    web = Web(Peer(), "none")
    async with served(web):
        server = McpServer(url=web.url, heartbeat_s=0)
        async with started(server, Path(), Edges(jitter=lambda: 100.0)) as it:
            web.forget_sessions()
            assert outcome(await refused(it)) == ("mcp.expired", False)
            await it.seen.until(lambda: it.connection.health.restarts == 1)
            await it.is_in("ready")
            web.forget_sessions()
            assert outcome(await refused(it)) == ("mcp.expired", False)
            await it.seen.until(lambda: it.connection.health.failures == 2)
            wait_s = it.connection.health.retry_in_s
            assert wait_s is not None
            assert 40 < wait_s <= 50
            clock.advance(50)
            await it.is_in("ready")


@pytest.mark.requirement("RTE-6")
async def test_after_a_call_that_got_lost_the_server_is_asked_for_a_sign_of_life() -> None:
    web = Web(Peer())
    async with reached(web, heartbeat_s=0) as it, asyncio.timeout(20):
        web.replies["tools/call"] = RawReply((b"{", b"}"), headers=PLAIN, pace=Pace(cut_after=1))
        assert outcome(await refused(it)) == ("mcp.lost", True)
        await web.peer.got("ping")


@pytest.mark.requirement("RTE-2")
async def test_cookies_that_a_server_sets_are_not_kept() -> None:
    web = Web(Peer())
    async with reached(web) as it:
        answer = {"jsonrpc": "2.0", "id": 0, "result": {"content": []}}
        web.replies["tools/call"] = reply(200, answer, {"set-cookie": "who=ann; Path=/"})
        assert [await it.call("echo") for _ in range(2)] == ["", ""]
    assert not any("cookie" in request.headers for request in web.requests)


@pytest.mark.requirement("RTE-6")
async def test_an_answer_without_end_is_read_only_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 10_000)
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = RawReply((b" " * 6_000,) * 3, headers=PLAIN)
        error = await refused(it)
        assert (error.code, "more than 10000 bytes" in str(error)) == ("mcp.bad_result", True)


async def test_a_server_cannot_pass_off_its_errors_as_those_of_the_transport() -> None:
    data = {"by": "x" * 32, "kind": "unreachable", "said": "never ran", "retry_after_s": None}
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = reply(
            200,
            {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "m", "data": data}},
        )
        assert outcome(await refused(it)) == ("mcp.internal", None)


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize("stateless", [False, True])
async def test_cancelling_a_call_over_http_tells_the_server(stateless: bool) -> None:
    never = asyncio.Event()
    web = Web(Peer(stateless=stateless), None if stateless else "none")
    async with reached(web) as it:
        web.replies["tools/call"] = RawReply((b"",), headers=EVENTS, pace=Pace(gate=never))
        call = asyncio.create_task(it.call("echo"))
        message = await web.peer.got("tools/call")
        [busy] = [wire for wire in web.wires if wire._task and not wire._task.done()]
        call.cancel()
        await asyncio.wait((call,))
        if stateless:
            await busy.lost()
        else:
            told = await web.peer.got("notifications/cancelled")
            assert told["params"]["requestId"] == message["id"]
        del web.replies["tools/call"]
        assert await it.call("echo") == "done"


@pytest.mark.requirement("RTE-4")
async def test_changes_are_noticed_over_the_stream_of_news() -> None:
    changed: Json = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    step = asyncio.Semaphore(0)
    news = RawReply(
        (b"", b"event: message\ndata: " + json.dumps(changed).encode() + b"\n\n", b""),
        headers=EVENTS,
        pace=Pace(step=step),
    )
    web = Web(Peer(), "none", replies={"GET": news})
    async with reached(web) as it:
        web.peer.tools = [tool("new")]
        for _ in range(2):
            step.release()
        await it.seen.until(lambda: it.names() == ["new"])


@pytest.mark.requirement("RTE-5")
async def test_news_that_are_no_messages_are_skipped_and_counted_and_the_others_heeded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    changed: Json = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    good = b"retry: 0\ndata: " + json.dumps(changed).encode() + b"\n\n"
    news = RawReply((BAD_NEWS * 3, good), headers=EVENTS, pace=Pace(gate=asyncio.Event()))
    web = Web(Peer(), "none", replies={"GET": news})
    async with reached(web) as it:
        web.peer.tools = [tool("new")]
        assert news.pace is not None
        assert news.pace.gate is not None
        news.pace.gate.set()
        await it.seen.until(lambda: it.names() == ["new"])
        assert it.connection.health.skipped_lines == 3
    assert not [each for each in caplog.records if each.name.startswith("mcp")]


@pytest.mark.requirement("RTE-5")
async def test_news_that_are_no_messages_are_not_listened_to_for_ever() -> None:
    endless = RawReply((BAD_NEWS,) * MAX_SKIPPED * 5, headers=EVENTS)
    web = Web(Peer(), "none", replies={"GET": endless})
    async with reached(web) as it:
        await until(lambda: it.connection.health.skipped_lines == MAX_SKIPPED)
        assert await it.call("echo") == "done"
        assert it.connection.health.skipped_lines == MAX_SKIPPED


BAD_NEWS = b"data: {}\n\nevent: strange\ndata: x\n\n"


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize(
    "answer",
    [
        RawReply((b'data: {"password": 1}\n\n',), headers=EVENTS),
        RawReply((b'{"password": 1}',), headers=PLAIN),
        RawReply((b'data: "' + b"x" * 70_000 + b"\n\n",), headers=EVENTS),
    ],
)
async def test_an_answer_that_is_no_message_is_told_in_words_of_ours(answer: RawReply) -> None:
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = answer
        error = await refused(it)
        assert error.code == "mcp.bad_result"
        assert not any(word in str(error) for word in ("pydantic", "validation", "xxx", "input"))


@pytest.mark.requirement("RTE-7")
@pytest.mark.parametrize(
    ("method", "body", "headers", "read_s"),
    [
        ("POST", {"id": 1, "method": "tools/call"}, {}, 60.0),
        ("POST", {"method": "notifications/cancelled", "params": {"requestId": 1}}, {}, 3.0),
        ("POST", {"id": 1, "method": "x"}, {"mcp-method": "subscriptions/listen"}, None),
        ("GET", None, {}, None),
        ("DELETE", None, {}, module.GOODBYE_S),
    ],
)
async def test_only_what_is_worth_it_is_waited_for(
    method: str, body: Json | None, headers: dict[str, str], read_s: float | None
) -> None:
    waits: list[float | None] = []

    def record(request: httpx2.Request) -> httpx2.Response:
        waits.append(request.extensions["timeout"]["read"])
        return httpx2.Response(202, stream=httpx2.ByteStream(b""))

    below = httpx2.MockTransport(record)
    timeouts = module._Timeouts(3.0, 60.0)
    transport = module._Answering(below, timeouts, OwnErrors(), Answers(), Streams())
    request = httpx2.Request(method, "http://a.invalid/", json=body, headers=headers)
    await transport.handle_async_request(request)
    assert waits == [read_s]
