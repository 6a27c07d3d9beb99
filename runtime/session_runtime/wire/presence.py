"""What a replica says of itself, as another process reads it: nothing of it is trusted (NET-6, SEC-4).

What follows from what several of them say is decided in ``client.fleet``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from session_runtime.errors import RequestError
from session_runtime.wire.strict import parse_json

MAX_BYTES: Final = 16_384
"""The largest presence that is read."""

_MAX_CHARS: Final = 128
_MOST: Final = 2**53

State = Literal["ready", "draining", "offline", "unknown"]

_STATES: Final[Mapping[str, State]] = {
    "online": "ready",
    "ready": "ready",
    "draining": "draining",
    "offline": "offline",
}


@dataclass(frozen=True, slots=True)
class Presence:
    """One replica; whatever it did not say, or said in another form than agreed, is None.

    ``told_by`` is ``mqtt`` or the address that answered. ``since`` is when it came into its state, ``at``
    when it said all this, ``receipt_at`` when the last attempt to change its configuration began,
    ``rejected_since`` since when its sources cannot be used: all in seconds since 1970. ``age_s`` is how
    long ago it was heard. ``fault`` says why the state is unknown. ``digest`` covers configuration and
    tools, ``config_digest`` the configuration as far as replicas share it, ``tools_digest`` the tools.
    """

    replica: str
    told_by: str
    state: State = "unknown"
    fault: str | None = None
    since: float | None = None
    at: float | None = None
    age_s: float | None = None
    version: str | None = None
    digest: str | None = None
    config_digest: str | None = None
    tools_digest: str | None = None
    generation: int | None = None
    asks: int | None = None
    most_asks: int | None = None
    waiting: int | None = None
    verdict: str | None = None
    receipt_at: float | None = None
    rejected_since: float | None = None
    restart_needed: int | None = None

    @property
    def lost(self) -> bool:
        """Whether it is gone without having said so."""
        return self.state == "offline" and self.since is None


def presence_from_bytes(
    body: bytes, replica: str, *, now: float, age_s: float | None = None
) -> Presence:
    """Read the retained message at the topic of ``replica``; ``age_s`` is how old the broker says it is."""
    if len(body) > MAX_BYTES:
        return unknown(replica, "mqtt", f"its status has more than {MAX_BYTES} bytes")
    try:
        data = parse_json(body)
    except RequestError:
        return unknown(replica, "mqtt", "its status is not JSON")
    if not isinstance(data, dict) or data.get("replica") != replica:
        return unknown(replica, "mqtt", "its status is not that of a replica of this name")
    if data.get("state") not in ("online", "draining", "offline"):
        return unknown(replica, "mqtt", "its status names no state that there is")
    at = _moment(data.get("at"))
    if age_s is None and at is not None:
        age_s = max(0.0, now - at)
    return _presence(data, data, replica, "mqtt", age_s)


def presence_from_page(page: object, address: str) -> Presence:
    """Read the page ``/v1/status`` of the daemon at ``address``, which was fetched just now."""
    match page:
        case {
            "presence": dict(told),
            "state": "ready" | "draining" as state,
            "since": since,
            "mqtt": {"replica": named} | (None as named),
        }:
            head = {"state": state, "since": since}
            return _presence(head, told, _text(named) or address, address, 0.0)
    return unknown(address, address, "it answered with no status: is it another version?")


def unknown(replica: str, told_by: str, fault: str) -> Presence:
    """A replica of which nothing is known but that there should be one."""
    return Presence(_cut(replica), told_by, fault=_cut(fault))


def _presence(
    head: Mapping[str, Any],
    told: Mapping[str, Any],
    replica: str,
    told_by: str,
    age_s: float | None,
) -> Presence:
    receipt = told.get("receipt")
    last: Mapping[str, Any] = receipt if isinstance(receipt, dict) else {}
    return Presence(
        replica=_cut(replica),
        told_by=told_by,
        state=_STATES[head["state"]],
        since=_moment(head.get("since")),
        at=_moment(head.get("at")),
        age_s=age_s,
        version=_text(told.get("version")),
        digest=_text(told.get("digest")),
        config_digest=_text(told.get("config_digest")),
        tools_digest=_text(told.get("tools_digest")),
        generation=_count(told.get("generation")),
        asks=_count(told.get("asks")),
        most_asks=_count(told.get("most_asks")),
        waiting=_count(told.get("waiting")),
        verdict=_text(last.get("verdict")),
        receipt_at=_moment(last.get("at")),
        rejected_since=_moment(told.get("rejected_since")),
        restart_needed=_count(told.get("restart_needed")),
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"


def _text(value: object) -> str | None:
    return _cut(value) if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
    return value if good and isinstance(value, int) else None


def _moment(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST:
        return None
    return float(value) if math.isfinite(value) else None
