"""What one attempt to change the configuration came to; attempts are made in ``live`` (REL-3)."""

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Literal

from session_runtime.config.changes import Change
from session_runtime.errors import Problem
from session_runtime.types import JsonObject, nothing

Trigger = Literal["start", "watch", "signal", "http", "cli", "secret", "source", "servers"]
Verdict = Literal["applied", "unchanged", "rejected", "applied-restart-needed"]

KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Receipt:
    """One attempt: what caused it, how it ended, and why; no secret is in it (REL-3).

    ``id`` counts the attempts of this process from 1, ``at`` is the time in seconds since 1970 when it
    began, ``digest`` is the one of the configuration and tools in force afterwards, ``generation`` its
    number. ``changes`` are the keys that were edited, ``waiting`` those that act after a restart and
    have not yet. ``tools`` lists canonical names under ``added``, ``changed``, ``removed`` and
    ``broken``; a kind without names is left out. ``errors`` say why an attempt was rejected,
    ``warnings`` what was accepted without effect. ``entry`` is the number under which the history keeps
    what came into force, None as long as it does not, and once it does not any more.
    """

    id: int
    at: float
    trigger: Trigger
    verdict: Verdict
    digest: str
    generation: int
    duration_s: float
    changes: tuple[Change, ...] = ()
    waiting: tuple[Change, ...] = ()
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=nothing)
    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    entry: int | None = None

    @property
    def good(self) -> bool:
        """Whether what the sources say is in force, as far as it can be without a restart."""
        return self.verdict != "rejected"

    def to_json(self) -> JsonObject:
        """Give the receipt as every door shows it (INT-4)."""
        return {
            "id": self.id,
            "time": datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds"),
            "trigger": self.trigger,
            "verdict": self.verdict,
            "digest": self.digest,
            "generation": self.generation,
            "entry": self.entry,
            "duration_ms": round(self.duration_s * 1000, 3),
            "changes": [asdict(change) for change in self.changes],
            "restart_needed": [asdict(change) for change in self.waiting],
            "tools": {kind: list(names) for kind, names in self.tools.items()},
            "errors": [asdict(problem) for problem in self.errors],
            "warnings": [asdict(problem) for problem in self.warnings],
        }

    def summary(self) -> str:
        """Tell the attempt in one line, for the log: what changed from what to what, and what is wrong."""
        head = f"configuration {self.verdict} ({self.trigger}, receipt {self.id})"
        told = [change.told for change in self.changes]
        told += [f"tools {kind}: {_few(names)}" for kind, names in self.tools.items()]
        told += [f"restart needed: {change.told}" for change in self.waiting]
        told += [str(problem) for problem in self.errors]
        return f"{head}: {'; '.join(told)}" if told else head


class Receipts:
    """The last receipts, newest first, and the total numbers of each verdict; ``live`` alone adds."""

    def __init__(self) -> None:
        self._kept: deque[Receipt] = deque(maxlen=KEPT)
        self._counts: dict[tuple[Trigger, Verdict], int] = {}
        self._applied: Receipt | None = None

    @property
    def applied(self) -> Receipt | None:
        """The newest one of a change that came into force, however long ago."""
        return self._applied

    @property
    def last(self) -> Receipt | None:
        """The newest one."""
        return self._kept[0] if self._kept else None

    def newest(self, limit: int = KEPT) -> tuple[Receipt, ...]:
        """List up to ``limit`` receipts, newest first."""
        return tuple(self._kept)[:limit]

    def kept_as(self, number: int, entry: int, oldest: int) -> None:
        """Take note of the entry of the history that keeps what receipt ``number`` put into force.

        ``oldest`` is the oldest entry that is left: no receipt names one before it.
        """
        for at, receipt in enumerate(self._kept):
            self._kept[at] = _noted(receipt, number, entry, oldest)
        if self._applied is not None:
            self._applied = _noted(self._applied, number, entry, oldest)

    def counts(self) -> Mapping[tuple[Trigger, Verdict], int]:
        """How many there were of each trigger and verdict, since the process began."""
        return MappingProxyType(dict(self._counts))

    def add(self, receipt: Receipt) -> None:
        """Keep one more; the oldest of many is forgotten."""
        self._kept.appendleft(receipt)
        if self._applied is None or receipt.generation > self._applied.generation:
            self._applied = receipt
        key = (receipt.trigger, receipt.verdict)
        self._counts[key] = self._counts.get(key, 0) + 1


def _noted(receipt: Receipt, number: int, entry: int, oldest: int) -> Receipt:
    own = entry if receipt.id == number else receipt.entry
    left = own if own is not None and own >= oldest else None
    return receipt if left == receipt.entry else replace(receipt, entry=left)


def _few(names: tuple[str, ...], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
