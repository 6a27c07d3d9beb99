"""What the MQTT client of backends needs of a connection to a broker; ``mqtt_broker`` makes one.

What goes over it is decided in ``mqtt``.
"""

import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, Protocol

from session_runtime.errors import RequestError
from session_runtime.types import nothing
from session_runtime.wire.hosts import is_loopback

TLS_PORT: Final = 8883
"""Where brokers expect TLS."""

_READABLE: Final = (
    "would go to it readable for everybody on the way: give tls=ssl.create_default_context(), or"
    " plain_text=True if that is meant"
)


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
    """Where the broker is, and as whom it is spoken to; ``tls`` encrypts the connection.

    Without ``tls`` a password goes to this machine alone, and nothing to the port of TLS: RequestError
    otherwise, unless ``plain_text`` says that it is meant.
    """

    host: str = "127.0.0.1"
    port: int = 1883
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    plain_text: bool = False

    def __post_init__(self) -> None:
        if self.tls is not None or self.plain_text:
            return
        if self.password is not None and not is_loopback(self.host):
            raise RequestError(f"the password of the broker {self.host} {_READABLE}")
        if self.port == TLS_PORT:
            raise RequestError(
                f"port {TLS_PORT} of {self.host} is for TLS, and without it all {_READABLE}"
            )


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
