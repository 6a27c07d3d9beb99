"""Streams of events live as long as their server wants, and what they tell is not lost when they are cut."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager

import pytest

from session_runtime.mcp import unasked
from session_runtime.mcp.events import MAX_SKIPPED
from session_runtime.testing.replies import Pace, RawReply
from session_runtime.testing.server import HttpRequest
from tests.mcp.peer import Json, Kept, Peer, tool
from tests.mcp.processes import until
from tests.mcp.web import EVENTS, Web, outcome, reached, refused, reply
from tests.models.clock import hurried

PING = b'event: ping\ndata: {"t": 1}\n\n'
CHANGED = b'data: {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}\n\n'


def answer(id_: object = 0) -> bytes:
    result: Json = {"content": [{"type": "text", "text": "done"}]}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode()


def open_stream(*pieces: bytes) -> RawReply:
    """A stream that says this and then stays open."""
    step = asyncio.Semaphore(len(pieces))
    return RawReply((*pieces, b": never"), headers=EVENTS, pace=Pace(step=step))


class Listened(Web):
    """Answers each further request to listen with the next of these, and then with 405."""

    gets: list[RawReply]

    async def answer(self, request: HttpRequest) -> RawReply:
        if request.method != "GET":
            return await super().answer(request)
        self.requests.append(request)
        return self.gets.pop(0) if self.gets else reply(405)

    @property
    def listened(self) -> list[HttpRequest]:
        return [each for each in self.requests if each.method == "GET"]


def listened(*gets: RawReply) -> Listened:
    web = Listened(Peer(), "none")
    web.gets = [*gets]
    return web


@pytest.mark.requirement("RTE-6")
async def test_events_that_only_keep_a_stream_alive_end_neither_news_nor_calls() -> None:
    alive = PING * MAX_SKIPPED * 2
    web = listened(open_stream(alive, CHANGED))
    async with reached(web) as it:
        await web.peer.got("tools/list", 2)
        web.replies["tools/call"] = RawReply((alive, b"data: " + answer() + b"\n\n"), 200, EVENTS)
        assert [await it.call("echo") for _ in range(3)] == ["done"] * 3
        assert it.connection.health.skipped_lines == 0


@pytest.mark.requirement("RTE-6")
async def test_a_flood_of_such_events_is_not_listened_to_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unasked, "MOST_AT_ONCE", 50)
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = open_stream(PING * 10_000)
        assert outcome(await refused(it)) == ("mcp.lost", True)


@pytest.mark.requirement("RTE-5")
async def test_what_is_no_message_is_counted_for_each_stream_alone() -> None:
    bad = b"data: {}\n\n" * (MAX_SKIPPED - 1)
    web = listened(RawReply((bad,), 200, EVENTS), RawReply((bad,), 200, EVENTS), open_stream())
    async with quiet(web) as it:
        await until(lambda: len(web.listened) == 3)
        assert it.connection.health.skipped_lines == 2 * (MAX_SKIPPED - 1)


def quiet(web: Web) -> AbstractAsyncContextManager[Kept]:
    """A connection that lists and asks for signs of life only where something makes it."""
    return reached(web, heartbeat_s=0, refresh_ttl_s=0)


@pytest.mark.requirement("RTE-4")
async def test_a_stream_of_news_that_is_cut_again_and_again_is_begun_again_and_nothing_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut = RawReply((b": hi\n\n", b"x"), headers=EVENTS, pace=Pace(cut_after=1))
    failing = [reply(503), reply(502), reply(429), RawReply((b"",), pace=Pace(cut_after=0))]
    web = listened(cut, cut, cut, *failing, open_stream())
    async with quiet(web) as it:
        web.peer.tools = [tool("new")]
        async with hurried(monkeypatch):
            await until(lambda: len(web.listened) == 8)
            await it.seen.until(lambda: it.names() == ["new"])


@pytest.mark.requirement("RTE-6")
async def test_a_server_that_has_no_news_is_not_asked_for_them_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = listened()
    async with quiet(web) as it, hurried(monkeypatch):
        await until(lambda: len(web.listened) == 2)
        for _ in range(3_000):
            await asyncio.sleep(0)
        assert await it.call("echo") == "done"
        assert len(web.listened) == 2


@pytest.mark.requirement("RTE-7")
async def test_an_answer_whose_stream_the_server_closed_is_fetched_by_the_id_it_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = listened(reply(405), reply(405))
    async with quiet(web) as it, hurried(monkeypatch):
        await until(lambda: len(web.listened) == 2)
        web.gets = [
            RawReply((b"id: e2\ndata: \n\n",), headers=EVENTS),
            RawReply((b"data: " + answer() + b"\n\n",), headers=EVENTS),
        ]
        web.replies["tools/call"] = RawReply((b"id: e1\nretry: 1\ndata: \n\n",), headers=EVENTS)
        assert await it.call("echo") == "done"
        assert [each.headers["last-event-id"] for each in web.listened[2:]] == ["e1", "e2"]


@pytest.mark.requirement("RTE-7")
async def test_an_answer_that_cannot_be_read_there_fails_its_call_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = listened(reply(405), reply(405))
    async with quiet(web) as it, hurried(monkeypatch):
        await until(lambda: len(web.listened) == 2)
        web.gets = [RawReply((b"data: {}\n\n",), headers=EVENTS)]
        web.replies["tools/call"] = RawReply((b"id: e1\ndata: \n\n",), headers=EVENTS)
        assert outcome(await refused(it)) == ("mcp.bad_result", None)


@pytest.mark.requirement("RTE-7")
async def test_the_stream_of_a_call_that_was_given_up_is_not_taken_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = listened(reply(405), reply(405))
    async with quiet(web) as it:
        async with hurried(monkeypatch):
            await until(lambda: len(web.listened) == 2)
            again = [RawReply((b"id: e2\ndata: \n\n",), headers=EVENTS) for _ in range(50)]
            web.gets = [*again]
            web.replies["tools/call"] = RawReply((b"id: e1\ndata: \n\n",), headers=EVENTS)
            call = asyncio.create_task(it.call("echo"))
            await until(lambda: len(web.listened) >= 4)
            call.cancel()
            await web.peer.got("notifications/cancelled")
            count = len(web.listened)
            for _ in range(10_000):
                await asyncio.sleep(0)
            assert len(web.listened) <= count + 1


@pytest.mark.requirement("RTE-6")
async def test_a_wish_to_be_asked_again_only_in_an_age_or_with_a_strange_id_harms_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    odd = b"id: \xc3\xa9\x01\nretry: " + b"9" * 400 + b"\ndata: \n\n"
    web = listened(RawReply((odd,), headers=EVENTS), open_stream())
    async with quiet(web) as it:
        async with hurried(monkeypatch):
            for _ in range(80):  # a minute, without more than the time of one test
                await asyncio.sleep(0)
        assert await it.call("echo") == "done"
        assert it.connection.health.restarts == 0
