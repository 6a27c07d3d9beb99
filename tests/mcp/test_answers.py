"""An answer over HTTP may have any id, be long, and look odd; the SDK sees only what it can read at once."""

import asyncio
import json
import logging
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse

from session_runtime.mcp.answers import KEPT_S, READ_AT_ONCE_BYTES, Answers
from session_runtime.mcp.messages import NoMessage
from session_runtime.testing.replies import RawReply
from tests.mcp.peer import Json, Peer
from tests.mcp.web import EVENTS, PLAIN, Web, reached, refused
from tests.models.clock import Clock

LONG = "y" * 100_000
TEXT = {"content-type": "text/plain"}


def answer(text: str, id_: object = "zz") -> Json:
    return {"jsonrpc": "2.0", "id": id_, "result": {"content": [{"type": "text", "text": text}]}}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.requirement("RTE-10")
@pytest.mark.parametrize("text", ["ok", LONG])
@pytest.mark.parametrize(
    "form",
    [
        lambda text: RawReply((encoded(answer(text)),), headers=PLAIN),
        lambda text: RawReply((encoded(answer(text)),), headers=TEXT),
        lambda text: RawReply((b"\xef\xbb\xbf" + encoded(answer(text, 7)),), headers=PLAIN),
        lambda text: RawReply((encoded([answer(text, "3")]),), headers=PLAIN),
        lambda text: RawReply((encoded([{"jsonrpc": "2.0", "method": "x"}, answer(text)]),)),
        lambda text: RawReply((b"data: " + encoded(answer(text)) + b"\n\n",), headers=EVENTS),
        lambda text: RawReply((b"data: " + encoded([answer(text)]) + b"\n\n",), headers=EVENTS),
    ],
)
async def test_an_answer_is_taken_whatever_its_id_length_and_frame(form: Any, text: str) -> None:
    web = Web(Peer())
    async with reached(web) as it, asyncio.timeout(20):
        web.replies["tools/call"] = form(text)
        assert await it.call("echo") == text


@pytest.mark.requirement("RTE-8")
@pytest.mark.parametrize("frame", [b"%s", b"data: %s\n\n"])
async def test_a_long_error_is_short_and_its_own(frame: bytes) -> None:
    error = {"code": -32603, "message": "z" * 100_000, "data": {"more": LONG}}
    body = frame % encoded({"jsonrpc": "2.0", "id": 99, "error": error})
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = RawReply((body,), headers=EVENTS if b"data" in frame else PLAIN)
        told = await refused(it)
        assert (told.code, len(str(told)) < 500) == ("mcp.internal", True)


@pytest.mark.requirement("RTE-5")
async def test_long_messages_that_are_no_answers_are_left_out_of_a_stream() -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": LONG}}
    body = b"data: " + encoded(log) + b"\n\ndata: " + encoded(answer("ok")) + b"\n\n"
    web = Web(Peer())
    async with reached(web) as it:
        web.replies["tools/call"] = RawReply((body,), headers=EVENTS)
        assert await it.call("echo") == "ok"


@pytest.mark.requirement("RTE-5")
@pytest.mark.parametrize(
    "body", [b'{"a": "' + LONG.encode(), b"[" * 100_000, b'{"id": 1}', b"[]", b"\xff", b""]
)
async def test_nothing_that_is_no_answer_gets_into_a_log(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    web = Web(Peer())
    async with reached(web) as it:
        caplog.clear()
        for headers, sent in ((PLAIN, body), (EVENTS, b"data: " + body + b"\n\n")):
            web.replies["tools/call"] = RawReply((sent,), headers=headers)
            assert (await refused(it)).code in ("mcp.bad_result", "mcp.lost")
        assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


async def test_the_sdk_sees_nothing_of_a_long_result_until_it_has_come_through() -> None:
    answers = Answers()
    message = await answers.answer(encoded(answer(LONG)), 5)
    assert message == JSONRPCResponse(jsonrpc="2.0", id=5, result={})
    heard = answers.heard(SessionMessage(message))
    assert isinstance(heard, SessionMessage)
    assert isinstance(heard.message, JSONRPCResponse)
    assert heard.message.result == answer(LONG)["result"]
    assert answers._results == {}


async def test_a_long_result_that_nobody_fetches_is_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    answers = Answers()
    await answers.answer(encoded(answer(LONG)), 5)
    clock.advance(KEPT_S + 1)
    await answers.answer(encoded(answer(LONG)), 6)
    assert list(answers._results) == [6]
    answers.end()
    assert answers._results == {}


async def test_of_several_answers_the_one_with_the_right_id_counts() -> None:
    several = [answer("wrong", 4), answer("right", 5)]
    message = await Answers().answer(encoded(several), 5)
    assert isinstance(message, JSONRPCResponse)
    assert message.result == answer("right")["result"]
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "m"}}
    only = await Answers().answer(encoded(error), 5)
    assert isinstance(only, JSONRPCError)
    assert only.id == 5
    with pytest.raises(NoMessage):
        await Answers().answer(b'{"jsonrpc": "2.0", "method": "x"}', 5)
    assert READ_AT_ONCE_BYTES < len(LONG)


async def test_half_a_character_in_the_arguments_of_a_call_harms_no_connection() -> None:
    web = Web(Peer())
    async with reached(web) as it:
        assert await it.call("echo", text="a\ud800b", **{"\udfff": 1}) == "done"
        assert rb"a\ud800b" in web.requests[-1].body
