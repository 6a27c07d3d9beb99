"""The fake chat server speaks the dialect: the official client understands it."""

from typing import Any

import pytest

from session_runtime.testing.replies import reply_calls, reply_error, reply_text
from session_runtime.testing.upstream import Replies, Upstream

openai = pytest.importorskip("openai", reason="the official client is not installed")

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
QUESTION: list[Any] = [{"role": "user", "content": "hello"}]


async def asked(replies: Replies, **request: Any) -> Any:
    async with (
        Upstream(replies) as upstream,
        openai.AsyncOpenAI(base_url=upstream.base_url, api_key="k", max_retries=0) as client,
    ):
        answer = await client.chat.completions.create(model="m", messages=QUESTION, **request)
        return [chunk async for chunk in answer] if request.get("stream") else answer


async def test_a_text_is_understood() -> None:
    answer = await asked([reply_text("one two", usage=USAGE)])
    assert answer.choices[0].message.content == "one two"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == 10


async def test_calls_are_understood() -> None:
    answer = await asked([reply_calls(("t", {"a": 1}), ("u", "{broken"))])
    calls = answer.choices[0].message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        ("c0", "t", '{"a": 1}'),
        ("c1", "u", "{broken"),
    ]


async def test_a_streamed_text_is_understood() -> None:
    chunks = await asked(
        [reply_text("one two", usage=USAGE)], stream=True, stream_options={"include_usage": True}
    )
    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert [text for text in texts if text] == ["one ", "two"]
    assert chunks[-1].usage.total_tokens == 10


async def test_streamed_calls_are_understood() -> None:
    chunks = await asked([reply_calls(("t", {"a": 1}))], stream=True)
    deltas = [
        delta
        for chunk in chunks
        for choice in chunk.choices
        for delta in choice.delta.tool_calls or ()
    ]
    assert (deltas[0].id, deltas[0].function.name) == ("c0", "t")
    assert "".join(delta.function.arguments for delta in deltas) == '{"a": 1}'


async def test_an_error_is_understood() -> None:
    with pytest.raises(openai.RateLimitError, match="slow down"):
        await asked([reply_error(429, "slow down")])
