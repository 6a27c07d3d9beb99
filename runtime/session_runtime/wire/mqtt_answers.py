"""What the user properties of an answer by MQTT say of it, as both ends read and write them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from session_runtime.wire.mqtt import ATTEMPT, KEPT, REFUSED, REPEATED, REPLICA, SEQ, TYPE

MOST_ATTEMPTS: Final = 999
_SEQ_DIGITS: Final = 12
_YES: Final = "yes"


@dataclass(frozen=True, slots=True)
class About:
    """What an answer says of itself besides its body.

    ``kind`` is RESULT, ERROR, ALIVE or the type of an event, ``replica`` who answers, ``attempt`` which copy
    of the request is answered. ``seq`` is None for what is no event and ends no ask, such as a refusal.
    ``kept``: nothing ran for this one. ``repeated``: the request may have run elsewhere too.
    """

    kind: str
    replica: str
    attempt: int = 1
    seq: int | None = None
    kept: bool = False
    repeated: bool = False

    def properties(self) -> Mapping[str, str]:
        """The user properties, in the order in which docs/mqtt.md has them."""
        return {
            TYPE: self.kind,
            **({} if self.seq is None else {SEQ: str(self.seq)}),
            **({KEPT: _YES} if self.kept else {}),
            **({REPEATED: _YES} if self.repeated else {}),
            REPLICA: self.replica,
            **({ATTEMPT: str(self.attempt)} if self.attempt > 1 else {}),
        }


def about_of(properties: Mapping[str, str]) -> About:
    """Read the user properties of an answer; what is missing or no number counts as not said."""
    return About(
        properties.get(TYPE, ""),
        properties.get(REPLICA, ""),
        attempt_of(properties),
        _whole(properties[SEQ], _SEQ_DIGITS) or 0 if SEQ in properties else None,
        KEPT in properties,
        REPEATED in properties,
    )


def attempt_of(properties: Mapping[str, str]) -> int:
    """Which copy of a request it is, or answers, from 1 to MOST_ATTEMPTS."""
    return max(1, _whole(properties.get(ATTEMPT, "")) or 1)


def sent_again(number: int, unsure: int) -> Mapping[str, str]:
    """The user properties of a copy of that number; ``unsure`` earlier ones were not refused."""
    attempt = min(number, MOST_ATTEMPTS)
    refused = max(0, attempt - 1 - unsure)
    return {
        **({ATTEMPT: str(attempt)} if attempt > 1 else {}),
        **({REFUSED: str(refused)} if refused else {}),
    }


def may_have_run_before(properties: Mapping[str, str]) -> bool:
    """Whether a copy of this request was sent before, and its sender knows of no refusal of it."""
    return attempt_of(properties) - 1 > (_whole(properties.get(REFUSED, "")) or 0)


def _whole(text: str, most_digits: int = len(str(MOST_ATTEMPTS))) -> int | None:
    good = text.isascii() and text.isdigit() and len(text) <= most_digits
    return int(text) if good else None
