"""One reply for one turn: which profile is asked, and how often, is decided here alone (ASK-9)."""

import asyncio
import itertools
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from session_runtime.errors import PermanentError, TransientError
from session_runtime.generation import Profile
from session_runtime.models.base import FILTERED, INCOMPLETE, ModelReply, ModelRequest, OnText

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 20.0
CONTEXT_TOO_LONG = "model.context_too_long"
_WHY_BLANK: Mapping[str | None, str] = MappingProxyType(
    {
        "length": " before its output limit (finish_reason 'length'); raise the profile's "
        "max_output_tokens, which counts thinking too",
        INCOMPLETE: f": the service broke it off (finish_reason {INCOMPLETE!r})",
    }
)
_log = logging.getLogger(__name__)

ModelFault = TransientError | PermanentError


class DeadlineReached(Exception):
    """The ask's time is up."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A profile that may answer a turn, and the turn as its model is asked.

    ``obstacle`` is why it cannot take over from another profile; None if it can.
    """

    profile: Profile
    request: ModelRequest
    obstacle: str | None = None


@dataclass(frozen=True, slots=True)
class Pauses:
    """How waiting between attempts is done; both are edges to the world."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class ModelCall:
    """The call of one turn; ``deadline`` is event-loop time.

    ``on_attempt(n, profile)`` is called before attempt n, counted over all profiles, and returns where
    its text goes; ``on_reply`` with every reply, a blank one too, and with what was told of one that
    broke off: it was paid for.
    """

    def __init__(
        self,
        deadline: float,
        on_attempt: Callable[[int, str], OnText],
        on_reply: Callable[[ModelReply], None],
        pauses: Pauses | None = None,
    ) -> None:
        self._deadline = deadline
        self._on_attempt = on_attempt
        self._on_reply = on_reply
        self._pauses = pauses or Pauses()
        self._attempts = itertools.count(1)

    async def answer(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ModelReply]:
        """Ask the first candidate; each time one fails for good, the next that can take over.

        Raises TransientError or PermanentError when all have failed, DeadlineReached at the deadline.
        """
        story = _Story()
        for candidate in candidates:
            if not story.lets(candidate):
                continue
            try:
                return candidate, await self._ask(candidate)
            except (TransientError, PermanentError) as error:
                story.failed(candidate, error)
        raise story.end()

    async def _ask(self, candidate: Candidate) -> ModelReply:
        """Ask until there is a reply that says something, with the same messages each time."""
        retries = candidate.profile.settings.max_retries
        for attempt in range(1, retries + 2):
            if asyncio.get_running_loop().time() >= self._deadline:
                raise DeadlineReached
            try:
                return await self._ask_once(candidate)
            except TransientError as error:
                if attempt > retries:
                    raise
                await self._wait_before_retry(attempt, error)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _ask_once(self, candidate: Candidate) -> ModelReply:
        on_text = self._on_attempt(next(self._attempts), candidate.profile.name)
        request = replace(candidate.request, until=self._deadline)
        told: list[str] = []

        def tell(text: str) -> None:
            told.append(text)
            on_text(text)

        reply: ModelReply | None = None
        try:
            reply = await self._in_time(candidate.profile.model.reply(request, tell))
        finally:
            if reply is not None or told:
                self._on_reply(reply or ModelReply("".join(told)))
        _refuse_blank(reply)
        return reply

    async def _in_time(self, awaitable: Awaitable[ModelReply]) -> ModelReply:
        limit = asyncio.timeout_at(self._deadline)
        try:
            async with limit:
                return await awaitable
        except TimeoutError as error:
            if limit.expired():
                raise DeadlineReached from error
            raise

    async def _wait_before_retry(self, attempt: int, error: TransientError) -> None:
        """Back off with full jitter, or as long as the provider asked; never past the deadline."""
        backoff = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)) * self._pauses.jitter()
        wait = max(backoff, error.retry_after_s or 0.0)
        if asyncio.get_running_loop().time() + wait >= self._deadline:
            raise error
        await self._pauses.sleep(wait)


class _Story:
    """What became of the candidates so far: who failed and why, who could not take over."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._failures: list[tuple[Profile, ModelFault]] = []

    def lets(self, candidate: Candidate) -> bool:
        """Whether this candidate is asked: the first is, another if it can take over."""
        if not self._failures:
            return True
        failed, error = self._failures[-1]
        name = candidate.profile.name
        obstacle = candidate.obstacle or _too_long_as_well(failed, error, candidate.profile)
        if obstacle is not None:
            self._sentences.append(f"its fallback {name!r} cannot take over: {obstacle}")
            return False
        _log.warning(
            "model profile %r failed (%s): %r takes over for the rest of the ask",
            failed.name,
            error.code,
            name,
        )
        return True

    def failed(self, candidate: Candidate, error: ModelFault) -> None:
        """Remember a failure for good."""
        who = "its fallback" if self._failures else "model profile"
        self._sentences.append(f"{who} {candidate.profile.name!r} failed: {error} ({error.code})")
        self._failures.append((candidate.profile, error))

    def end(self) -> ModelFault:
        """What the caller is told when nobody is left, with all that happened in its text.

        The kind of failure is the first that may pass, if one may, so that a caller who can try again
        later does; else the first one.
        """
        errors = [error for _, error in self._failures]
        told = next((error for error in errors if isinstance(error, TransientError)), errors[0])
        if len(self._sentences) == 1:
            return told
        text = "; ".join(self._sentences)
        if isinstance(told, TransientError):
            return TransientError(text, code=told.code, retry_after_s=told.retry_after_s)
        return PermanentError(text, code=told.code)


def _too_long_as_well(failed: Profile, error: ModelFault, other: Profile) -> str | None:
    """Why a conversation that was too long for one profile would be for another, or may be."""
    if error.code != CONTEXT_TOO_LONG:
        return None
    had, has = failed.settings.context_window, other.settings.context_window
    if had is not None and has is not None and has > had:
        return None
    return "its context_window is not known to be larger"


def _refuse_blank(reply: ModelReply) -> None:
    """A filter keeps the same answer back again, so that only another model may give one."""
    if reply.calls or any(_is_visible(char) for char in reply.text):
        return
    if reply.finish_reason == FILTERED:
        raise PermanentError(
            "the model's service kept the whole answer back "
            f"(finish_reason {FILTERED!r}); ask in other words, or name a fallback",
            code="model.filtered",
        )
    raise TransientError(
        f"the model gave neither text nor a tool call{_WHY_BLANK.get(reply.finish_reason, '')}",
        code="model.empty_answer",
    )


def _is_visible(char: str) -> bool:
    return char.isprintable() and not char.isspace()
