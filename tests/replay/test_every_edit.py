"""Under each edit of all that decides: its own trace is the same there, and what is told of it is real."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.replay.all_edits import FEW, MANY
from tests.replay.test_edits import SECOND_HAND, decided
from tests.replay.world import CONFIG, prepared, record, replay_all

EDITS = [
    *(pytest.param(text, id=name) for name, text in FEW.items()),
    *(pytest.param(text, id=name, marks=pytest.mark.soak) for name, text in MANY.items()),
]
Recorded = Callable[[str], Path]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The trace of all asks under a configuration, made once."""
    traces: dict[str, Path] = {}

    def give(text: str) -> Path:
        if text not in traces:
            traces[text] = record(tmp_path_factory.mktemp("recorded"), 1, text)
        return traces[text]

    return give


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize("text", EDITS)
def test_a_trace_is_the_same_on_the_configuration_that_it_was_recorded_with(
    text: str, recorded: Recorded
) -> None:
    trace = recorded(text)
    replayed = replay_all(prepared(trace.parent, text), trace)
    assert [each.differences for each in replayed if not each.same] == []


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize("text", EDITS)
def test_what_is_told_of_an_edit_is_what_differs_when_asked_again(
    text: str, recorded: Recorded
) -> None:
    before, after = (recorded(each).read_text().splitlines() for each in (CONFIG, text))
    replayed = replay_all(prepared(recorded(text).parent, text), recorded(CONFIG))
    known = [at for at, each in enumerate(replayed) if SECOND_HAND not in each.unknown]
    told = [at for at in known if not replayed[at].same]
    assert told == [at for at in known if decided(before[at]) != decided(after[at])]
