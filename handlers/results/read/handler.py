"""Reads the long results of an ask in parts; where they are kept is decided by the runtime."""

from typing import Any

from session_runtime.handler import HandlerContext, ToolError

HEADER_CHARS = 200
CHARS_BEFORE = 200


def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Give one line that says which part this is and how to go on, then the part as it is."""
    results, reference = context.results, args["reference"]
    most = max(1, results.max_chars - HEADER_CHARS)
    length = min(int(args.get("length", most)), most)
    offset, found = int(args.get("offset", 0)), None
    if "find" in args:
        found = results.find(reference, args["find"], offset)
        if found is None:
            raise ToolError(
                f"{reference} does not hold this text at or after offset {offset}.",
                code="results.not_found",
            )
        offset = max(offset, found - min(CHARS_BEFORE, length // 4))
    part = results.read(reference, offset, length)
    end = part.offset + len(part.text)
    at = "" if found is None else f", found at {found}"
    onward = "This is the end." if end == part.total else f"Go on with offset {end}."
    where = f"characters {part.offset} to {end} of {part.total}{at}"
    return f"{reference}, {where}. {onward}\n{part.text}"
