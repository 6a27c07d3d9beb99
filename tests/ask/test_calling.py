"""When a model call is made again, and when not."""

import asyncio
from collections.abc import Sequence

import pytest

from session_runtime.ask.calling import DeadlineReached, Patience, call_model
from session_runtime.errors import PermanentError, TransientError
from session_runtime.models.base import ModelReply, ModelRequest, OnText
from session_runtime.registry.names import build_wire_names
from session_runtime.types import Message, ToolCall

REQUEST = ModelRequest((Message("user", "hi"),), (), build_wire_names([], "__"))
HELLO = ModelReply("hello")


class Playing:
    """A model that replies, or raises, what it was given, and remembers what it was asked."""

    def __init__(self, replies: Sequence[ModelReply | Exception]) -> None:
        self.replies = list(replies)
        self.asked: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.asked.append(request)
        match self.replies.pop(0):
            case Exception() as error:
                raise error
            case reply:
                on_text(reply.text)
                return reply

    async def aclose(self) -> None:
        raise NotImplementedError


class Waits(list[float]):
    """Stands in for the clock: remembers how long was slept."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def busy(retry_after_s: float | None = None) -> TransientError:
    return TransientError("busy", code="model.rate_limited", retry_after_s=retry_after_s)


async def run(
    model: Playing,
    waits: Waits,
    retries: int = 2,
    limit_s: float = 100.0,
    replies: list[ModelReply] | None = None,
) -> ModelReply:
    replies = [] if replies is None else replies
    deadline = asyncio.get_running_loop().time() + limit_s
    patience = Patience(retries, waits, jitter=lambda: 1.0)
    return await call_model(
        model, REQUEST, patience, deadline, lambda attempt: lambda text: None, replies.append
    )


@pytest.mark.requirement("ASK-9")
async def test_a_transient_failure_is_retried_with_the_same_messages_and_growing_waits() -> None:
    model, waits = Playing([busy(), busy(), HELLO]), Waits()
    assert await run(model, waits) == HELLO
    assert model.asked == [REQUEST] * 3
    assert waits == [0.5, 1.0]


@pytest.mark.requirement("ASK-9")
async def test_the_wait_that_the_provider_asks_for_is_kept() -> None:
    waits = Waits()
    await run(Playing([busy(retry_after_s=7.0), HELLO]), waits)
    assert waits == [7.0]


@pytest.mark.requirement("ASK-9")
async def test_a_wait_beyond_the_deadline_fails_at_once_with_the_providers_error() -> None:
    waits = Waits()
    with pytest.raises(TransientError, match="busy"):
        await run(Playing([busy(retry_after_s=3600.0), HELLO]), waits)
    assert waits == []


@pytest.mark.requirement("ASK-9")
async def test_a_permanent_failure_is_never_retried() -> None:
    model = Playing([PermanentError("no", code="model.unauthorized"), HELLO])
    with pytest.raises(PermanentError, match="no"):
        await run(model, Waits())
    assert len(model.asked) == 1


@pytest.mark.requirement("ASK-9")
async def test_patience_ends_with_the_last_error() -> None:
    with pytest.raises(TransientError, match="the second"):
        await run(
            Playing([busy(), TransientError("the second", code="model.down"), HELLO]),
            Waits(),
            retries=1,
        )


@pytest.mark.requirement("ASK-7")
async def test_a_blank_answer_is_asked_again_and_then_a_typed_failure() -> None:
    blank = ModelReply("  \n\u200b")
    replies: list[ModelReply] = []
    assert await run(Playing([blank, HELLO]), Waits(), replies=replies) == HELLO
    assert replies == [blank, HELLO]
    with pytest.raises(TransientError) as caught:
        await run(Playing([blank] * 3), Waits())
    assert caught.value.code == "model.empty_answer"


@pytest.mark.requirement("ASK-7")
async def test_calls_without_text_are_not_blank() -> None:
    reply = ModelReply("", (ToolCall("1", "end", ""),))
    assert await run(Playing([reply]), Waits()) == reply


@pytest.mark.requirement("ASK-8")
async def test_the_deadline_ends_a_call_that_hangs() -> None:
    class Hanging(Playing):
        async def reply(self, request: ModelRequest, on_text: OnText) -> ModelReply:
            await asyncio.Event().wait()
            raise NotImplementedError

    with pytest.raises(DeadlineReached):
        await run(Hanging([]), Waits(), limit_s=0.0)


@pytest.mark.requirement("ASK-9")
async def test_a_timeout_inside_the_model_is_not_taken_for_the_deadline() -> None:
    with pytest.raises(TimeoutError):
        await run(Playing([TimeoutError()]), Waits())
