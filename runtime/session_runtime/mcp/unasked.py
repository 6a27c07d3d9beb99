"""What a server says unasked, cut down to what the SDK needs to know of it (RTE-5).

The SDK writes each notification that it cannot read to the log, with the data, and a number that is too
large ends the connection. So it gets only what somebody here heeds, and of that nothing that it could not
read in any revision of the protocol. How much of it a server may say is decided in ``tap``. Public:
``heeded``, ``Malformed``.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import JSONRPCNotification

MOST_PER_S: Final = 200
MOST_AT_ONCE: Final = 5_000
"""How many things a server may say that are no answers: in the long run, and before it counts as long."""

_Params = Mapping[str, Any]


class Bound:
    """Counts what a server says unasked; with time it is forgotten."""

    def __init__(self) -> None:
        self._count = 0.0
        self._at = 0.0

    def exceeded(self, now: float) -> bool:
        """Count one more thing, and whether that is too much; ``now`` in seconds."""
        self._count = max(0.0, self._count - (now - self._at) * MOST_PER_S) + 1
        self._at = now
        return self._count > MOST_AT_ONCE


class Malformed(ValueError):
    """A notification that would be heeded, if it were as the protocol says."""


def heeded(said: JSONRPCNotification) -> JSONRPCNotification | None:
    """The same with what is needed of it; None if nobody here heeds such. Raises Malformed."""
    cut = _CUTS.get(said.method)
    if cut is None:
        return None
    params = cut(said.params or {})
    return JSONRPCNotification(jsonrpc="2.0", method=said.method, params=params)


def _changed(params: _Params) -> dict[str, Any]:
    """That the list is another one; a stateless server names the request that listens for it."""
    match params:
        case {"_meta": {"io.modelcontextprotocol/subscriptionId": id_}} if _is_id(id_):
            return _meta(id_)
        case _:
            return {}


def _acknowledged(params: _Params) -> dict[str, Any]:
    match params:
        case {
            "_meta": {"io.modelcontextprotocol/subscriptionId": id_},
            "notifications": dict() as honored,
        } if _is_id(id_):
            tells = honored.get("toolsListChanged") is True
            return {"notifications": {"toolsListChanged": tells}, **_meta(id_)}
        case _:
            raise Malformed


def _cancelled(params: _Params) -> dict[str, Any]:
    match params:
        case {"requestId": id_} if _is_id(id_):
            return {"requestId": id_}
        case _:
            raise Malformed


def _progress(params: _Params) -> dict[str, Any]:
    match params:
        case {"progressToken": token, "progress": progress} if _is_id(token):
            done = _finite(progress)
        case _:
            raise Malformed
    if done is None:
        raise Malformed
    told: dict[str, Any] = {"progressToken": token, "progress": done}
    if (total := _finite(params.get("total"))) is not None:
        told["total"] = total
    if isinstance(message := params.get("message"), str):
        told["message"] = message
    return told


_CUTS: Final[Mapping[str, Callable[[_Params], dict[str, Any]]]] = {
    "notifications/cancelled": _cancelled,
    "notifications/progress": _progress,
    "notifications/subscriptions/acknowledged": _acknowledged,
    "notifications/tools/list_changed": _changed,
}


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _finite(value: object) -> float | None:
    """The number as one that can be calculated with, None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _meta(id_: str | int) -> dict[str, Any]:
    return {"_meta": {SUBSCRIPTION_ID_META_KEY: id_}}
