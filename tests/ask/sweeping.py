"""Runs an ask again and again, each time with one fault at another of its steps.

A step is what a task of the ask does between two awaits. What the fault is decides the ``Fault``.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from session_runtime import AskEvent, AskRequest, AskResult, Runtime

_SWEPT: ContextVar["Steps | None"] = ContextVar("_SWEPT", default=None)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved on."""

    jumped_s = 0.0

    def time(self) -> float:
        return super().time() + self.jumped_s


@dataclass
class Steps:
    """Counts the steps of an ask; ``act`` is what happens at step ``at``, the first being 1."""

    at: int
    act: "Fault"
    runtime: Runtime
    count: int = 0
    ask: "asyncio.Task[AskResult] | None" = None
    events: list[AskEvent] = field(default_factory=list)
    tasks: "list[asyncio.Task[Any]]" = field(default_factory=list)
    broken: bool = False

    def emit(self, event: AskEvent) -> None:
        self.events.append(event)
        if self.broken:
            self.broken = False
            raise RuntimeError("the sink broke")

    def due(self) -> bool:
        self.count += 1
        return self.count == self.at


class Stepped(Coroutine[Any, Any, Any]):
    """A coroutine of a task of the ask."""

    def __init__(self, inner: Coroutine[Any, Any, Any], steps: Steps, *, outermost: bool) -> None:
        self._inner = inner
        self._steps = steps
        self._outermost = outermost
        self._begun = False

    def send(self, value: Any) -> Any:
        raises = isinstance(self._steps.act, Raises)
        if not (raises and (self._outermost or not self._begun)) and self._steps.due():
            if isinstance(self._steps.act, Raises):
                return self._inner.throw(self._steps.act.error())
            self._steps.act(self._steps)
        self._begun = True
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Iterator[Any]:
        return self._inner.__await__()


@dataclass(frozen=True)
class Raises:
    """The await of that step raises, in any task but that of the caller."""

    error: Callable[[], BaseException]

    def __call__(self, steps: Steps) -> None:
        raise AssertionError("is thrown instead")


Fault = Raises | Callable[[Steps], object]


def caller_goes_away(steps: Steps) -> None:
    assert steps.ask is not None
    steps.ask.cancel()


def caller_goes_away_twice(steps: Steps) -> None:
    assert steps.ask is not None
    steps.ask.cancel()
    asyncio.get_running_loop().call_soon(steps.ask.cancel)


def operator_ends_it(steps: Steps) -> None:
    steps.runtime.running.cancel("all", "told to")


def sink_breaks(steps: Steps) -> None:
    """The next event meets with a sink that raises."""
    steps.broken = True


def time_is_up(steps: Steps) -> None:
    """More time goes by than the ask has, and less than anything else has."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, JumpingLoop)
    loop.jumped_s += 60


@contextmanager
def stepped_tasks() -> Iterator[None]:
    """While this lasts, tasks that an ask starts take counted steps."""
    loop = asyncio.get_running_loop()

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **how: Any) -> "asyncio.Task[Any]":
        steps = _SWEPT.get()
        if steps is not None:
            coroutine = Stepped(coroutine, steps, outermost=steps.ask is None)
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **how)
        if steps is not None:
            steps.tasks.append(task)
            steps.ask = steps.ask or task
        return task

    loop.set_task_factory(make)
    try:
        yield
    finally:
        loop.set_task_factory(None)


async def swept(request: AskRequest, steps: Steps) -> AskResult | BaseException:
    """The result of the ask with its fault, or what it raised; its events are in ``steps``."""
    token = _SWEPT.set(steps)
    try:
        task = asyncio.get_running_loop().create_task(steps.runtime.ask(request, steps.emit))
    finally:
        _SWEPT.reset(token)
    (ended,) = await asyncio.gather(task, return_exceptions=True)
    return ended
