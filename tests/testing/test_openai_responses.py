"""The fake service speaks Responses: the official client understands it, chained too."""

from typing import Any

import pytest

from session_runtime.testing.replies import Call, ChatReply, reply_calls, reply_error, reply_text
from session_runtime.testing.upstream import Replies, Upstream

openai = pytest.importorskip("openai", reason="the official client is not installed")

USAGE = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "completion_tokens_details": {"reasoning_tokens": 2},
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


async def asked(replies: Replies, **request: Any) -> Any:
    async with (
        Upstream(replies) as upstream,
        openai.AsyncOpenAI(base_url=upstream.base_url, api_key="k", max_retries=0) as client,
    ):
        answer = await client.responses.create(model="m", input="hello", **request)
        return [event async for event in answer] if request.get("stream") else answer


def called(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "found"}


async def test_a_text_is_understood() -> None:
    answer = await asked([reply_text("one two", usage=USAGE)])
    assert (answer.output_text, answer.status) == ("one two", "completed")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 3)
    assert answer.usage.output_tokens_details.reasoning_tokens == 2


async def test_reasoning_text_and_calls_are_understood_in_order() -> None:
    answer = await asked([ChatReply("Wait.", (Call("t", "{broken", "c0"),), items=(THOUGHT,))])
    reasoning, message, call = answer.output
    assert (reasoning.type, reasoning.encrypted_content) == ("reasoning", "gAAA")
    assert message.content[0].text == "Wait."
    assert (call.call_id, call.name, call.arguments) == ("c0", "t", "{broken")


@pytest.mark.parametrize(
    ("reason", "detail"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
async def test_an_answer_that_stopped_early_is_understood(reason: str, detail: str) -> None:
    answer = await asked([ChatReply("one", finish_reason=reason)])
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", detail)


async def test_a_stream_is_understood() -> None:
    reply = ChatReply("one two", (Call("t", '{"a": 1}', "c0"),), USAGE, items=(THOUGHT,))
    events = await asked([reply], stream=True)
    assert [event.type.removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(17))
    assert "".join(e.delta for e in events if e.type.endswith("text.delta")) == "one two"
    assert "".join(e.delta for e in events if e.type.endswith("arguments.delta")) == '{"a": 1}'
    assert events[-1].response.output_text == "one two"


async def test_the_client_gathers_a_stream_into_the_response_of_a_plain_request() -> None:
    replies = [reply_calls(("t", {"a": 1}), text="Wait.")] * 2
    async with (
        Upstream(replies) as upstream,
        openai.AsyncOpenAI(base_url=upstream.base_url, api_key="k", max_retries=0) as client,
    ):
        plain = await client.responses.create(model="m", input="hello")
        async with client.responses.stream(model="m", input="hello") as stream:
            streamed = await stream.get_final_response()
    assert [item.type for item in streamed.output] == [item.type for item in plain.output]
    assert streamed.output_text == plain.output_text == "Wait."


async def test_a_turn_is_chained_to_the_response_before() -> None:
    seen: list[Any] = []

    def reply(request: Any) -> Any:
        seen.append(request["input"])
        return reply_calls(("t", {})) if len(seen) == 1 else reply_text("done")

    async with (
        Upstream(reply) as upstream,
        openai.AsyncOpenAI(base_url=upstream.base_url, api_key="k", max_retries=0) as client,
    ):
        first = await client.responses.create(model="m", input="hello")
        second = await client.responses.create(
            model="m", previous_response_id=first.id, input=[called("c0")]
        )
    assert second.output_text == "done"
    assert [item.get("type") for item in seen[1]] == [
        None,
        "function_call",
        "function_call_output",
    ]
    assert upstream.requests[1]["input"] == [called("c0")]


@pytest.mark.parametrize("store", [True, False])
async def test_a_response_that_is_not_there_is_refused(store: bool) -> None:
    async with (
        Upstream([reply_text("one"), reply_text("two")]) as upstream,
        openai.AsyncOpenAI(base_url=upstream.base_url, api_key="k", max_retries=0) as client,
    ):
        first = await client.responses.create(model="m", input="hello", store=store)
        unknown = first.id if not store else "resp_other"
        with pytest.raises(openai.NotFoundError) as caught:
            await client.responses.create(model="m", input="more", previous_response_id=unknown)
    assert (caught.value.code, caught.value.param) == (
        "previous_response_not_found",
        "previous_response_id",
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("and now?", "No tool output found for function call c0."),
        (
            [called("c0"), called("c9")],
            "No tool call found for function call output with call_id c9.",
        ),
    ],
)
async def test_calls_and_outputs_must_belong_together(more: Any, said: str) -> None:
    async with (
        Upstream([reply_calls(("t", {}))]) as upstream,
        openai.AsyncOpenAI(base_url=upstream.base_url, api_key="k", max_retries=0) as client,
    ):
        first = await client.responses.create(model="m", input="hello")
        with pytest.raises(openai.BadRequestError, match=said):
            await client.responses.create(model="m", input=more, previous_response_id=first.id)


async def test_an_error_is_understood() -> None:
    with pytest.raises(openai.RateLimitError, match="slow down"):
        await asked([reply_error(429, "slow down")])
