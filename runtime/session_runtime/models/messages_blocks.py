"""What an answer on the wire ``anthropic`` holds beyond text and calls, kept with its message (ASK-3).

Why nothing else is kept is told in ``places``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from session_runtime.models.extras import MESSAGES_BLOCKS
from session_runtime.models.places import Called, Place, Reasoning, Said, objects
from session_runtime.types import JsonObject

_MAX_BLOCKS: Final = 1_000
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
}
"""Per kind of thought what it must hold: services refuse one without its signature."""


def keep_blocks(blocks: Iterable[Mapping[str, Any]], origin: str) -> JsonObject:
    """The extra of a message whose answer had these blocks; empty if its text and calls say it all.

    ``origin`` names the service and the model: thoughts mean nothing to others.
    """
    places = [place for block in blocks if (place := _place(block)) is not None]
    if not any(isinstance(place, Reasoning) for place in places):
        return {}
    kept = [_to_json(place) for place in places[:_MAX_BLOCKS]]
    return {MESSAGES_BLOCKS: {"origin": origin, "blocks": kept}}


def kept_blocks(extra: JsonObject, origin: str) -> Sequence[Place]:
    """What ``keep_blocks`` kept for the same origin; what does not fit is dropped."""
    kept = extra.get(MESSAGES_BLOCKS)
    if not isinstance(kept, Mapping) or kept.get("origin") != origin:
        return ()
    blocks = objects(kept.get("blocks"))[:_MAX_BLOCKS]
    return [place for block in blocks if (place := _from_json(block)) is not None]


def _place(block: Mapping[str, Any]) -> Place | None:
    match block.get("type"):
        case "text":
            text = block.get("text")
            return Said(len(text)) if isinstance(text, str) else None
        case "tool_use":
            return Called()
        case "thinking" | "redacted_thinking" as kind:
            return _thought(kind, block)
        case _:
            return None


def _thought(kind: str, block: Mapping[str, Any]) -> Reasoning | None:
    """The block with the fields that are known, if it is whole; a thought may be shown as nothing."""
    texts = {name: block.get(name) for name in _FIELDS[kind]}
    last = texts[_FIELDS[kind][-1]]
    whole = all(isinstance(text, str) for text in texts.values())
    return Reasoning({"type": kind, **texts}) if whole and last else None


def _to_json(place: Place) -> dict[str, Any]:
    match place:
        case Reasoning(item):
            return dict(item)
        case Said(characters):
            return {"type": "text", "characters": characters}
        case Called():
            return {"type": "tool_use"}


def _from_json(block: Mapping[str, Any]) -> Place | None:
    if block.get("type") != "text":
        return _place(block)
    characters = block.get("characters")
    return Said(characters) if isinstance(characters, int) and characters >= 0 else None
