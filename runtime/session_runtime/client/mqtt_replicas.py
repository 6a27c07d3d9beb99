"""Which replicas a client knows to be there, away or gone, from what the broker tells of them (NET-6).

What follows for asks is decided in ``mqtt``.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Literal

from session_runtime.client.mqtt_line import Received
from session_runtime.errors import RequestError
from session_runtime.wire import parse_json
from session_runtime.wire.mqtt import PRESENCE_S

GONE_S: Final = 5.0
"""How long a connection may be away before its replica is gone: most are back sooner."""

Known = Literal["there", "away", "gone"]
News = Literal["there", "back", "gone", "settled"]
"""What a client is told of a replica.

It is ``there``; ``back`` after it was away; ``gone``, as it said goodbye or was away for too long. A while
after it was lost, back or not, that is ``settled``: what the broker gave it last was heard of by now, or is
lost.
"""

Tell = Callable[[str, News, float], None]
"""Takes the replica, the news, and when it began, by the clock of the loop."""


class Replicas:
    """What is known by one connection; ``gone_s`` is how long a replica may be away, in seconds."""

    def __init__(self, gone_s: float, tell: Tell) -> None:
        self._gone_s = gone_s
        self._tell = tell
        self._known: dict[str, Known] = {}
        self._losses: dict[str, asyncio.TimerHandle] = {}

    def known(self, replica: str) -> Known | None:
        """How it is, if anything is known."""
        return self._known.get(replica)

    def forget(self) -> None:
        """Begin anew: the connection is another one, or over."""
        for loss in self._losses.values():
            loss.cancel()
        self._losses.clear()
        self._known.clear()

    def hear(self, replica: str, message: Received) -> None:
        """Take what was published at the topic of a replica; what is no status is passed over."""
        try:
            told = parse_json(message.body)
            state, said_goodbye = told["state"], "since" in told
        except (RequestError, TypeError, KeyError):
            return
        now = asyncio.get_running_loop().time()
        if state in ("online", "draining"):
            was, self._known[replica] = self._known.get(replica), "there"
            self._tell(replica, "back" if was == "away" else "there", now)
        elif state != "offline":
            return
        elif said_goodbye or _age_s(message) >= self._gone_s:
            self._known[replica] = "gone"
            self._tell(replica, "gone", now)
        elif self._known.get(replica) != "gone":
            self.lose(replica)

    def lose(self, replica: str) -> None:
        """Its connection is away: it is gone, unless it is back soon."""
        self._known[replica] = "away"
        if replica not in self._losses:
            loop = asyncio.get_running_loop()
            self._losses[replica] = loop.call_later(
                self._gone_s, self._settle, replica, loop.time()
            )

    def _settle(self, replica: str, lost_at: float) -> None:
        del self._losses[replica]
        if self._known.get(replica) == "away":
            self._known[replica] = "gone"
            self._tell(replica, "gone", lost_at)
        self._tell(replica, "settled", lost_at)


def _age_s(message: Received) -> float:
    """How long ago a status was published that the broker had kept; 0 if that cannot be known."""
    if not message.retained or message.expiry_s is None:
        return 0.0
    return PRESENCE_S - message.expiry_s
