"""What traces, metrics and spans cost, as a part of what the daemon needs for a turn.

The daemon answers asks of four turns over HTTP as fast as it can; its processor time per turn is all that
it does: the door, tool search, the model's wire, handlers, and the trace. Then, in the same run and on the
same records, as its trace has them, all that is done for the record of an ask is done again here: calls
are redacted and hashed, the record is counted, and written as JSON into a file. What that takes is set
against the former. Spans are apart, as they are made only where they are configured.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from asking import asked, client, pointing, prepare
from catalogue_files import folder_or_exit
from conversation import TURNS
from daemon import Daemon, daemon
from report import Cell, options, show
from turn_time import QUESTIONS, conversing, model_process

from session_runtime.trace.measures import AskMeasures
from session_runtime.trace.reading import Traces
from session_runtime.trace.record import AskRecord, record_call, record_to_json
from session_runtime.trace.spans import spans_of
from session_runtime.trace.traceparent import AskTrace
from session_runtime.types import ToolResult
from session_runtime.wire import to_bytes

ROUNDS = 5
RECORDS = 400
IN_FLIGHT = 20
AT_MOST_PERCENT = 5


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--tools", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=4.0, help="of load on the daemon")
    given = parser.parse_args()
    catalogues = folder_or_exit()
    with tempfile.TemporaryDirectory() as temporary:
        config = prepare(Path(temporary), catalogues, given.tools)
        with (
            model_process(partial(conversing, 0, 0)) as url,
            daemon(config, pointing(url, stream=True)) as running,
        ):
            turn_s = asyncio.run(processor_time(running, given.seconds))
        records = [
            each.record for each in Traces(config.parent / "state/trace.jsonl").last(RECORDS)
        ]
        rows = [*measured(records, turn_s, Path(temporary))]
    note = f"{given.tools:,} tools; of {len(records)} asks with {TURNS} turns each."
    show(given, ["what", "per turn, microseconds", "of the daemon's, %", "at most, %"], rows, note)


async def processor_time(running: Daemon, seconds: float) -> float:
    """What a turn costs the daemon in seconds of processor time, once it is warm."""
    async with client() as http:
        await asyncio.gather(*(asked(http, running.url, question) for question in QUESTIONS))
        before, end, done = running.cpu_s(), time.perf_counter() + seconds, 0

        async def go_on() -> None:
            nonlocal done
            while time.perf_counter() < end:
                await asked(http, running.url, QUESTIONS[done % len(QUESTIONS)])
                done += 1

        await asyncio.gather(*(go_on() for _ in range(IN_FLIGHT)))
    return (running.cpu_s() - before) / done / TURNS


def measured(records: Sequence[AskRecord], turn_s: float, folder: Path) -> list[list[Cell]]:
    """A row for each part of the work, and one for what always happens."""
    results = [
        ToolResult(call.call_id, call.name, "ok", "x" * call.result_chars)
        for record in records
        for call in record.all_calls
    ]
    traced = [replace(each, trace=AskTrace("a" * 32, None, True, True)) for each in records]
    parts = {
        "calls, redacted and hashed": partial(keep_calls, results),
        "counting": partial(count, records),
        "JSON, in a thread": partial(write, records, folder / "again.jsonl"),
        "spans, in a thread, where configured": partial(make_spans, traced),
    }
    costs = {name: per_turn(work, len(records)) for name, work in parts.items()}
    always = sum(cost for name, cost in costs.items() if not name.startswith("spans"))
    rows: list[list[Cell]] = [
        [name, cost * 1e6, cost / turn_s * 100, "-"] for name, cost in costs.items()
    ]
    total: list[Cell] = ["traces and metrics", always * 1e6, always / turn_s * 100, AT_MOST_PERCENT]
    return [*rows, total, ["the daemon, all of it", turn_s * 1e6, 100, "-"]]


def per_turn(work: Callable[[], None], records: int) -> float:
    """The median processor time of several rounds, in seconds for each turn."""
    rounds = []
    for _ in range(ROUNDS):
        before = time.process_time()
        work()
        rounds.append(time.process_time() - before)
    return statistics.median(rounds) / records / TURNS


def keep_calls(results: Sequence[ToolResult]) -> None:
    for result in results:
        record_call(result, {"query": "the level of water at a station", "limit": 5})


def count(records: Sequence[AskRecord]) -> None:
    measures = AskMeasures()
    for record in records:
        measures.add(record)


def write(records: Sequence[AskRecord], path: Path) -> None:
    with path.open("ab", buffering=0) as file:
        for record in records:
            file.write(to_bytes(record_to_json(record)) + b"\n")


def make_spans(records: Sequence[AskRecord]) -> None:
    for record in records:
        for _ in spans_of(record, "bot", content=False):
            pass


if __name__ == "__main__":
    main()
