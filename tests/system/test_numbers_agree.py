"""Of the same hundred asks, callers are told and operators read the same numbers in four places."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from session_runtime.trace.measures import family_of
from session_runtime.trace.reading import Traces
from session_runtime.trace.record import AskRecord
from tests.system.chromium import PROGRAM, chromium
from tests.system.hundred_asks import KINDS, Told, a_hundred
from tests.transports.stub import key_of

pytestmark = [pytest.mark.requirement("OPS-1b"), pytest.mark.requirement("OPS-3")]
GONE = "cancelled.caller"
NOT_ASKED = "busy."


@dataclass(frozen=True)
class Seen:
    """The same asks in results and events, as numbers, in the trace, and on the console's routes."""

    told: Told
    numbers: Mapping[str, float]
    records: tuple[AskRecord, ...]
    totals: Mapping[str, Any]
    asks: Mapping[str, Mapping[str, Any]]
    tools: Mapping[str, Mapping[str, Any]]

    def counted(self, name: str, label: str) -> dict[str, float]:
        """The values above zero of one family of numbers, by one label."""
        start, end = f'{name}{{{label}="', '"}'
        return {
            key.removeprefix(start).removesuffix(end): value
            for key, value in self.numbers.items()
            if key.startswith(start) and value
        }

    def summed(self, name: str) -> float:
        """The sum of one number over all records of the trace."""
        return sum(getattr(record, name) for record in self.records)


async def seen(folder: Path) -> Seen:
    async with a_hundred(folder) as asked:
        caller = asked.caller
        numbers = await caller.metrics()
        recent = await caller.get("/v1/recent?limit=200")
        tools = (await caller.get("/v1/tools"))["tools"]
        asked.running.process.terminate()
        await asked.running.process.communicate()
    traces = Traces(folder / ".session-runtime" / "trace.jsonl")
    return Seen(
        asked.told,
        numbers,
        tuple(each.record for each in traces.oldest_first()),
        recent["totals"],
        {each["ask_id"]: each for each in recent["asks"]},
        {each["name"]: each["statistics"] for each in tools},
    )


async def test_of_a_hundred_asks_all_places_tell_the_same(tmp_path: Path) -> None:
    at = await seen(tmp_path)
    assert sum(KINDS.values()) == 100
    assert len(list((tmp_path / ".session-runtime").glob("trace.jsonl*"))) > 2  # it was rotated
    the_asks_are_the_same(at)
    outcomes_and_errors_are_the_same(at)
    turns_and_tokens_are_the_same(at)
    calls_and_searches_are_the_same(at)
    tools_are_the_same(at)
    times_are_the_same(at)


def the_asks_are_the_same(at: Seen) -> None:
    traced = {record.ask_id: record for record in at.records}
    assert len(traced) == len(at.records)
    assert at.asks.keys() == traced.keys()
    nobody_was_told = traced.keys() - at.told.results.keys()
    assert at.told.results.keys() <= traced.keys()
    assert len(nobody_was_told) == at.told.left + len(began_and_failed(at.told)) > 0
    for ask_id, result in at.told.results.items():
        record, shown = traced[ask_id], at.asks[ask_id]
        code = result["error"]["code"] if "error" in result else None
        one = result["outcome"], code, result["steps"], result["usage"]["total_tokens"]
        error = None if record.error is None else record.error.code
        assert one == (record.outcome, error, len(record.turns), record.usage.total_tokens)
        made = len([c for turn in record.turns for c in turn.calls]) + (record.invoked is not None)
        assert shown["tool_calls"] == made
        assert one == tuple(shown[each] for each in ("outcome", "error_code", "steps", "tokens"))


def began_and_failed(told: Told) -> list[str]:
    """Codes of asks that were refused by an answer of HTTP and not by the door of all asks."""
    return [code for code in told.refused if not code.startswith(NOT_ASKED)]


def outcomes_and_errors_are_the_same(at: Seen) -> None:
    results = at.told.results.values()
    outcomes = Counter(result["outcome"] for result in results)
    outcomes += Counter(cancelled=at.told.left, failed=len(began_and_failed(at.told)))
    assert set(outcomes) == {"answered", "limit", "failed", "cancelled", "needs_confirmation"}
    assert outcomes == Counter(record.outcome for record in at.records)
    assert outcomes == at.counted("asks_total", "outcome") == at.totals["outcomes"]
    assert outcomes.total() == at.numbers["ask_seconds_count"] == at.totals["asks"]
    errors = Counter(result["error"]["code"] for result in results if "error" in result)
    errors += Counter(began_and_failed(at.told)) + Counter({GONE: at.told.left})
    assert errors == Counter(r.error.code for r in at.records if r.error is not None)
    assert errors == at.totals["errors"]
    families = by_family(errors)
    assert families == at.counted("ask_errors_total", "family")
    refused = Counter(code for code in at.told.refused if code.startswith(NOT_ASKED))
    assert refused == at.counted("asks_refused_total", "code") == at.totals["refused"]
    assert outcomes.total() + refused.total() == 100 + 2  # two asks waited behind another one


def by_family(codes: Mapping[str, int]) -> Counter[str]:
    families: Counter[str] = Counter()
    for code, times in codes.items():
        families[family_of(code)] += times
    return families


