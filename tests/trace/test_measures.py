"""Asks that ended become numbers: of a bounded number of kinds, whatever the asks say."""

from dataclasses import replace

import pytest

from session_runtime.trace.measures import MOST_CODES, OTHER, AskMeasures, Histogram
from session_runtime.trace.metrics import exposition
from session_runtime.trace.record import AskRecord, record_call
from session_runtime.types import ErrorInfo, ToolResult
from session_runtime.wire import usage_to_json
from tests.trace.traced import RECORD, SEARCH, TURN

pytestmark = pytest.mark.requirement("OPS-1b")


def numbers(*records: AskRecord) -> dict[str, float]:
    measures = AskMeasures()
    for record in records:
        measures.add(record)
    lines = exposition(measures.families()).splitlines()
    return {
        name.removeprefix("session_runtime_"): float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def test_a_histogram_counts_up_to_each_bound_and_adds_up() -> None:
    histogram = Histogram((1, 2.5))
    for value in (0.5, 1, 2, 9):
        histogram.add(value)
    histogram.add(2.5, 3)
    assert exposition([histogram.family("x_seconds", "X.")]) == (
        "# HELP session_runtime_x_seconds X.\n"
        "# TYPE session_runtime_x_seconds histogram\n"
        'session_runtime_x_seconds_bucket{le="1"} 2\n'
        'session_runtime_x_seconds_bucket{le="2.5"} 6\n'
        'session_runtime_x_seconds_bucket{le="+Inf"} 7\n'
        "session_runtime_x_seconds_sum 20\n"
        "session_runtime_x_seconds_count 7\n"
    )


def test_an_ask_is_counted_with_its_sub_agents_and_all_calls() -> None:
    told = numbers(RECORD)
    assert told['asks_total{outcome="failed"}'] == 1
    assert told['ask_errors_total{family="model"}'] == 1
    assert (told['turns_total{of="ask"}'], told['turns_total{of="agent"}']) == (2, 1)
    assert (told['calls_total{status="ok"}'], told['calls_total{status="error"}']) == (3, 1)
    assert told['call_errors_total{family="tool"}'] == 1
    assert told['searches_total{result="found"}'] == 1
    assert (told["model_seconds_count"], told["model_seconds_sum"]) == (3, 1.1)
    assert (told["daemon_turn_seconds_count"], told["daemon_turn_seconds_sum"]) == (2, 0.004)
    assert (told["ask_input_tokens_sum"], told["ask_output_tokens_sum"]) == (300, 60)
    assert (told['tokens_total{kind="cached"}'], told["tokens_saved"]) == (180, 3_300)


@pytest.mark.requirement("OPS-3")
def test_sums_of_all_asks_are_told_as_the_numbers_are() -> None:
    measures = AskMeasures()
    for record in (RECORD, replace(RECORD, error=None, outcome="answered")):
        measures.add(record)
    assert measures.totals() == {
        "asks": 2,
        "outcomes": {"failed": 1, "answered": 1},
        "errors": {"model.overloaded": 1},
        "turns": {"ask": 4, "agent": 2},
        "calls": {"ok": 6, "error": 2},
        "searches": {"found": 2},
        "usage": usage_to_json(RECORD.usage + RECORD.usage),
        "tokens_saved": 6_600,
        "duration_s": round(2 * RECORD.duration_s, 6),
        "daemon_s": 0.008,
    }


def test_codes_that_tools_make_up_do_not_fill_the_memory() -> None:
    measures = AskMeasures()
    for number in range(MOST_CODES + 5):
        measures.add(replace(RECORD, error=ErrorInfo(f"made.up{number}", "")))
    errors = measures.totals()["errors"]
    assert (len(errors), errors[OTHER]) == (MOST_CODES + 1, 5)


def test_each_way_a_search_can_end_is_counted_and_is_no_call() -> None:
    found = SEARCH.search
    assert found is not None
    had = replace(SEARCH, search=replace(found, loaded=()))
    missed = replace(SEARCH, search=replace(found, loaded=(), already_loaded=()))
    refused = replace(SEARCH, status="refused", error_code="tool_search.limit")
    turn = replace(TURN, calls=(SEARCH, had, missed, refused))
    told = numbers(replace(RECORD, turns=(turn,), agents=(), prefetch=(), invoked=None))
    results = [told[f'searches_total{{result="{name}"}}'] for name in ("found", "had", "missed")]
    assert [*results, told['searches_total{result="refused"}']] == [1, 1, 1, 1]
    assert sum(value for name, value in told.items() if name.startswith("calls_total")) == 0


def test_what_callers_and_tools_say_makes_no_labels() -> None:
    call = record_call(ToolResult("c", "t", "error", "", "evil.code"), None)
    odd = replace(
        RECORD,
        model="evil",
        error=ErrorInfo("evil.code", ""),
        turns=(replace(TURN, calls=(call,)),),
    )
    told = numbers(odd)
    assert told.keys() == numbers().keys()
    assert (
        told['ask_errors_total{family="other"}'] == told['call_errors_total{family="other"}'] == 1
    )
    assert not any("evil" in name for name in told)


def test_an_ask_without_a_turn_counts_as_one_for_the_daemons_time() -> None:
    told = numbers(replace(RECORD, turns=()))
    assert (told["daemon_turn_seconds_count"], told["daemon_turn_seconds_sum"]) == (1, 0.004)
