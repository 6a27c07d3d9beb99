"""How a tool that waits for an approval is shown: all of its form, old lines beside new ones (RTE-4)."""

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any


def waiting_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """What ``GET /v1/tools/waiting/{name}`` tells, and the command that approves each form."""
    for form in told["forms"]:
        yield f"{told['name']}: tool {form['tool']} of server {form['server']}"
        if form["before"] is None:
            yield "  how it was before was not kept; now it is:"
        yield from (f"  {line}" for line in _difference(form["before"], form["now"]))
        command = f"session-runtime tools approve {told['name']} --form {form['digest']}"
        yield f"to approve exactly this: {command}"


def _difference(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Iterator[str]:
    """All lines of both forms, the old ones with a minus and the new ones with a plus in front."""
    after = _lines(now)
    if before is None:
        yield from after
        return
    lines = unified_diff(_lines(before), after, n=len(after), lineterm="")
    yield from list(lines)[3:]  # without names and place


def _lines(form: Mapping[str, Any]) -> list[str]:
    return json.dumps(form, indent=2, sort_keys=True, ensure_ascii=False).split("\n")
