"""The one owner of asks that outlive their client: by id and by idempotency key, for a bounded time.

Whether an ask may run is decided in ``service``; who may look at one, by the door.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from session_runtime.ask.emitter import Emit, new_ask_id
from session_runtime.ask.event_log import EventLog
from session_runtime.ask.lengths import chars_of_request
from session_runtime.ask.places import user_of
from session_runtime.ask.shelf import MOST_GONE, Ended, Gone, GoneAsks, Shelf
from session_runtime.errors import BusyError, RequestError
from session_runtime.types import (
    AskEvent,
    AskFinished,
    AskRequest,
    AskResult,
    AskStarted,
    ConfirmationRequired,
    ErrorInfo,
)

MOST_ENDED: Final = 1_024
MOST_CHARS: Final = 64 * 1024 * 1024
MOST_ASKED_CHARS: Final = 256 * 1024 * 1024
KEEP_S: Final = 600.0

_log: Final = logging.getLogger(__name__)

AskFunction = Callable[[AskRequest, Emit, str, int], Coroutine[Any, Any, AskResult]]
"""Runs one ask under a given id, of that length in characters, as ``AskService.ask`` does."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many ended asks are kept, how much of them in characters, and for how many seconds.

    ``gone`` is how many are remembered whose results made room, ``asked_chars`` how long the requests of
    those that have not ended may be together.
    """

    ended: int = MOST_ENDED
    chars: int = MOST_CHARS
    gone: int = MOST_GONE
    asked_chars: int = MOST_ASKED_CHARS
    keep_s: float = KEEP_S


class KeptAsk:
    """One ask that goes on without its client; whoever knows it may follow it and wait for its end."""

    def __init__(
        self, ask_id: str, request: AskRequest, key: str | None, digest: bytes, asked_chars: int
    ) -> None:
        self.ask_id = ask_id
        self.principal: Final = request.principal.name
        self.user: Final = user_of(request)
        self.key: Final = key
        self.digest: Final = digest
        self.log: Final = EventLog()
        self.started: Final = time.time()
        self.has_begun = False
        self.tokens: set[str] = set()
        self.ended: float | None = None
        self.kept_until: float | None = None
        self._request: AskRequest | None = request
        self._asked_chars: Final = asked_chars

    @property
    def request(self) -> AskRequest | None:
        """What was asked; None once the ask has ended and waits for no consent."""
        return self._request

    @property
    def result(self) -> AskResult | None:
        """How it ended; None until it has."""
        return self.log.result

    @property
    def chars(self) -> int:
        """How much of it is kept, in characters."""
        return self.log.chars + (0 if self._request is None else self._asked_chars)

    def is_about_to_ask(self, tokens: Iterable[str]) -> bool:
        """Whether it has given out all these tokens, and is about to end for that."""
        return self.result is None and self.tokens.issuperset(tokens)

    async def finished(self) -> AskResult:
        """Wait for its end; to cancel the wait does not disturb the ask."""
        while (result := self.log.result) is None:
            await self.log.change()
        return result

    def end(self, keep_s: float) -> None:
        """Keep no more of it than is needed after its end."""
        self.ended = time.time()
        self.kept_until = self.ended + keep_s
        if self._request is not None and not (self.result and self.result.pending):
            self._request = None


class KeptAsks:
    """Kept asks of one process, in its memory only: a restart forgets them; the event loop's alone.

    One that runs is kept however long that takes; how many may run is the ask service's bound. One that
    has ended is kept within ``bounds``; who makes room is decided by ``shelf``. Of one that did, it is
    remembered for the rest of its time that it ran: its key does not run it again. ``clock`` decides when
    the time of an ended one is up.
    """

    def __init__(
        self,
        ask: AskFunction,
        bounds: Bounds | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._asks: dict[str, KeptAsk] = {}
        self._by_key: dict[tuple[str, str], KeptAsk] = {}
        self._shelf = Shelf()
        self._gone = GoneAsks(self._bounds.gone)
        self._asked: dict[str, int] = {}  # the sizes of requests that have not ended
        self._tasks: dict[str, asyncio.Task[AskResult]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._asks)

    @property
    def chars(self) -> int:
        """How much of ended asks is kept, in characters."""
        return self._shelf.chars

    def find(self, ask_id: str) -> KeptAsk | None:
        """The ask of that id, None if it is not kept (any more)."""
        self._forget_old()
        return self._asks.get(ask_id)

    def gone(self, ask_id: str) -> Gone | None:
        """The ask of that id if it has ended and its result made room for others."""
        return self._gone.find(ask_id, self._clock())

    def joined(self, principal: str, key: str, digest: bytes) -> KeptAsk | None:
        """The ask that the principal started with this key and the same content, None if there is none.

        Raises RequestError: ``request.key_reused`` if the content was another, ``request.gone`` if the
        result made room for others.
        """
        self._forget_old()
        kept = self._by_key.get((principal, key))
        known = kept or self._gone.of_key(principal, key, self._clock())
        if known is not None and known.digest != digest:
            raise RequestError(
                f"the key {key[:100]!r} belongs to {known.ask_id}, which was asked something else:"
                " send a new key with a new request, and the very same request with the same key",
                code="request.key_reused",
            )
        if isinstance(known, Gone):
            raise no_longer_kept(known)
        return kept

    async def start(
        self,
        request: AskRequest,
        *,
        key: str | None = None,
        digest: bytes = b"",
        chars: int | None = None,
    ) -> KeptAsk:
        """Start an ask that goes on without its caller, or join the one that ``joined`` gives.

        An ask that there is no room for has ended as ``busy.*`` when this returns, and is not kept.
        ``digest`` stands for the content of the request, ``chars`` is how long that is, if its door has
        measured it. Raises RequestError as ``joined`` does, and
        BusyError (``busy.queue``) if the requests that have not ended are too long together.
        """
        if key is not None and (known := self.joined(request.principal.name, key, digest)):
            return known
        chars = chars_of_request(request) if chars is None else chars
        kept = KeptAsk(new_ask_id(), request, key, digest, chars)
        self._check_room(kept.chars)
        self._asked[kept.ask_id] = kept.chars
        self._asks[kept.ask_id] = kept
        if key is not None:
            self._by_key[kept.principal, key] = kept
        asking = self._ask(request, partial(self._emit, kept), kept.ask_id, chars)
        task = asyncio.create_task(asking, name=f"kept {kept.ask_id}")
        self._tasks[kept.ask_id] = task
        task.add_done_callback(partial(self._is_done, kept))
        await asyncio.sleep(0)  # the ask's first step, in which it is refused if there is no room
        return kept

    async def aclose(self) -> None:
        """Cancel what runs and forget everything."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for ask_id in tuple(self._timers):
            self._forget(ask_id)

    def _check_room(self, chars: int) -> None:
        held = sum(self._asked.values())
        if held and held + chars > self._bounds.asked_chars:
            raise BusyError(
                f"{len(self._asked)} asks that go on alone hold {held} characters, and"
                f" {self._bounds.asked_chars} is the most",
                code="busy.queue",
            )

    def _emit(self, kept: KeptAsk, event: AskEvent) -> None:
        kept.log.emit(event)
        match event:
            case AskStarted():
                kept.has_begun = True
            case ConfirmationRequired():
                kept.tokens.add(event.pending.token)
            case AskFinished() if kept.ended is None:
                self._end(kept, event.result)
            case _:
                pass

    def _is_done(self, kept: KeptAsk, task: asyncio.Task[AskResult]) -> None:
        """See to it that an ask whose task broke has ended too."""
        del self._tasks[kept.ask_id]
        broken = None if task.cancelled() else task.exception()
        if broken is not None:
            _log.error("%s broke", kept.ask_id, exc_info=broken)
        if kept.ended is None:
            error = ErrorInfo("internal", "the runtime failed; its log has the details")
            result = AskResult(kept.ask_id, "failed", error=error)
            last = kept.log.next_seq
            self._emit(kept, AskFinished(ask_id=kept.ask_id, seq=last, result=result))

    def _end(self, kept: KeptAsk, result: AskResult) -> None:
        keep_s = self._bounds.keep_s
        self._asked.pop(kept.ask_id, None)
        kept.end(keep_s)
        if _may_be_asked_again(kept, result):
            self._free_key(kept)
        if is_turned_away(result):
            del self._asks[kept.ask_id]
            return
        self._shelf.put(
            kept.ask_id, Ended(kept.principal, kept.chars, expires=self._clock() + keep_s)
        )
        loop = asyncio.get_running_loop()
        self._timers[kept.ask_id] = loop.call_later(keep_s, self._forget, kept.ask_id)
        bounds = self._bounds
        while (first := self._shelf.first_to_go(bounds.ended, bounds.chars)) is not None:
            self._make_room(self._asks[first])

    def _make_room(self, kept: KeptAsk) -> None:
        """Keep no more of an ended ask than that it was asked, for the rest of its time."""
        expires, ended = self._shelf.drop(kept.ask_id).expires, kept.ended or kept.started
        key = kept.key if self._free_key(kept) else None
        del self._asks[kept.ask_id]
        dropped = self._gone.add(
            Gone(kept.ask_id, kept.principal, key, kept.digest, ended, expires)
        )
        if dropped is not None:
            self._timers.pop(dropped).cancel()

    def _forget_old(self) -> None:
        now = self._clock()
        while (ask_id := self._shelf.expired(now)) is not None:
            self._forget(ask_id)

    def _forget(self, ask_id: str) -> None:
        """Know nothing more of an ask that has ended."""
        self._timers.pop(ask_id).cancel()
        kept = self._asks.pop(ask_id, None)
        if kept is None:
            self._gone.drop(ask_id)
        else:
            self._shelf.drop(ask_id)
            self._free_key(kept)

    def _free_key(self, kept: KeptAsk) -> bool:
        """Let the key of an ask be used anew; tells whether it stood for this ask until now."""
        if kept.key is None or self._by_key.get((kept.principal, kept.key)) is not kept:
            return False
        del self._by_key[kept.principal, kept.key]
        return True


