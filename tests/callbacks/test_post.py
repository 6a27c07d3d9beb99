"""One attempt over HTTP: no redirects, no proxies, in time, and no word of the address in an error."""

import asyncio
from contextlib import suppress

import pytest

from session_runtime.callbacks.post import open_post
from session_runtime.callbacks.sending import Answer, NoAnswerError
from tests.callbacks.receiver import receiving, status


@pytest.mark.requirement("SEC-3b")
async def test_a_message_arrives_as_it_is_and_redirects_are_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with receiving(status(307, "location: /elsewhere", "retry-after: 7")) as receiver:
        post = open_post()
        answer = await post(receiver.url, {"webhook-id": "ask_1"}, b"{}", 30.0)
        await post.aclose()
    assert answer == Answer(307, "7")
    [(path, headers, body)] = receiver.got
    assert (path, headers["webhook-id"], body) == ("/results?of=bot", "ask_1", b"{}")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/?token=abc", "http://[::1/?token=abc"])
async def test_what_cannot_be_reached_is_told_without_the_address(url: str) -> None:
    post = open_post()
    with pytest.raises(NoAnswerError, match="cannot be reached") as told:
        await post(url, {}, b"{}", 30.0)
    await post.aclose()
    assert "abc" not in str(told.value)


async def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    left = asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        port, post = server.sockets[0].getsockname()[1], open_post()
        with pytest.raises(NoAnswerError, match=r"within 0\.05 s"):
            await post(f"http://127.0.0.1:{port}/", {}, b"{}", 0.05)
        await post.aclose()
        await left.wait()


@pytest.mark.requirement("SEC-3b")
async def test_a_receiver_that_sends_heads_without_end_is_left() -> None:
    sent, left = [0], asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads = b"HTTP/1.1 100 Continue\r\n\r\n" * 400
        with suppress(ConnectionError):
            while sent[0] < 64 * 1024 * 1024:
                writer.write(heads)
                await writer.drain()
                sent[0] += len(heads)
        writer.transport.abort()
        left.set()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        port, post = server.sockets[0].getsockname()[1], open_post()
        with pytest.raises(NoAnswerError, match="16384 bytes came, and no answer"):
            await post(f"http://127.0.0.1:{port}/", {}, b"{}", 30.0)
        await post.aclose()
        await left.wait()
    assert sent[0] < 64 * 1024 * 1024
