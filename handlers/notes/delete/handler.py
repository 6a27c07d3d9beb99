"""Deletes one note of whoever asks."""

from typing import Any

from session_runtime.handler import HandlerContext


def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, object]:
    """Delete the note and show what was deleted."""
    return {"deleted": context.notes.delete(int(args["id"])).to_json()}
