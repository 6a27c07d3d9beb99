"""What results, traces and metrics say of the same asks is the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, AskResult, Identity, Runtime
from session_runtime.trace.reading import Traces
from session_runtime.trace.record import AskRecord
from tests.app.test_metrics import read
from tests.support import calls, says, tool_folder, write_agent, write_handler

SEARCH = """
[skills]
tool_search_enabled = true
tool_search_always_loaded = []
"""
FAILS = "def execute(args, context):\n    raise ValueError('no')\n"
ASKS = 20


def configured(folder: Path) -> str:
    for number in range(12):
        write_handler(
            folder / "tools", f"plain.tool{number}", description=f"Measures thing {number}."
        )
    write_handler(folder / "tools", "weather.fail", code=FAILS)
    write_agent(folder / "tools", "helper", settings='tools = []\nmodel = "inner"\n')
    replies: list[dict[str, Any]] = [
        calls(("tool_search", {"query": "select:weather.fail,helper"})),
        calls(("weather.fail", {}), ("helper", {"task": "x"}), ("plain.unknown", {})),
        calls(("tool_search", {"query": "zzzz qqqq"})),
        says("done"),
    ]
    profile = '[models.{0}]\nwire = "scripted"\nscript = "{0}.json"\nmax_retries = 0\n'
    for name, played in (("main", replies), ("inner", [says("inner")]), ("fails", [])):
        (folder / f"{name}.json").write_text(_script(played), "utf-8")
    texts = [profile.format(name) for name in ("main", "inner", "fails")]
    return tool_folder(folder) + SEARCH + "".join(texts)


def _script(replies: list[dict[str, Any]]) -> str:
    return json.dumps({"replies": replies})


async def asked(folder: Path) -> tuple[list[AskResult], list[AskRecord], dict[str, float]]:
    """So many asks of several kinds in results, in the trace, and as numbers."""
    (folder / "config.toml").write_text(configured(folder), "utf-8")
    async with Runtime.open(folder / "config.toml", env={}, watch=False) as runtime:
        results = [await runtime.ask(request(number)) for number in range(ASKS)]
        numbers = read(runtime)
    traces = Traces(folder / ".session-runtime" / "trace.jsonl")
    return results, [each.record for each in traces.oldest_first()], numbers


def request(number: int) -> AskRequest:
    model = "fails" if number % 5 == 4 else None
    return AskRequest(f"question {number}", identity=Identity(f"u{number}"), model=model)


@pytest.mark.requirement("OPS-1b")
async def test_results_traces_and_metrics_agree_over_many_asks(tmp_path: Path) -> None:
    results, records, numbers = await asked(tmp_path)
    assert [result.ask_id for result in results] == [record.ask_id for record in records]
    assert [result.usage for result in results] == [record.usage for record in records]
    assert [result.steps for result in results] == [len(record.turns) for record in records]
    assert {result.outcome for result in results} == {"answered", "failed"}
    for outcome in ("answered", "failed"):
        ended = sum(result.outcome == outcome for result in results)
        assert numbers[f'asks_total{{outcome="{outcome}"}}'] == ended
    assert numbers['turns_total{of="ask"}'] == sum(result.steps for result in results) > 0
    assert numbers['turns_total{of="agent"}'] == sum(len(r.agents) for r in records) == 16
    sums = {
        "ask_input_tokens_sum": sum(result.usage.input_tokens for result in results),
        "ask_output_tokens_sum": sum(result.usage.output_tokens for result in results),
        "tokens_saved": sum(record.tokens_saved for record in records),
        "ask_seconds_sum": sum(record.duration_s for record in records),
        "daemon_turn_seconds_sum": sum(record.daemon_s for record in records),
        "model_seconds_sum": sum(turn.model_s for r in records for turn in r.all_turns),
    }
    assert {name: numbers[name] for name in sums} == pytest.approx(sums, abs=1e-4)
    assert numbers["ask_seconds_count"] == ASKS


@pytest.mark.requirement("OPS-1b")
async def test_calls_and_searches_of_traces_and_metrics_agree(tmp_path: Path) -> None:
    _, records, numbers = await asked(tmp_path)
    made = [call for record in records for call in record.all_calls]
    for status in ("ok", "error", "refused"):
        told = sum(call.status == status and call.search is None for call in made)
        assert numbers[f'calls_total{{status="{status}"}}'] == told > 0
    assert numbers['searches_total{result="found"}'] == 16
    assert numbers['searches_total{result="missed"}'] == 16
    assert numbers['call_errors_total{family="tool"}'] == 32


async def test_turns_are_traced_with_when_they_began(tmp_path: Path) -> None:
    _, records, _ = await asked(tmp_path)
    begun = [turn.at_s for turn in records[0].turns]
    assert begun == sorted(begun)
    assert 0 < begun[0] < begun[-1] < records[0].duration_s
    [agent] = records[0].agents
    assert begun[1] < agent.turns[0].at_s < begun[2]
