"""One reply from the model, asked for again where that can help: the only place that retries it (ASK-9)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from session_runtime.errors import TransientError
from session_runtime.models.base import Model, ModelReply, ModelRequest, OnText

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0


class DeadlineReached(Exception):
    """The ask's time is up."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long to wait between attempts; ``sleep`` and ``jitter`` are the edges."""

    max_retries: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


async def call_model(
    model: Model,
    request: ModelRequest,
    patience: Patience,
    deadline: float,
    on_attempt: Callable[[int], OnText],
    on_reply: Callable[[ModelReply], None],
) -> ModelReply:
    """Ask until there is a reply that says something, with the same messages each time.

    ``on_attempt(n)`` is called before attempt n and returns where its text goes, ``on_reply`` with
    every reply, a blank one too: it was paid for. Raises the last
    TransientError when patience ends, PermanentError at once, DeadlineReached at ``deadline``
    (event-loop time).
    """
    for attempt in range(1, patience.max_retries + 2):
        if asyncio.get_running_loop().time() >= deadline:
            raise DeadlineReached
        try:
            reply = await _before(deadline, model.reply(request, on_attempt(attempt)))
            on_reply(reply)
            _refuse_blank(reply)
            return reply
        except TransientError as error:
            if attempt > patience.max_retries:
                raise
            await _wait_before_retry(patience, attempt, error, deadline)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _refuse_blank(reply: ModelReply) -> None:
    if not reply.calls and not any(_is_visible(char) for char in reply.text):
        raise TransientError(
            "the model gave neither text nor a tool call", code="model.empty_answer"
        )


def _is_visible(char: str) -> bool:
    return char.isprintable() and not char.isspace()


async def _before(deadline: float, awaitable: Awaitable[ModelReply]) -> ModelReply:
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            return await awaitable
    except TimeoutError as error:
        if limit.expired():
            raise DeadlineReached from error
        raise


async def _wait_before_retry(
    patience: Patience, attempt: int, error: TransientError, deadline: float
) -> None:
    """Back off with full jitter, or as long as the provider asked; never past the deadline."""
    backoff = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)) * patience.jitter()
    wait = max(backoff, error.retry_after_s or 0.0)
    if asyncio.get_running_loop().time() + wait >= deadline:
        raise error
    await patience.sleep(wait)
