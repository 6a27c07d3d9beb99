"""One request to a daemon by MQTT, as it is signed and sent; when, and how often, is decided in ``mqtt``."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from session_runtime.client.asking import LONGEST_S
from session_runtime.client.mqtt_pending import Fault
from session_runtime.errors import RequestError
from session_runtime.wire.mqtt import (
    EXPIRES,
    LEAST_SECRET_CHARS,
    PRINCIPAL,
    SIGNATURE,
    Envelope,
    sign,
)

SIGNED_S: Final = 240.0
LEAST_SIGNED_S: Final = 1.0
SKEW_S: Final = 30.0
"""How far the clocks of both ends may be apart."""


@dataclass(frozen=True, slots=True)
class Signer:
    """The principal that asks, and its signing secret (``[mqtt.signers]``).

    ``valid_s`` is how long a signature holds at most, in seconds; less than ``mqtt.max_signed_s``.
    RequestError for what no daemon would take.
    """

    principal: str
    secret: str = field(repr=False)
    valid_s: float = SIGNED_S

    def __post_init__(self) -> None:
        if self.secret != self.secret.strip():
            raise RequestError(
                f"the secret of the signer {self.principal!r} begins or ends with a space or a line break:"
                " give it without"
            )
        if len(self.secret) < LEAST_SECRET_CHARS:
            raise RequestError(
                f"the secret of the signer {self.principal!r} has {len(self.secret)} characters, and needs"
                f" {LEAST_SECRET_CHARS}: give that of mqtt.signers.{self.principal}, or a longer one to both"
            )
        if not LEAST_SIGNED_S <= self.valid_s <= LONGEST_S:
            raise RequestError(
                f"valid_s is {self.valid_s}: give {LEAST_SIGNED_S:g} s or more, and less than"
                " mqtt.max_signed_s"
            )


@dataclass(slots=True)
class Request:
    """What is asked: ``until`` when by a monotonic clock; its signature ``expires`` by the ``wall`` one."""

    body: bytes
    correlation: bytes
    until: float
    wall: Callable[[], float]
    expires: int | None = None

    def left_s(self) -> float:
        """How long it is worth carrying out, in seconds."""
        return self.until - time.monotonic()

    def signed(self, signer: Signer, topic: str, reply: str) -> Mapping[str, str]:
        """Sign it for as long as it may take, and no longer than the signer has it."""
        valid_s = min(signer.valid_s, self.left_s() + SKEW_S)
        self.expires = expires = math.ceil(self.wall() + valid_s)
        envelope = Envelope(signer.principal, expires, topic, reply, self.correlation, self.body)
        return {
            PRINCIPAL: signer.principal,
            EXPIRES: str(expires),
            SIGNATURE: sign(envelope, signer.secret),
        }

    def signature_expired(self, fault: Fault) -> bool:
        """Whether it was refused for a signature that has expired by now, and may be signed anew."""
        expired = self.expires is not None and self.wall() >= self.expires
        return expired and fault.code == "auth.signature_expired"
