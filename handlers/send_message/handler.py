"""Sends a message to the person who asked, while the ask goes on."""

from typing import Any

from session_runtime.handler import HandlerContext, ToolError


async def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Hand the text over and say so."""
    if not args["text"].strip():
        raise ToolError("The message is blank. Write what the person should read in text.")
    context.emit_message(args["text"])
    return "sent"
