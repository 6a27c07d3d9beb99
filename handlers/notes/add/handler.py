"""Keeps a note for whoever asks; whose notes are whose is decided by the runtime."""

from typing import Any

from session_runtime.handler import HandlerContext


def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, object]:
    """Keep the note and show it as it was kept."""
    return {"kept": context.notes.add(args["text"], tuple(args.get("tags", ()))).to_json()}
