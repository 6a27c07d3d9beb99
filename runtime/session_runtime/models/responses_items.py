"""What an answer on the wire ``responses`` holds beyond text and calls, kept with its message (ASK-3).

Why nothing else is kept is told in ``places``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast, get_args

from session_runtime.models.extras import RESPONSES_ITEMS
from session_runtime.models.places import Called, Phase, Place, Reasoning, Said, objects
from session_runtime.types import JsonObject

_PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
_MAX_ITEMS: Final = 1_000
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TEXT_FIELDS: Final = ("encrypted_content", "signature", "format")


def keep_items(output: Iterable[Mapping[str, Any]], origin: str) -> JsonObject:
    """The extra of a message whose answer had these items; empty if its text and calls say it all.

    ``origin`` names the service and the model: reasoning means nothing to others.
    """
    places = [place for item in output if (place := _place(item)) is not None]
    if not any(isinstance(place, Reasoning) or _has_phase(place) for place in places):
        return {}
    kept = [_to_json(place) for place in places[:_MAX_ITEMS]]
    return {RESPONSES_ITEMS: {"origin": origin, "items": kept}}


def kept_items(extra: JsonObject, origin: str) -> Sequence[Place]:
    """What ``keep_items`` kept for the same origin; what does not fit is dropped."""
    kept = extra.get(RESPONSES_ITEMS)
    if not isinstance(kept, Mapping) or kept.get("origin") != origin:
        return ()
    items = objects(kept.get("items"))[:_MAX_ITEMS]
    return [place for item in items if (place := _from_json(item)) is not None]


def text_of(item: Mapping[str, Any]) -> str:
    """The text of a message item; a refusal is text too."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    texts = [part.get("text") or part.get("refusal") for part in objects(content)]
    return "".join(text for text in texts if isinstance(text, str))


def _place(item: Mapping[str, Any]) -> Place | None:
    match item.get("type"):
        case "reasoning":
            return _reasoning(item)
        case "message":
            return Said(len(text_of(item)), _phase(item))
        case "function_call":
            return Called()
        case _:
            return None


def _has_phase(place: Place) -> bool:
    return isinstance(place, Said) and place.phase is not None


def _to_json(place: Place) -> dict[str, Any]:
    match place:
        case Reasoning(item):
            return dict(item)
        case Said(characters, None):
            return {"type": "message", "characters": characters}
        case Said(characters, phase):
            return {"type": "message", "characters": characters, "phase": phase}
        case Called():
            return {"type": "function_call"}


def _from_json(item: Mapping[str, Any]) -> Place | None:
    if item.get("type") != "message":
        return _place(item)
    characters = item.get("characters")
    if not isinstance(characters, int) or characters < 0:
        return None
    return Said(characters, _phase(item))


def _phase(item: Mapping[str, Any]) -> Phase | None:
    phase = item.get("phase")
    return cast(Phase, phase) if phase in _PHASES else None


def _reasoning(item: Mapping[str, Any]) -> Reasoning | None:
    """The item with the fields that are known, if it holds reasoning.

    An id and a summary alone mean something only to a service that still has the rest.
    """
    kept: dict[str, Any] = {"type": "reasoning"}
    item_id = item.get("id")
    if isinstance(item_id, str) and _ID.fullmatch(item_id):
        kept["id"] = item_id
    kept["summary"] = _texts(item.get("summary"), "summary_text")
    if content := _texts(item.get("content"), "reasoning_text"):
        kept["content"] = content
    for name in _TEXT_FIELDS:
        if isinstance(value := item.get(name), str) and value:
            kept[name] = value
    return Reasoning(kept) if "content" in kept or "encrypted_content" in kept else None


def _texts(parts: object, kind: str) -> list[dict[str, str]]:
    return [
        {"type": kind, "text": part["text"]}
        for part in objects(parts)
        if part.get("type") == kind and isinstance(part.get("text"), str)
    ]
