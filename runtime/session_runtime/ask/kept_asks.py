"""The one owner of asks that outlive their client: by id and by idempotency key, for a bounded time.

Whether an ask may run is decided in ``service``; who may look at one, by the door.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from session_runtime.ask.emitter import Emit, new_ask_id
from session_runtime.ask.event_log import EventLog, chars_of_messages
from session_runtime.ask.places import user_of
from session_runtime.errors import BusyError, RequestError
from session_runtime.types import AskEvent, AskFinished, AskRequest, AskResult, ErrorInfo

MOST_ENDED: Final = 1_024
MOST_CHARS: Final = 64 * 1024 * 1024
MOST_ASKED_CHARS: Final = 256 * 1024 * 1024
KEEP_S: Final = 600.0

_BEFORE_IT_BEGAN: Final = ("busy", "request", "auth", "confirmation")
_log: Final = logging.getLogger(__name__)

AskFunction = Callable[[AskRequest, Emit, str], Coroutine[Any, Any, AskResult]]
"""Runs one ask under a given id, as ``AskService.ask`` does."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many ended asks are kept, how much of them in characters, and for how many seconds.

    ``asked_chars`` is how long the requests of those that have not ended may be together.
    """

    ended: int = MOST_ENDED
    chars: int = MOST_CHARS
    asked_chars: int = MOST_ASKED_CHARS
    keep_s: float = KEEP_S


class KeptAsk:
    """One ask that goes on without its client; whoever knows it may follow it and wait for its end."""

    def __init__(self, ask_id: str, request: AskRequest, key: str | None, digest: bytes) -> None:
        self.ask_id = ask_id
        self.principal: Final = request.principal.name
        self.user: Final = user_of(request)
        self.key: Final = key
        self.digest: Final = digest
        self.log: Final = EventLog()
        self.started: Final = time.time()
        self.ended: float | None = None
        self.kept_until: float | None = None
        self._request: AskRequest | None = request

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
        asked = self._request
        if asked is None:
            return self.log.chars
        texts = len(asked.text or "") + len(asked.instructions or "")
        texts += asked.call.chars if asked.call is not None else 0
        return self.log.chars + texts + chars_of_messages((*asked.history, *asked.messages))

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
    has ended is kept within ``bounds``: where there are too many, the oldest of the principal that has
    the most goes first. ``clock`` decides when the time of an ended one is up.
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
        self._ended: dict[str, tuple[float, int]] = {}  # expiry and size, the oldest first
        self._chars = 0
        self._asked: dict[str, int] = {}  # the sizes of requests that have not ended
        self._tasks: dict[str, asyncio.Task[AskResult]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        return len(self._asks)

    @property
    def chars(self) -> int:
        """How much of ended asks is kept, in characters."""
        return self._chars

    def find(self, ask_id: str) -> KeptAsk | None:
        """The ask of that id, None if it is not kept (any more)."""
        self._forget_old()
        return self._asks.get(ask_id)

    def joined(self, principal: str, key: str, digest: bytes) -> KeptAsk | None:
        """The ask that the principal started with this key and the same content, None if there is none.

        Raises RequestError (``request.key_reused``) if the content was another.
        """
        self._forget_old()
        known = self._by_key.get((principal, key))
        if known is not None and known.digest != digest:
            raise RequestError(
                f"the key {key[:100]!r} belongs to {known.ask_id}, which was asked something else:"
                " send a new key with a new request, and the very same request with the same key",
                code="request.key_reused",
            )
        return known

    async def start(
        self, request: AskRequest, *, key: str | None = None, digest: bytes = b""
    ) -> KeptAsk:
        """Start an ask that goes on without its caller, or join the one that ``joined`` gives.

        An ask that there is no room for has ended as ``busy.*`` when this returns, and is not kept.
        ``digest`` stands for the content of the request. Raises RequestError as ``joined`` does, and
        BusyError (``busy.queue``) if the requests that have not ended are too long together.
        """
        if key is not None and (known := self.joined(request.principal.name, key, digest)):
            return known
        kept = KeptAsk(new_ask_id(), request, key, digest)
        self._check_room(kept.chars)
        self._asked[kept.ask_id] = kept.chars
        self._asks[kept.ask_id] = kept
        if key is not None:
            self._by_key[kept.principal, key] = kept
        asking = self._ask(request, partial(self._emit, kept), kept.ask_id)
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
        for ask_id in tuple(self._asks):
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
        if isinstance(event, AskFinished) and kept.ended is None:
            self._end(kept, event.result)

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
        family = _family(result)
        if family in _BEFORE_IT_BEGAN:
            self._free_key(kept)  # nothing ran: the same may be tried again
        if family == "busy":
            del self._asks[kept.ask_id]
            return
        self._ended[kept.ask_id] = (self._clock() + keep_s, kept.chars)
        self._chars += kept.chars
        loop = asyncio.get_running_loop()
        self._timers[kept.ask_id] = loop.call_later(keep_s, self._forget, kept.ask_id)
        while len(self._ended) > self._bounds.ended or self._chars > self._bounds.chars:
            self._forget(self._first_to_go())

    def _first_to_go(self) -> str:
        owners = Counter(self._asks[ask_id].principal for ask_id in self._ended)
        [(most, _)] = owners.most_common(1)
        return next(ask_id for ask_id in self._ended if self._asks[ask_id].principal == most)

    def _forget_old(self) -> None:
        now = self._clock()
        while self._ended:
            ask_id, (expires, _) = next(iter(self._ended.items()))
            if expires > now:
                return
            self._forget(ask_id)

    def _forget(self, ask_id: str) -> None:
        kept = self._asks.pop(ask_id, None)
        if kept is None:
            return
        self._free_key(kept)
        self._chars -= self._ended.pop(ask_id, (0.0, 0))[1]
        if timer := self._timers.pop(ask_id, None):
            timer.cancel()

    def _free_key(self, kept: KeptAsk) -> None:
        if kept.key is not None and self._by_key.get((kept.principal, kept.key)) is kept:
            del self._by_key[kept.principal, kept.key]


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


def _family(result: AskResult) -> str:
    if result.outcome != "failed" or result.error is None:
        return ""
    return result.error.code.partition(".")[0]
