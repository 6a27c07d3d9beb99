"""Lists the notes of whoever asks."""

from typing import Any

from session_runtime.handler import HandlerContext

DEFAULT_LIMIT = 20


def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, object]:
    """Give one page of notes, newest first, and whether there are older ones."""
    limit = int(args.get("limit", DEFAULT_LIMIT))
    before = args.get("before")
    found = context.notes.list(limit + 1, None if before is None else int(before))
    return {"notes": [note.to_json() for note in found[:limit]], "more": len(found) > limit}
