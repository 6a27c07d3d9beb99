"""Lists folders; which ones there are is decided by the operator's roots."""

from collections import deque
from datetime import UTC, datetime
from typing import Any

from session_runtime.handler import HandlerContext, ToolError

MAX_ENTRIES = 200


def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, object]:
    """Give the entries, each level sorted by name, and say what was left out."""
    depth = int(args.get("depth", 1))
    shown: list[dict[str, object]] = []
    unusable, truncated = 0, False
    waiting = deque([(args.get("path", ""), 1)])
    while waiting and len(shown) < MAX_ENTRIES:
        folder, level = waiting.popleft()
        try:
            listing = context.files.list(folder)
        except ToolError:
            if level == 1:
                raise
            unusable += 1  # it has gone, or nobody may look into it
            continue
        unusable += listing.others
        truncated |= listing.truncated
        for entry in listing.entries:
            shown.append(_shown(entry))
            if entry.kind == "folder" and level < depth:
                waiting.append((entry.path, level + 1))
    more = truncated or bool(waiting) or len(shown) > MAX_ENTRIES
    result: dict[str, object] = {"entries": shown[:MAX_ENTRIES]}
    return result | {"truncated": more} | ({"unusable": unusable} if unusable else {})


def _shown(entry: Any) -> dict[str, object]:
    if entry.kind == "folder":
        writable = {"writable": entry.writable} if entry.modified is None else {}
        return {"path": entry.path, "kind": "folder", **writable}
    modified = datetime.fromtimestamp(entry.modified, UTC).isoformat(timespec="seconds")
    return {"path": entry.path, "bytes": entry.size, "modified": modified}
