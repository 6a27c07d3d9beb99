"""Tells before an edit is applied what it would change of the asks that were recorded last (OPS-3).

What a replay is, and what differs, is decided in ``replay``; whether the edit is good by the validator of
every reload.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from session_runtime.app.editor import ConfigEditor
from session_runtime.config.live import LiveConfig, Prepared
from session_runtime.generation import Generation, Generations, instructions_of
from session_runtime.generation.builder import PreparedGeneration
from session_runtime.replay import Replayed, Summary, by_edit, replay
from session_runtime.threads import in_thread
from session_runtime.trace.reading import Traces
from session_runtime.trace.record import AskRecord

MOST_SECONDS: Final = 5.0
"""No more time than this is spent on replaying; asks that are left then are not looked at."""
MOST_EXAMPLES: Final = 20
NOT_TRACED: Final = "no ask is recorded: trace.enabled is false"
NONE_YET: Final = "no ask is recorded yet"


@dataclass(slots=True)
class _Seen:
    """What the replays came to so far."""

    summary: Summary = field(default_factory=Summary)
    examples: list[Replayed] = field(default_factory=list)
    out_of_time: bool = False

    def add(self, changed: Replayed) -> None:
        self.summary.add(changed)
        if not changed.same and len(self.examples) < MOST_EXAMPLES:
            self.examples.append(changed)


class ReplayPreview:
    """Replays recorded asks by the configuration in force and by another one, one preview at a time.

    It runs in a thread of its own, and ends by ``clock`` after ``MOST_SECONDS``.
    """

    def __init__(
        self,
        live: LiveConfig,
        editor: ConfigEditor,
        generations: Generations,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live = live
        self._editor = editor
        self._generations = generations
        self._clock = clock
        self._in_turn = asyncio.Lock()

    async def of(self, text: bytes | None, most: int) -> dict[str, Any]:
        """What ``text`` in place of the file would change of the last ``most`` asks; None: the file itself.

        ``receipt`` is that of a trial; ``replay`` is None where that is rejected, and where there is no ask,
        as ``why_not`` tells then. Raises RequestError if the trace cannot be read.
        """
        told: dict[str, Any] = {"replay": None, "why_not": None}

        async def look(prepared: Prepared) -> None:
            if not isinstance(prepared, PreparedGeneration):
                raise TypeError(f"{prepared!r} is no prepared generation")
            told.update(await self._compared(prepared.generation, most))

        async with self._in_turn:
            receipt = await self._live.validate(text, look)
        return {"receipt": receipt.to_json(), **told}

    async def of_values(
        self, values: Mapping[str, object], most: int, *, any_key: bool
    ) -> dict[str, Any]:
        """The same for an edit of dotted keys; raises what ``ConfigEditor.try_values`` raises too."""
        receipt, content = await self._editor.plan_values(values, any_key=any_key)
        if content is None:
            return {"receipt": receipt.to_json(), "replay": None, "why_not": None}
        return await self.of(content, most)

    async def _compared(self, would_be: Generation, most: int) -> Mapping[str, Any]:
        with self._generations.pin() as now:
            trace = now.settings.trace
            if not trace.enabled:
                return {"why_not": NOT_TRACED}
            work = partial(self._replay, trace.path, now, would_be, most)
            seen, damaged = await in_thread("replay recorded asks", work)
        if not seen.summary.asks:
            return {"why_not": NONE_YET}
        seen.summary.add_damaged(damaged)
        return {"replay": _told(seen)}

    def _replay(
        self, path: Path, now: Generation, would_be: Generation, most: int
    ) -> tuple[_Seen, int]:
        """Replay the last asks, the newest first, while there is time."""
        seen, traces, end = _Seen(), Traces(path), self._clock() + MOST_SECONDS
        for traced in islice(traces.newest_first(), most):
            if self._clock() > end:
                seen.out_of_time = True
                break
            record = _as_instructed(now, traced.record)
            seen.add(by_edit(replay(now, record), replay(would_be, record)))
        return seen, traces.damaged


def _as_instructed(now: Generation, record: AskRecord) -> AskRecord:
    """The record as if its models had been asked with what is in force: what the edit changes is told."""
    return replace(record, instructions=instructions_of(now, record))


def _told(seen: _Seen) -> Mapping[str, Any]:
    return {
        **seen.summary.to_json(),
        "out_of_time": seen.out_of_time,
        "examples": [each.to_json() for each in seen.examples],
    }