def turns_and_tokens_are_the_same(at: Seen) -> None:
    unseen = [r for r in at.records if r.ask_id not in at.told.results]
    turns = at.told.count("steps") + sum(len(record.turns) for record in unseen)
    assert turns == sum(len(record.turns) for record in at.records)
    agents = sum(len(agent.turns) for record in at.records for agent in record.agents)
    assert {"ask": turns, "agent": agents} == at.counted("turns_total", "of") == at.totals["turns"]
    used = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "model_calls": 0}
    for name in used:
        used[name] = sum(result["usage"][name] for result in at.told.results.values())
        used[name] += sum(getattr(record.usage, name) for record in unseen)
        assert used[name] == sum(getattr(record.usage, name) for record in at.records) > 0
        assert used[name] == at.totals["usage"][name]
    assert used["input_tokens"] == at.numbers["ask_input_tokens_sum"]
    assert used["output_tokens"] == at.numbers["ask_output_tokens_sum"]
    saved = at.summed("tokens_saved")
    assert saved == at.numbers["tokens_saved"] == at.totals["tokens_saved"] > 0


def calls_and_searches_are_the_same(at: Seen) -> None:
    made = [call for record in at.records for call in record.all_calls]
    calls = Counter(call.status for call in made if call.search is None)
    assert set(calls) == {"ok", "error", "refused"}
    assert calls == at.counted("calls_total", "status") == at.totals["calls"]
    codes = Counter(call.error_code for call in made if call.error_code and call.search is None)
    assert "tool.cancelled" in codes
    assert by_family(codes) == at.counted("call_errors_total", "family")
    searches = at.counted("searches_total", "result")
    assert sum(searches.values()) == sum(call.search is not None for call in made)
    assert searches == at.totals["searches"]
    finished = {
        (event["ask_id"], event["call_id"], event["status"], event.get("error_code"))
        for event in at.told.events
        if event["type"] == "tool.finished"
    }
    followed = {event["ask_id"] for event in at.told.events if event["type"] == "ask.finished"}
    assert {each for each in finished if each[0] in followed} == {
        (record.ask_id, call.call_id, call.status, call.error_code)
        for record in at.records
        if record.ask_id in followed
        for call in record.all_calls
        if call not in record.prefetch
    }


def tools_are_the_same(at: Seen) -> None:
    """What each tool did; a call that was refused did nothing."""
    ran = [c for r in at.records for c in r.all_calls if c.search is None and c.status != "refused"]
    assert len(ran) == at.numbers["tool_seconds_count"]
    assert statistics((call.name, call.status == "ok") for call in ran) == {
        name: (each["calls"], each["ok"], each["failed"])
        for name, each in at.tools.items()
        if each["calls"]
    }


def statistics(calls: Iterable[tuple[str, bool]]) -> dict[str, tuple[int, int, int]]:
    """Calls, good ones and failed ones of each tool."""
    counts = Counter(calls)
    names = {name for name, _ in counts}
    return {
        name: (counts[name, True] + counts[name, False], counts[name, True], counts[name, False])
        for name in names
    }


def times_are_the_same(at: Seen) -> None:
    """To the rounding of a microsecond for each ask."""
    turns = [turn for record in at.records for turn in record.all_turns]
    sums = {
        "ask_seconds_sum": at.summed("duration_s"),
        "daemon_turn_seconds_sum": at.summed("daemon_s"),
        "model_seconds_sum": sum(turn.model_s for turn in turns),
    }
    near = pytest.approx(sums, abs=1e-3)
    assert {name: at.numbers[name] for name in sums} == near
    shown = at.totals["duration_s"], at.totals["daemon_s"]
    assert shown == pytest.approx(
        (sums["ask_seconds_sum"], sums["daemon_turn_seconds_sum"]), abs=1e-3
    )


SUMS = """Object.fromEntries([...document.querySelectorAll("[aria-labelledby=s-since-the-start] tbody tr")]
  .map((row) => [...row.cells].map((cell) => cell.textContent)))"""
WORDS = {
    "asks_total": ("outcome", "asks that ended:"),
    "asks_refused_total": ("code", "asks refused:"),
    "turns_total": ("of", "model turns, of"),
    "calls_total": ("status", "tool calls:"),
    "searches_total": ("result", "tool searches:"),
}


@pytest.mark.soak
@pytest.mark.skipif(PROGRAM is None, reason="make soak did not install Chromium")
async def test_the_console_shows_the_numbers_that_a_monitoring_system_reads(tmp_path: Path) -> None:
    async with a_hundred(tmp_path) as asked, chromium(tmp_path / "browser") as page:
        numbers = await asked.caller.metrics()
        await page.go(f"{asked.running.url}/console")
        await page.write("input[name=key]", key_of("boss"))
        await page.press("Enter", 13, "\r")
        await page.sees("tokens saved by tool search")
        shown = await page.value(SUMS)
    times = [shown.pop("time of all asks"), shown.pop("of it the daemon's own")]
    assert all(time.endswith("s") or time.endswith("min") for time in times)
    sums = {
        f"{words} {name.partition(chr(34))[2][:-2]}": f"{value:,.0f}"
        for family, (label, words) in WORDS.items()
        for name, value in numbers.items()
        if name.startswith(f"{family}{{{label}=") and value
    }
    assert shown == sums | {
        "tokens in": f"{numbers['ask_input_tokens_sum']:,.0f}",
        "tokens out": f"{numbers['ask_output_tokens_sum']:,.0f}",
        "tokens saved by tool search": f"{numbers['tokens_saved']:,.0f}",
    }
