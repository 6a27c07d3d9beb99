"""An event loop whose clock jumps to the next timer whenever nothing else is left to do; it never sleeps."""

import asyncio
from collections.abc import Coroutine
from selectors import SelectSelector
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += max(0.0, timeout)
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def virtually(work: Coroutine[Any, Any, T]) -> T:
    """Run the work in virtual time, which begins at zero; it must not wait for threads."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(work)


def now() -> float:
    """Virtual seconds since the beginning."""
    return asyncio.get_running_loop().time()
