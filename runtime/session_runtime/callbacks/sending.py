"""One message on its way: attempts, pauses between them, and what an answer means (SEC-3)."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from session_runtime.config.callbacks import Callback
from session_runtime.wire.callback import secret_bytes, signed_headers

FIRST_PAUSE_S: Final = 1.0
GROWTH: Final = 4.0
LONGEST_PAUSE_S: Final = 300.0
_PASSING: Final = frozenset({408, 425, 429})
"""Statuses below 500 after which the same message may be taken later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The status of an answer, and its header Retry-After as it came."""

    status: int
    retry_after: str = ""


class NoAnswerError(Exception):
    """There was no answer; the text says why and holds no address."""


PostOnce = Callable[[str, Mapping[str, str], bytes, float], Awaitable[Answer]]
"""Sends one message to an address, with headers, within so many seconds; as ``Post``."""


class Post(Protocol):
    """Sends one message; raises NoAnswerError if there is no answer within ``timeout_s``."""

    async def __call__(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        """Send it once."""

    async def aclose(self) -> None:
        """Close what was opened for it."""


@dataclass(frozen=True, slots=True)
class World:
    """The edges to the world: waiting, chance and the time of day."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
    today: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a message: how often it was sent, and why it was not taken; empty if it was."""

    attempts: int
    fault: str = ""


async def send(
    callback: Callable[[], Callback | None],
    turn: Callable[[], AbstractAsyncContextManager[None]],
    post: PostOnce,
    message_id: str,
    body: bytes,
    world: World,
) -> Sent:
    """Send a message until it is taken, refused for good, or was sent as often as may be.

    ``callback`` gives the address as it is configured at each attempt, None once it is not any more. Each
    attempt waits for its ``turn`` first: address, secret and time are those of the moment it is sent.
    """
    attempt, fault = 0, ""
    while True:
        async with turn():
            target = callback()
            if target is None:
                return Sent(attempt, "it is not configured any more")
            if attempt >= target.tries:
                return Sent(attempt, fault)
            attempt += 1
            fault, wait_s = await _try(target, post, message_id, body, world)
        if not fault or wait_s is None or attempt >= target.tries:
            return Sent(attempt, fault)
        await world.sleep(_pause(attempt, wait_s, world))


async def _try(
    target: Callback, post: PostOnce, message_id: str, body: bytes, world: World
) -> tuple[str, float | None]:
    """Send once: what is wrong (empty: nothing), and how long to wait at least; None: for good."""
    key = secret_bytes(target.secret.get_secret_value())
    if key is None:
        return "its secret cannot be used", None
    headers = signed_headers(key, message_id, int(world.today()), body)
    headers |= {"content-type": "application/json", "user-agent": "session-runtime"}
    try:
        answer = await post(target.url, headers, body, target.timeout_s)
    except NoAnswerError as error:
        return str(error), 0.0
    if 200 <= answer.status < 300:
        return "", 0.0
    passing = answer.status >= 500 or answer.status in _PASSING
    return f"it answered with {answer.status}", _seconds(answer.retry_after) if passing else None


def _pause(attempt: int, wait_s: float, world: World) -> float:
    """Longer with every attempt, at random, and no shorter than was asked for, within bounds."""
    backoff = FIRST_PAUSE_S * GROWTH ** (attempt - 1) * (0.5 + world.jitter() / 2)
    return min(LONGEST_PAUSE_S, max(backoff, wait_s))


def _seconds(retry_after: str) -> float:
    """The header in seconds; 0 for a date, or what is none."""
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
