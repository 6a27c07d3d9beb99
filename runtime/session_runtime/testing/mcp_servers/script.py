"""What a raw server plays: its era, its tools, and where it breaks the rules; JSON on its command line."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Era = Literal["handshake", "stateless", "both"]
Cursor = Literal["normal", "same", "endless"]
Fault = Literal["", "die_before", "die_after", "drop"]
Ignored = Literal["cancel", "eof", "sigterm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One server; what is left out is as a good server does it.

    ``era`` "handshake": ``initialize``, revisions up to 2025-11-25; "stateless": ``server/discover`` of
    2026-07-28. ``protocol`` is the revision it answers whatever it is asked for.
    ``tools`` are names of ``definitions``, ``many:N`` for N further ones, or whole definitions;
    ``next_tools`` take their place after the tool ``change_list`` was called or SIGUSR1 came.
    ``page_size`` 0: one page.
    ``cursor`` "same": every page is the first and names the same next one; "endless": every page is new.
    ``silent`` methods are never answered, ``errors`` gives methods a code to fail with, ``slow`` the seconds
    that they take, and the process ends with status 3 when it gets one of ``dies_at``.
    ``banner`` is printed first and ``chatter`` in front of each answer, both Latin-1, so that they can be
    invalid UTF-8, and without an end of line of their own; ``stderr`` goes to the standard error.
    ``flood`` is how many times it says that its list changed, as soon as it may.
    ``received`` is a file that gets every message as a line, ``executions`` one that gets a line per call
    that took effect. ``faults`` gives tools what befalls their first, second, … call, counted in that file:
    "die_before" and "die_after" it took effect, or "drop" the answer alone.

    Over HTTP, ``answers`` are streams of events or JSON, ``sessions`` says whether the handshake gives an
    id, and ``statuses`` are what the first requests with a method are answered with, 0 as usual.
    """

    name: str = "raw"
    era: Era = "both"
    protocol: str | None = None
    tools: tuple[str | Mapping[str, Any], ...] = ("echo", "add")
    next_tools: tuple[str | Mapping[str, Any], ...] | None = None
    page_size: int = 0
    cursor: Cursor = "normal"
    list_changed: bool = True
    ttl_ms: int = 0
    silent: tuple[str, ...] = ()
    errors: Mapping[str, int] = field(default_factory=dict)
    slow: Mapping[str, float] = field(default_factory=dict)
    dies_at: tuple[str, ...] = ()
    banner: str = ""
    chatter: str = ""
    stderr: str = ""
    ignores: tuple[Ignored, ...] = ()
    flood: int = 0
    received: str | None = None
    executions: str | None = None
    faults: Mapping[str, tuple[Fault, ...]] = field(default_factory=dict)
    answers: Literal["events", "json"] = "events"
    sessions: bool = True
    statuses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def to_json(self) -> str:
        """The script as it stands on a command line."""
        return json.dumps(asdict(self))


def script_from_json(text: str) -> Script:
    """Read a script; raises TypeError for a key that there is not, ValueError if it is no JSON."""
    lists = {each.name for each in fields(Script) if str(each.type).startswith("tuple")}
    given: dict[str, Any] = {
        key: tuple(value) if key in lists and value is not None else value
        for key, value in json.loads(text).items()
    }
    return Script(**given)
