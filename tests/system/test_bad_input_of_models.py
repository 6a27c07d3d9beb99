"""A model service that misbehaves costs the ask that met it, in words, and nothing else."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime.testing.replies import (
    Pace,
    Reply,
    reply_bytes,
    reply_calls,
    reply_error,
    reply_text,
)
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ErrorInfo, TextDelta
from tests.support import ask, chat_profile, opened, tool_folder, write_handler
from tests.system.leftovers import nothing_left

DEEP = b"[" * 10_000
MEBIBYTE = 1024 * 1024


def delta(text: str) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


# what the service does, the error's code, whether trying again may help, words of the message
FAULTS: dict[str, tuple[Reply, str, bool, str]] = {
    "401": (
        reply_error(401, "no such key"),
        "model.unauthorized",
        False,
        "check the profile's api_key",
    ),
    "403": (reply_error(403, "not for you"), "model.unauthorized", False, "not for you"),
    "429": (
        reply_error(429, "slow down", headers={"retry-after": "7"}),
        *("model.rate_limited", True, "slow down"),
    ),
    "500": (
        reply_error(500, "out of order"),
        "model.unavailable",
        True,
        "answered 500: out of order",
    ),
    "a web page": (
        reply_bytes(b"<html>", content_type="text/html"),
        *("model.not_an_api", False, "it sent a web page"),
    ),
    "a cut stream": (
        reply_bytes(delta("he"), b"x", pace=Pace(cut_after=1)),
        *("model.connection_lost", True, "broke"),
    ),
    "no answer": (
        reply_bytes(b"x", pace=Pace(cut_after=0)),
        *("model.connection_lost", True, "without sending a response"),
    ),
    "an empty body": (
        reply_bytes(b"", content_type="application/json"),
        *("model.broken_reply", True, "an empty body"),
    ),
    "an empty answer": (reply_text(""), "model.empty_answer", True, "neither text nor a tool call"),
    "JSON too deep": (
        reply_bytes(DEEP, content_type="application/json"),
        *("model.broken_reply", True, "no JSON"),
    ),
    "an event too deep": (
        reply_bytes(b"data: " + DEEP + b"\n\n"),
        *("model.broken_reply", True, "no JSON"),
    ),
    "a stream without end": (
        reply_bytes(*[delta("x" * MEBIBYTE)] * 40),
        *("model.reply_too_large", False, "larger than"),
    ),
    "a line without end": (
        reply_bytes(b"data: ", *[b"x" * MEBIBYTE] * 10),
        *("model.reply_too_large", False, "a line of more than"),
    ),
}


def configuration(folder: Path, upstream: Upstream, **profile: Any) -> str:
    write_handler(folder / "tools", "good")
    return (
        tool_folder(folder)
        + "[skills]\nprefetch_tools = []\n"
        + chat_profile(upstream.base_url, **profile)
    )


@pytest.mark.requirement("ASK-9")
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_the_service_is_told_and_loses_nothing(tmp_path: Path, fault: str) -> None:
    reply, code, retryable, says = FAULTS[fault]
    # a kept connection that closes without an answer is replaced once, so that it has to do so twice
    times = 2 if fault == "no answer" else 1
    replies = [reply_calls(("good", {"n": 1})), *[reply] * times, reply_text("fine again")]
    async with Upstream(replies) as upstream:
        with nothing_left():
            async with opened(tmp_path, configuration(tmp_path, upstream)) as runtime:
                failed = (await ask(runtime, "go")).result
                again = (await ask(runtime, "go on")).result
            await upstream.left()
    assert failed.error is not None
    assert (failed.outcome, failed.error.code) == ("failed", code)
    assert failed.error.retryable is retryable
    assert failed.error.retry_after_s == (7.0 if fault == "429" else None)
    assert says in failed.error.message
    assert [m.content for m in failed.new_messages if m.role == "tool"] == ['{"got":{"n":1}}']
    assert (again.outcome, again.text) == ("answered", "fine again")


async def test_a_stream_that_never_ends_is_left_when_the_time_is_up(tmp_path: Path) -> None:
    drop = asyncio.Semaphore(1)
    endless = reply_bytes(delta("drip "), delta("drop "), pace=Pace(step=drop))
    async with (
        Upstream([endless, reply_text("fine")]) as upstream,
        opened(tmp_path, configuration(tmp_path, upstream)) as runtime,
    ):
        asked = await ask(runtime, "go", deadline_s=0.3)
        await upstream.left()
        again = (await ask(runtime, "go on")).result
    assert [event.text for event in asked.of(TextDelta)] == ["drip "]
    assert asked.result.error == ErrorInfo("limit.deadline", "the time for this request is up")
    assert again.text == "fine"


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_of_a_megabyte_is_delivered_whole(tmp_path: Path, stream: bool) -> None:
    text = ("All-is-well." * 80 + " ") * 1_100
    async with (
        Upstream([reply_text(text)]) as upstream,
        opened(tmp_path, configuration(tmp_path, upstream, stream=stream)) as runtime,
    ):
        asked = await ask(runtime, "go")
    assert asked.result.text == text
    assert "".join(event.text for event in asked.of(TextDelta)) == text
