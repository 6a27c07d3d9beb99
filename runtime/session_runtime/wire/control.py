"""JSON of what operators ask of a running daemon: what runs, and what to take away (REL-9)."""

from dataclasses import asdict
from typing import Any, Final

from session_runtime.types import RunningAsk
from session_runtime.wire.fields import Fields, raise_if_any

SOCKET: Final = "control.sock"
"""Its name in the state directory (NET-4)."""

LOCK: Final = "lock"
"""The file there that a running daemon keeps locked."""

_APPROVE_FIELDS: Final = ("name", "digest", "server")
_REVOKE_FIELDS: Final = ("pattern", "reason")


def running_to_json(ask: RunningAsk) -> dict[str, Any]:
    """One running ask; its age to the millisecond."""
    return {**asdict(ask), "age_s": round(ask.age_s, 3)}


def approve_from_json(data: object) -> tuple[str, str] | str:
    """Read the name of a tool with the digest of its form, or that of a server, as a text alone.

    Raises RequestError that lists every problem.
    """
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.refuse_unknown(_APPROVE_FIELDS)
    name, server = fields.text("name", blank=False), fields.text("server", blank=False)
    digest = fields.text("digest", blank=False)
    if (name is None) == (server is None) and not problems:
        fields.complain(
            "name", "or server is needed, one of them: the tool, or whose tools, to approve"
        )
    elif (name is None) != (digest is None) and not problems:
        fields.complain(
            "digest",
            "is needed with name, and with it alone: that of the form that was looked at, as"
            " GET /v1/tools/waiting/NAME tells it",
        )
    raise_if_any(problems)
    return server if server is not None else (name or "", digest or "")


def revoke_from_json(data: object) -> tuple[str, str]:
    """Read a pattern and a reason; raises RequestError that lists every problem."""
    problems: list[str] = []
    fields = Fields(data, "", problems)
    fields.refuse_unknown(_REVOKE_FIELDS)
    pattern = fields.text("pattern", blank=False)
    if pattern is None and not problems:
        fields.complain("pattern", "is missing; name a tool, or a pattern such as files.*")
    reason = fields.text("reason")
    raise_if_any(problems)
    return pattern or "", reason or ""
