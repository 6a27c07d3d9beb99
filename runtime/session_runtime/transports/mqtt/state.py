"""How the MQTT door fares, for status and metrics; only the endpoint writes it."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

from session_runtime.trace.metrics import Family, Sample, gauge
from session_runtime.transports.mqtt.backoff import UNDISPUTED_S

Outcome = Literal[
    "answered",
    "answered_again",
    "busy",
    "refused",
    "retained",
    "no_reply",
    "undelivered",
    "untold",
    "dropped",
    "unreadable",
]
"""How a message ended.

Without an answer are what the broker had kept, what has no good response topic, what no connection or no
broker took the answer of, refusals of strangers beyond a bound, what waited with too many of QoS 0, and what
the MQTT library cannot read.
"""

OUTCOMES: Final = get_args(Outcome)


class MqttState:
    """Counts messages by how they ended, and connections."""

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        self._connections = 0
        self._since: float | None = None
        self._fault: str | None = None
        self._replica: str | None = None
        self._disputed = False
        self.in_hand = 0

    @property
    def starting(self) -> bool:
        """Whether the door is open, and no connection was ever made: nobody can ask by it yet."""
        return self._replica is not None and self._connections == 0

    def serves_as(self, replica: str) -> None:
        """The door is open, under this name."""
        self._replica = replica

    def connected(self) -> None:
        """A connection is up."""
        self._connections += 1
        self._since = time.time()
        self._fault = None

    def disconnected(self, fault: str | None, *, disputed: bool = False) -> None:
        """It broke, or could not be made; ``disputed`` if another client may have the same name."""
        self._since = None
        self._disputed = disputed
        self._fault = fault

    def count(self, outcome: Outcome) -> int:
        """Count a message; gives how many ended so by now."""
        self._ended[outcome] += 1
        return self._ended[outcome]

    def status(self) -> Mapping[str, Any] | None:
        """A JSON object for operators; None if the door is not open."""
        if self._replica is None:
            return None
        return {
            "replica": self._replica,
            "connected_since": self._since,
            "fault": self._fault,
            "connections": self._connections,
            "name_disputed": self._disputed and not self._lasts(),
            "in_hand": self.in_hand,
            "messages": {outcome: self._ended[outcome] for outcome in OUTCOMES},
        }

    def _lasts(self) -> bool:
        """Whether the connection has lasted longer than one would of which another client has the name."""
        return self._since is not None and time.time() - self._since > UNDISPUTED_S

    def metrics(self) -> Iterator[Family]:
        """The numbers of this door, with the same names and labels at any time (REL-3)."""
        yield gauge("mqtt_connected", "1 while the broker is connected.", self._since is not None)
        yield gauge(
            "mqtt_messages_in_hand", "Messages that are not acknowledged yet.", self.in_hand
        )
        yield Family(
            "mqtt_connections_total",
            "counter",
            "Connections to the broker that were made.",
            (Sample(self._connections, {}),),
        )
        yield Family(
            "mqtt_messages_total",
            "counter",
            "Messages from the broker by how they ended.",
            tuple(Sample(self._ended[outcome], {"outcome": outcome}) for outcome in OUTCOMES),
        )
