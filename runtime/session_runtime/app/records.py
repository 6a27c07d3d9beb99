"""Where the record of an ask goes when it ended: into the numbers, the trace, spans, and what is shown."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from session_runtime import __version__
from session_runtime.app.recent import RecentAsks
from session_runtime.config.runtime import TraceSettings
from session_runtime.config.settings import Settings
from session_runtime.threads import in_thread
from session_runtime.trace.export import SpanExport, Target
from session_runtime.trace.measures import AskMeasures
from session_runtime.trace.metrics import Family, Sample
from session_runtime.trace.record import AskRecord
from session_runtime.trace.sink import TraceSink
from session_runtime.types import nothing


class AskRecords:
    """Takes every record once; never waits and never fails."""

    def __init__(
        self,
        sink: TraceSink | None,
        spans: SpanExport,
        current: Callable[[], Settings],
        recent: RecentAsks,
    ) -> None:
        self._recent = recent
        self._measures = AskMeasures()
        self._sink = sink
        self._spans = spans
        self._current = current

    @property
    def dropped(self) -> int:
        """Records that are not in the trace, although they should be."""
        return 0 if self._sink is None else self._sink.dropped

    def keep(self, record: AskRecord) -> None:
        """Count and trace an ask that ended."""
        self._measures.add(record)
        self._recent.add(record)
        if self._sink is not None:
            self._sink.write(record)
        if record.trace is not None and record.trace.exported:
            self._spans.write(record, target_of(self._current()))

    def totals(self) -> dict[str, Any]:
        """What all asks that ended came to; see ``AskMeasures.totals``."""
        return self._measures.totals()

    def metrics(self) -> Iterator[Family]:
        """All asks that ended, and what was lost of them."""
        yield from self._measures.families()
        yield Family(
            "trace_dropped_total",
            "counter",
            "Records of asks that are not in the trace: the disk was full or too slow.",
            (Sample(self.dropped, nothing()),),
        )
        yield Family(
            "otel_asks_total",
            "counter",
            "Asks with OpenTelemetry spans, by whether the collector took them.",
            (
                Sample(self._spans.delivered, {"outcome": "delivered"}),
                Sample(self._spans.dropped, {"outcome": "dropped"}),
            ),
        )


def target_of(settings: Settings) -> Target:
    """Where spans go by these settings."""
    otel = settings.otel
    headers = {name: value.get_secret_value() for name, value in otel.headers.items()}
    name = settings.runtime.name
    return Target(otel.endpoint, headers, otel.timeout_s, name, __version__, otel.content)


@asynccontextmanager
async def open_records(
    trace: TraceSettings,
    current: Callable[[], Settings],
    recent: RecentAsks,
    state_dir: Path | None = None,
) -> AsyncIterator[AskRecords]:
    """Open the trace, and close it with all that was written; ``current`` settings say where spans go.

    ``recent`` is told of each ask too; files of the trace belong to whom ``state_dir`` belongs.
    """
    spans = SpanExport()
    sink = None
    if trace.enabled:
        sink = TraceSink(trace.path, trace.max_bytes, trace.keep, state_dir=state_dir)
    try:
        yield AskRecords(sink, spans, current, recent)
    finally:
        await in_thread("send the last spans", spans.close)
        if sink is not None:
            await sink.aclose()
