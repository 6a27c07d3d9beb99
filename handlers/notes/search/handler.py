"""Finds notes of whoever asks by their words."""

from typing import Any

from session_runtime.handler import HandlerContext

DEFAULT_LIMIT = 10


def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, object]:
    """Give the notes that match, best first."""
    found = context.notes.search(args["query"], int(args.get("limit", DEFAULT_LIMIT)))
    return {"notes": [note.to_json() for note in found]}
