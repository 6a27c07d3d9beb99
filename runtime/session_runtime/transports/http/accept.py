"""Chooses the form of an answer by the ``Accept`` header."""

from typing import Final, Literal

from session_runtime.errors import RequestError

Form = Literal["json", "events"]

_RANGES: Final[dict[Form, tuple[str, ...]]] = {
    "json": ("application/json", "application/*", "*/*"),
    "events": ("text/event-stream", "text/*", "*/*"),
}


def choose_form(accept: str) -> Form:
    """Return the form the client prefers; JSON where it has no preference.

    Raises RequestError (``request.not_acceptable``) if it wants neither.
    """
    if not accept.strip():
        return "json"
    wanted = dict(_parse(part) for part in accept.split(","))
    json, events = (_quality(form, wanted) for form in ("json", "events"))
    if not json and not events:
        raise RequestError(
            f"the Accept header is {accept[:100]!r}; accept application/json or text/event-stream",
            code="request.not_acceptable",
        )
    return "events" if events > json else "json"


def _quality(form: Form, wanted: dict[str, float]) -> float:
    """Return the weight of the most specific range that covers the form."""
    return next((wanted[name] for name in _RANGES[form] if name in wanted), 0.0)


def _parse(part: str) -> tuple[str, float]:
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            return name, _weight(value)
    return name, 1.0


def _weight(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
