"""What the MQTT door needs of a connection to a broker; ``broker`` makes one, tests bring their own."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from session_runtime.types import nothing


class LinkError(Exception):
    """The connection to the broker cannot be made, or broke; the text says why.

    ``unreadable``: over something that came by it, which would come again with the session. ``broke``: while
    the broker was given what was to be published. ``taken_over``: by another client of the same name.
    """

    def __init__(
        self,
        why: str,
        *,
        unreadable: bool = False,
        broke: bool = False,
        taken_over: bool = False,
    ) -> None:
        super().__init__(why)
        self.unreadable = unreadable
        self.broke = broke
        self.taken_over = taken_over


class UndeliverableError(Exception):
    """The broker does not take a message, and will not; the text says why."""


class BrokenOverError(UndeliverableError):
    """Connections broke while the broker was given it, which may have had other reasons."""


class TooLargeError(UndeliverableError):
    """It is larger than the broker takes."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message from the broker; ``id`` is what it is acknowledged by, if it is.

    ``expiry_s`` is what is left of its time; of user properties of the same name the last one counts.
    ``repeated`` says that the broker may have sent it before, to this replica or to what it was then.
    """

    topic: str
    body: bytes
    id: int | None = None
    retained: bool = False
    reply: str | None = None
    correlation: bytes | None = None
    expiry_s: int | None = None
    properties: Mapping[str, str] = field(default_factory=nothing)
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to the broker, at least once; ``expiry_s`` is how long it is worth keeping."""

    topic: str
    body: bytes
    retained: bool = False
    correlation: bytes | None = None
    expiry_s: int | None = None
    properties: Mapping[str, str] = field(default_factory=nothing)


class Link(Protocol):
    """One connection. All methods raise LinkError once it broke, but ``acknowledge``, which does nothing."""

    def messages(self) -> AsyncIterator[Incoming]:
        """Give what comes, in order, until the connection breaks."""

    async def publish(self, message: Outgoing) -> None:
        """Send a message, and wait until the broker has it; UndeliverableError if it does not take it."""

    def acknowledge(self, message: Incoming) -> None:
        """Tell the broker that it may forget a message of this connection."""

    async def unsubscribe(self) -> None:
        """Have no further message sent that any other replica could have."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a connection is opened with: what is subscribed to, how much may be unacknowledged, the will.

    ``subscription`` is shared with others, ``own`` is not. ``dropped`` is called for each message that is
    not handed on because too many wait that the broker need not have sent, ``passed_over`` for each that
    cannot be read. ``clean`` has the broker forget
    the session that there was.
    """

    subscription: str | None
    own: str
    receive_maximum: int
    will: Outgoing
    dropped: Callable[[], object] = field(compare=False)
    passed_over: Callable[[], object] = field(compare=False)
    clean: bool = False


class Connect(Protocol):
    """Opens connections."""

    def __call__(self, terms: Terms) -> AbstractAsyncContextManager[Link]:
        """A connection that is up and subscribed; LinkError if there can be none."""
