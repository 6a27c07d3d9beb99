"""What a backend hands to either client, checked before anything is sent (INT-2).

What a request may mean is for the daemon to say.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from session_runtime.errors import RequestError
from session_runtime.types import AskRequest
from session_runtime.wire import request_to_json

LONGEST_S: Final = 366 * 86_400.0
"""More than anybody waits; what counts seconds on the way bears no more than some billions."""


def asked(
    request: AskRequest | Mapping[str, Any] | str, deadline_s: float | None = None
) -> dict[str, Any]:
    """A request as JSON has it; RequestError for what is none, or has no good ``deadline_s``."""
    if isinstance(request, str):
        request = AskRequest(request)
    if isinstance(request, AskRequest):
        own_s = request.deadline_s
        request = request_to_json(replace(request, deadline_s=None))
    elif isinstance(request, Mapping):
        own_s = request.get("deadline_s")
    else:
        raise RequestError(
            f"the request is {type(request).__name__}: give text, an object, or an AskRequest"
        )
    deadline_s = own_s if deadline_s is None else deadline_s
    if deadline_s is None:
        return dict(request)
    return {**request, "deadline_s": seconds("deadline_s", deadline_s)}


def seconds(name: str, value: object) -> float:
    """That number of seconds; RequestError with its name for one that no clock can count, or none above 0."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_S:
        return value
    raise RequestError(
        f"{name} is {value!r:.40}: give a number of seconds above 0, of a year ({LONGEST_S:g}) at most"
    )
