"""Ends an ask; that the loop stops after it is decided by the loop."""

from typing import Any

from session_runtime.handler import HandlerContext


async def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Confirm; memo and reason are kept with the call in the transcript."""
    del args, context
    return "ended"
