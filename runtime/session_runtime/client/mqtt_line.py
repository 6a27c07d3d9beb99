"""What the MQTT client of backends needs of a connection to a broker; ``mqtt_broker`` makes one.

What goes over it is decided in ``mqtt``.
"""

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from session_runtime.types import nothing


class NotTakenError(Exception):
    """The broker does not take a message, and will not; ``too_large`` if that is for its size."""

    def __init__(self, why: str, *, too_large: bool = False) -> None:
        super().__init__(why)
        self.too_large = too_large


class LineError(Exception):
    """The connection cannot be made, or broke; the text says why.

    ``broke``: it did while the broker was given what was to be published, which may be the reason.
    """

    def __init__(self, why: str, *, broke: bool = False) -> None:
        super().__init__(why)
        self.broke = broke


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is, and as whom it is spoken to; ``tls`` encrypts the connection."""

    host: str = "127.0.0.1"
    port: int = 1883
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """A message from the broker; ``retained`` is one that it had kept, ``expiry_s`` what is left of it."""

    topic: str
    body: bytes
    correlation: bytes | None = None
    retained: bool = False
    properties: Mapping[str, str] = field(default_factory=nothing)
    expiry_s: int | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request; ``expiry_s`` is how long it is worth carrying out."""

    topic: str
    body: bytes
    reply: str
    correlation: bytes
    expiry_s: int
    properties: Mapping[str, str]


class Line(Protocol):
    """One connection; both methods raise LineError once it broke."""

    def messages(self) -> AsyncIterator[Received]:
        """Give what comes, in order."""

    async def publish(self, message: Sent) -> bool:
        """Send a request, and wait until the broker has it; NotTakenError if it does not take it.

        False if the broker told that nobody gets it.
        """


class Connect(Protocol):
    """Opens connections that are subscribed to these topics; LineError if there can be none."""

    def __call__(self, topics: Sequence[str]) -> AbstractAsyncContextManager[Line]:
        """Open one."""
