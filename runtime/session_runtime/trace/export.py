"""Sends the spans of asks from a thread of its own: whatever becomes of a collector, no ask waits for it.

How spans are encoded and sent is decided in ``otlp``, which is imported with the first one.
"""

import importlib
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol

from session_runtime.trace.record import AskRecord
from session_runtime.trace.spans import Span, spans_of

MAX_QUEUED: Final = 1_000
MAX_BATCH: Final = 64
"""Asks in one request."""
GATHER_S: Final = 1.0
CLOSE_TIMEOUT_S: Final = 5.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """Where spans go and as whose; ``headers`` are secrets."""

    endpoint: str
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float
    service: str
    version: str
    content: bool


class Exporter(Protocol):
    """Sends spans to one target; used by one thread."""

    def send(self, spans: Sequence[Span]) -> bool:
        """Send them, which may take the target's timeout; tells whether they were taken."""

    def close(self) -> None:
        """Let go of connections; ends a ``send`` that waits to try again."""


OpenExporter = Callable[[Target], Exporter]


def open_otlp(target: Target) -> Exporter:
    """An exporter of OpenTelemetry; its libraries take long to import, and most daemons need none."""
    module = importlib.import_module("session_runtime.trace.otlp")
    exporter: Exporter = module.OtlpExporter(target)
    return exporter


class SpanExport:
    """Takes records of asks and sends those that are part of an exported trace.

    ``dropped`` counts asks whose spans were not delivered: the queue was full, or the collector did not take
    them. That is logged once, until it works again.
    """

    def __init__(
        self,
        open_exporter: OpenExporter = open_otlp,
        *,
        max_queued: int = MAX_QUEUED,
        gather_s: float = GATHER_S,
    ) -> None:
        self._open = open_exporter
        self._max_queued = max_queued
        self._gather_s = gather_s
        self._queue: queue.SimpleQueue[tuple[AskRecord, Target] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._overflowed = 0
        self._failed = 0
        self._delivered = 0
        self._troubled = False
        self._exporter: Exporter | None = None
        self._target: Target | None = None

    @property
    def dropped(self) -> int:
        """Asks whose spans were not delivered."""
        return self._overflowed + self._failed

    @property
    def delivered(self) -> int:
        """Asks whose spans a collector has taken."""
        return self._delivered

    def write(self, record: AskRecord, target: Target) -> None:
        """Queue the spans of an ask; returns at once, and drops them if the thread is far behind."""
        if record.trace is None or not record.trace.exported:
            return
        if self._closed or self._queue.qsize() >= self._max_queued:
            self._overflowed += 1
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="span-export", daemon=True)
            self._thread.start()
        self._queue.put((record, target))

    def close(self) -> None:
        """Send what is queued; gives up on a collector that does not answer after 5 s. Blocks."""
        self._closed = True
        if self._thread is None:
            return
        self._queue.put(None)
        self._thread.join(CLOSE_TIMEOUT_S)
        if self._thread.is_alive():
            _log.error("the spans of %d asks are lost: no answer", self._queue.qsize())

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, ended = self._gathered(first)
            for target, of_it in groupby(batch, key=itemgetter(1)):
                self._deliver([record for record, _ in of_it], target)
            if ended:
                break
        self._let_go()

    def _gathered(
        self, first: tuple[AskRecord, Target]
    ) -> tuple[list[tuple[AskRecord, Target]], bool]:
        """What comes within a moment after the first, and whether it is the end."""
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                each = self._queue.get(timeout=self._gather_s)
            except queue.Empty:
                break
            if each is None:
                return batch, True
            batch.append(each)
        return batch, False

    def _deliver(self, records: Sequence[AskRecord], target: Target) -> None:
        try:
            spans = [
                span
                for record in records
                for span in spans_of(record, target.service, content=target.content)
            ]
            taken, why = self._exporter_for(target).send(spans), "it did not take them"
        except Exception as error:  # noqa: BLE001 - nothing may end the thread that sends all others
            taken, why = False, type(error).__name__
        if taken:
            self._delivered += len(records)
        else:
            self._failed += len(records)
        self._tell(taken, target, why)

    def _exporter_for(self, target: Target) -> Exporter:
        if self._exporter is None or target != self._target:
            self._let_go()
            self._exporter, self._target = self._open(target), target
        return self._exporter

    def _let_go(self) -> None:
        if self._exporter is not None:
            self._exporter.close()
        self._exporter = None

    def _tell(self, taken: bool, target: Target, why: str) -> None:
        if not taken and not self._troubled:
            _log.warning(
                "spans are lost: the collector at %s cannot be used (%s); more like it are counted, not told."
                " Asks go on without; look at otel.endpoint and otel.headers",
                target.endpoint,
                why,
            )
        elif taken and self._troubled:
            _log.warning("spans are taken again; those of %d asks were lost", self.dropped)
        self._troubled = not taken
