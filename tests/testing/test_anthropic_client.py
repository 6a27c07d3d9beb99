"""The fake service speaks Messages: the official client understands it."""

from typing import Any

import pytest

from session_runtime.testing.replies import Call, ChatReply, reply_text
from session_runtime.testing.upstream import Replies, Upstream

anthropic = pytest.importorskip("anthropic", reason="the official client is not installed")

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
REPLY = ChatReply("one two", (Call("t", '{"a": 1}', "c0"),), USAGE, "tool_calls", items=(THOUGHT,))


async def asked(replies: Replies, **request: Any) -> Any:
    async with (
        Upstream(replies) as upstream,
        anthropic.AsyncAnthropic(
            base_url=upstream.base_url.removesuffix("/v1"), api_key="k", max_retries=0
        ) as client,
    ):
        question = [{"role": "user", "content": "hello"}]
        settings = {"model": "m", "max_tokens": 9, "messages": question, **request}
        if not settings.pop("stream", False):
            return await client.messages.create(**settings)
        async with client.messages.stream(**settings) as stream:
            return await stream.get_final_message()


@pytest.mark.parametrize("stream", [True, False])
async def test_thoughts_text_and_calls_are_understood_in_order(stream: bool) -> None:
    message = await asked([REPLY], stream=stream)
    thought, text, call = message.content
    assert (thought.thinking, thought.signature) == ("hm", "s")
    assert text.text == "one two"
    assert (call.id, call.name, call.input) == ("c0", "t", {"a": 1})
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens) == (3, 4)
    assert message.usage.output_tokens == 3


async def test_a_request_that_does_not_keep_the_rules_is_refused() -> None:
    turns = [{"role": "assistant", "content": "hello"}]
    with pytest.raises(anthropic.BadRequestError, match="a user begins"):
        await asked([reply_text("ok")], messages=turns)
