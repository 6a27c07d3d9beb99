"""The signals that steer the daemon, as events of the loop; what follows from them is ``serve``'s (REL-8)."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Signals:
    """``stop`` is the first SIGTERM or SIGINT, ``force`` the second; ``reload`` is any SIGHUP."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    force: asyncio.Event = field(default_factory=asyncio.Event)
    reload: asyncio.Event = field(default_factory=asyncio.Event)


@contextmanager
def listening() -> Iterator[Signals]:
    """Take the signals of this process as long as the context is open."""
    signals = Signals()
    loop = asyncio.get_running_loop()

    def told_to_stop() -> None:
        (signals.force if signals.stop.is_set() else signals.stop).set()

    handlers = {
        signal.SIGTERM: told_to_stop,
        signal.SIGINT: told_to_stop,
        signal.SIGHUP: signals.reload.set,
    }
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield signals
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
