"""Where a model would be asked with something else, a replay says that what it does is not known."""

from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime.replay import Replayed, replay
from session_runtime.trace.reading import Traces
from session_runtime.trace.record import AskRecord
from tests.replay.all_edits import ASK, MAIN, adds
from tests.replay.world import CONFIG, prepared, record

PROMPT = "what the model does with another system prompt"
MODEL = "what the model of profile main does, which is another one or is asked in another way"
CLERK = "what sub-agent clerk does with another prompt"

pytestmark = pytest.mark.requirement("OPS-2")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded"), rounds=1)


def answered(trace: Path) -> list[AskRecord]:
    """All asks that a model was asked in."""
    return [each.record for each in Traces(trace).oldest_first() if each.record.turns]


def told(trace: Path, text: str, asks: list[AskRecord]) -> list[Replayed]:
    generation = prepared(trace.parent, text)
    return [replay(generation, each) for each in asks]


@pytest.mark.parametrize(
    ("edit", "unknown"),
    [
        (adds(ASK, 'system_prompt = "be brief"'), PROMPT),
        (adds(ASK, 'prompt_file = "prompt.txt"'), PROMPT),
        (adds(MAIN, "temperature = 1.5"), MODEL),
        (adds(MAIN, "max_output_tokens = 3"), MODEL),
        (adds(MAIN, "recover_text_calls = false"), MODEL),
        (CONFIG.replace('script = "script.json"', 'script = "shaky.json"', 1), MODEL),
    ],
)
def test_another_prompt_or_model_is_told_as_unknown(trace: Path, edit: str, unknown: str) -> None:
    (trace.parent / "prompt.txt").write_text("be brief", "utf-8")
    asks = answered(trace)
    before, after = told(trace, CONFIG, asks), told(trace, edit, asks)
    by_main = [any(turn.model == "main" for turn in each.all_turns) for each in asks]
    concerned = [unknown == PROMPT or each for each in by_main]
    assert [unknown in each.unknown for each in after] == concerned
    assert not any(unknown in each.unknown for each in before)


def test_another_prompt_of_a_sub_agent_is_told_of_the_asks_that_called_it(trace: Path) -> None:
    [prompt] = trace.parent.rglob("prompt.md")
    good = prompt.read_text("utf-8")
    prompt.write_text("You are a clerk: merry.", "utf-8")
    asks = answered(trace)
    try:
        after = told(trace, CONFIG, asks)
    finally:
        prompt.write_text(good, "utf-8")
    assert [CLERK in each.unknown for each in after] == [bool(each.agents) for each in asks]


def test_how_long_a_model_is_waited_for_makes_nothing_unknown(trace: Path) -> None:
    edit, asks = adds(MAIN, "timeout_s = 7.0", "stream = false"), answered(trace)
    assert told(trace, edit, asks) == told(trace, CONFIG, asks)


def test_traces_of_earlier_versions_tell_nothing_of_it(trace: Path) -> None:
    asks = [replace(each, instructions=()) for each in answered(trace)]
    after = told(trace, adds(ASK, 'system_prompt = "be brief"'), asks)
    assert not any(PROMPT in each.unknown for each in after)
