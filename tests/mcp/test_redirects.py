"""Requests are followed to another path of the same host; one that cannot be harms itself alone."""

import asyncio
import logging

import httpx2
import pytest

from session_runtime.mcp.exchange import moved_to
from session_runtime.testing.replies import Pace, RawReply
from tests.mcp.peer import Json, Peer
from tests.mcp.processes import until
from tests.mcp.web import EVENTS, Web, outcome, reached, refused, reply


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize("stateless", [False, True])
@pytest.mark.parametrize("events", [False, True])
async def test_a_server_that_redirects_to_a_path_with_a_slash_is_used_like_any_other(
    stateless: bool, events: bool
) -> None:
    web = Web(Peer(stateless=stateless), None if stateless else "none", events)
    web.moved_to = "/mcp/"
    async with reached(web) as it:
        assert it.connection.health.state == "ready"
        assert await it.call("echo", text="x") == "done"
        assert (await web.peer.got("tools/call"))["params"]["arguments"] == {"text": "x"}


@pytest.mark.requirement("RTE-6")
async def test_a_redirection_for_ever_fails_its_call_and_no_other() -> None:
    gate = asyncio.Event()
    peer = Peer()

    async def slow(_: Json) -> Json:
        await gate.wait()
        return {"content": [{"type": "text", "text": "at last"}]}

    peer.answers["tools/call"] = slow
    web = Web(peer)
    async with reached(web) as it:
        other = asyncio.create_task(it.call("echo"))
        await peer.got("tools/call")
        web.replies["tools/call"] = reply(307, headers={"location": "/again"})
        assert outcome(await refused(it)) == ("mcp.internal", None)
        paths = [each.path for each in web.requests if b'"tools/call"' in each.body]
        assert paths == ["/mcp", "/mcp", "/again"]
        gate.set()
        assert await other == "at last"
        assert it.connection.health.restarts == 0


@pytest.mark.requirement("RTE-6")
@pytest.mark.parametrize(
    "location",
    [
        "http://[",
        "http://127.0.0.1:99999999/",
        "http://127.0.0.1:1/s3cret",
        "//x/",
        "\x7f",
        "",
        "/mcp",
    ],
)
async def test_a_redirection_to_nowhere_fails_its_call_alone(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = reply(308, headers={"location": location})
        error = await refused(it)
        assert outcome(error) == ("mcp.internal", None)
        assert "status 308, which leads nowhere on its host: is the url right?" in str(error)
        assert web.peer.methods().count("tools/call") == 1
        assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
        del web.replies["tools/call"]
        assert await it.call("echo") == "done"
        assert it.connection.health.restarts == 0


@pytest.mark.requirement("RTE-6")
async def test_the_body_of_a_redirection_is_not_read_and_may_break_off() -> None:
    web = Web(Peer())
    async with reached(web) as it:
        never = Pace(step=asyncio.Semaphore(1), cut_after=2)
        web.replies["tools/call"] = RawReply(
            (b"x", b"y"), status=307, headers={"location": "/other"}, pace=never
        )
        assert outcome(await refused(it)) == ("mcp.internal", None)
        del web.replies["tools/call"]
        assert await it.call("echo") == "done"
        assert it.connection.health.restarts == 0


@pytest.mark.parametrize(
    ("url", "location", "status", "method", "followed"),
    [
        ("http://h/a", "/b", 307, "POST", True),
        ("http://h/a", "b", 308, "POST", True),
        ("http://h/a", "https://h/a", 308, "POST", True),
        ("http://h/a", "/b", 301, "GET", True),
        ("http://h/a", "/b", 302, "POST", False),
        ("http://h/a", "/b", 301, "POST", False),
        ("http://h/a", "/a", 307, "POST", False),
        ("https://h/a", "http://h/a", 307, "POST", False),
        ("http://h:8/a", "https://h/a", 307, "POST", False),
        ("http://h/a", "http://h:8/a", 307, "POST", False),
        ("http://h/a", "http://u:p@h/b", 307, "POST", False),
        ("http://h/a", "http://other/b", 307, "GET", False),
    ],
)
def test_what_is_followed(
    url: str, location: str, status: int, method: str, followed: bool
) -> None:
    response = httpx2.Response(status, headers={"location": location})
    assert (moved_to(httpx2.Request(method, url), response) is not None) is followed


async def test_the_stream_of_news_is_followed_too() -> None:
    news = RawReply((b": hello\n\n", b""), headers=EVENTS, pace=Pace(step=asyncio.Semaphore(1)))
    web = Web(Peer(), "none", replies={"GET": news})
    web.moved_to = "/mcp/"
    async with reached(web) as it:
        assert await it.call("echo") == "done"
        await until(lambda: ("GET", "/mcp/") in {(it.method, it.path) for it in web.requests})
