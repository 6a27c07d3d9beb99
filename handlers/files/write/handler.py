"""Writes a whole text file; where that is allowed is decided by the operator's roots."""

from typing import Any

from session_runtime.handler import HandlerContext


def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, object]:
    """Write the file and tell how large it became."""
    content = args["content"].encode("utf-8")
    context.files.write(args["path"], content, replace=args.get("replace", False))
    return {"written": args["path"], "bytes": len(content)}