def no_longer_kept(gone: Gone) -> RequestError:
    """Why an ask that ran is not answered by its result, and was not run again."""
    when = time.strftime("%H:%M:%S UTC", time.gmtime(gone.ended))
    return RequestError(
        f"{gone.ask_id} ended at {when}, and its result is gone, as it had to make room for others;"
        " nothing was run again. Ask anew, with another key, only if it may run twice",
        code="request.gone",
    )


def follow_up(
    kept: KeptAsk, text: str, confirmations: tuple[str, ...], declined: tuple[str, ...]
) -> AskRequest:
    """The request that goes on where an ask waits for a person's consent (RTE-9).

    Raises RequestError if it waits for none, or has not given out these tokens.
    """
    asked, result = kept.request, kept.result
    if asked is None or result is None:
        state = "is still running" if result is None else "waits for nobody's consent"
        raise RequestError(f"{kept.ask_id} {state}", code="request.nothing_to_confirm")
    given = {call.token for call in result.pending}
    if not given.issuperset((*confirmations, *declined)):
        raise RequestError(
            f"a token is none of the {len(given)} that {kept.ask_id} gave out: see pending of its result",
            code="confirmation.invalid",
        )
    if asked.call is not None:
        return replace(asked, confirmations=confirmations, declined=declined)
    return replace(
        asked,
        text=text,
        messages=(),
        history=(*asked.history, *result.new_messages),
        confirmations=confirmations,
        declined=declined,
    )


def _may_be_asked_again(kept: KeptAsk, result: AskResult) -> bool:
    """Whether nothing ran, as it was refused before it began or its time was up before its turn came."""
    return result.refused or (result.outcome == "limit" and not kept.has_begun)


def is_turned_away(result: AskResult) -> bool:
    """Whether an ask did not begin as there was no room for it."""
    return result.refused and result.error is not None and result.error.code.startswith("busy")
