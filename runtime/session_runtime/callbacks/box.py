"""The one owner of results that are to be sent: how many there are, what became of the last ones (SEC-3).

How one is sent is decided in ``sending``, for how many there is room in ``shares``;
all of this is the event loop's alone.
"""

import asyncio
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, get_args

from session_runtime.callbacks.sending import Answer, Post, Sent, World, send
from session_runtime.callbacks.shares import Most, Shares
from session_runtime.config.callbacks import Callback
from session_runtime.errors import RequestError
from session_runtime.registry.patterns import Patterns
from session_runtime.threads import aside
from session_runtime.trace.metrics import Family, Sample, gauge
from session_runtime.types import AskResult
from session_runtime.wire import result_to_json, to_bytes

MOST_FAILURES: Final = 20
MOST_SEEN: Final = 8_192
LEAST_WAIT_S: Final = 10.0
"""Who finds no room waits for so long at least: room comes when a receiver answers or an ask ends."""

Fate = Literal["delivered", "failed", "dropped"]
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expected:
    """An ask whose end is to be told: to whom, whose it is, and how to wait for it."""

    name: str
    ask_id: str
    principal: str
    user: str | None
    finished: Callable[[], Coroutine[Any, Any, AskResult]]


class Callbacks:
    """Results on their way, in memory only: a restart forgets them.

    ``configured`` gives the addresses in force, ``open_post`` a way to send that is made at the first use.
    """

    def __init__(
        self,
        configured: Callable[[], Mapping[str, Callback]],
        open_post: Callable[[], Post],
        world: World | None = None,
        most: Most | None = None,
    ) -> None:
        self._configured = configured
        self._open_post = open_post
        self._world = world or World()
        self._post: Post | None = None
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._shares = Shares(most or Most())
        self._attempts = 0
        self._fates: Counter[Fate] = Counter()
        self._failures: deque[dict[str, object]] = deque(maxlen=MOST_FAILURES)

    @contextmanager
    def reserve(self, name: str, principal: str) -> Iterator[None]:
        """Hold room for one more to ``expect``, until the end of the block.

        Raises RequestError if the principal may not name it, and BusyError if there is no room.
        """
        target = self._target(name, principal)
        if target is None:
            raise RequestError(
                f"there is no callback {name[:100]!r} for {principal!r}: an operator adds"
                " [callbacks.NAME] with its address, or the principal to its principals",
                code="request.unknown_callback",
            )
        self._shares.check(name, principal, max(LEAST_WAIT_S, target.timeout_s))
        with self._shares.expecting(name, principal):
            yield

    def expect(self, wanted: Expected) -> None:
        """Send the result once there is one; the same ask and name again change nothing."""
        key = wanted.ask_id, wanted.name
        if key in self._seen:
            return
        self._seen[key] = None
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        counted = ExitStack()
        counted.enter_context(self._shares.expecting(wanted.name, wanted.principal))
        task = asyncio.create_task(self._tell(wanted), name=f"callback of {wanted.ask_id}")
        self._tasks[key] = task
        task.add_done_callback(partial(self._is_done, wanted, counted))

    async def idle(self) -> None:
        """Wait until nothing is on its way."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks.values()))

    async def aclose(self) -> None:
        """Give up what is on its way; each is told in the log."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._post is not None:
            await self._post.aclose()

    def status(self) -> dict[str, object]:
        """What is on its way, what became of the others, and the last failures, the newest first."""
        counts = {fate: self._fates[fate] for fate in get_args(Fate)}
        return {"waiting": len(self._tasks), **counts, "failures": [*reversed(self._failures)]}

    def metrics(self) -> Iterator[Family]:
        """The numbers, with the same names and labels at any time."""
        yield gauge("callbacks_waiting", "Results that are to be sent.", len(self._tasks))
        yield Family(
            "callback_attempts_total",
            "counter",
            "Attempts to send results.",
            (Sample(self._attempts, {}),),
        )
        yield Family(
            "callbacks_total",
            "counter",
            "Results that were to be sent by what became of them.",
            tuple(Sample(self._fates[fate], {"outcome": fate}) for fate in get_args(Fate)),
        )

    async def _tell(self, wanted: Expected) -> None:
        result = await wanted.finished()
        body = await aside("writing a callback", partial(_body, wanted, result))
        async with self._shares.carrying(wanted.name, len(body)) as no_room:
            sent = Sent(0, no_room) if no_room else await self._send(wanted, body)
        if sent.fault:
            self._fail(wanted, sent)
        else:
            self._fates["delivered"] += 1

    async def _send(self, wanted: Expected, body: bytes) -> Sent:
        return await send(
            lambda: self._target(wanted.name, wanted.principal),
            lambda: self._shares.turn(wanted.name),
            self._send_once,
            wanted.ask_id,
            body,
            self._world,
        )

    async def _send_once(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        self._attempts += 1
        if self._post is None:
            self._post = self._open_post()
        return await self._post(url, headers, body, timeout_s)

    def _target(self, name: str, principal: str) -> Callback | None:
        target = self._configured().get(name)
        return target if target is not None and principal in Patterns(target.principals) else None

    def _fail(self, wanted: Expected, sent: Sent) -> None:
        self._fates["failed"] += 1
        self._failures.append(
            {
                "callback": wanted.name,
                "ask_id": wanted.ask_id,
                "at": self._world.today(),
                "attempts": sent.attempts,
                "reason": sent.fault,
            }
        )
        _log.warning(
            "the result of %s was not taken by the callback %r after %d attempts: %s",
            wanted.ask_id,
            wanted.name,
            sent.attempts,
            sent.fault,
        )

    def _is_done(self, wanted: Expected, counted: ExitStack, task: asyncio.Task[None]) -> None:
        counted.close()
        del self._tasks[wanted.ask_id, wanted.name]
        if task.cancelled():
            self._fates["dropped"] += 1
            _log.warning("the result of %s was not sent to %r", wanted.ask_id, wanted.name)
        elif (error := task.exception()) is not None:
            self._fates["failed"] += 1
            _log.error("the callback %r of %s broke", wanted.name, wanted.ask_id, exc_info=error)


def _body(wanted: Expected, result: AskResult) -> bytes:
    told = {
        "type": "ask.finished",
        "ask_id": wanted.ask_id,
        "principal": wanted.principal,
        "user": wanted.user,
        "result": result_to_json(result),
    }
    return to_bytes(told)
