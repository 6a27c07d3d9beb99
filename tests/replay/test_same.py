"""On the configuration that it was recorded with, nothing would differ."""

from pathlib import Path

import pytest

from tests.replay.world import prepared, record, replay_all


@pytest.mark.requirement("OPS-2")
def test_two_hundred_recorded_asks_are_the_same_on_the_same_configuration(tmp_path: Path) -> None:
    trace = record(tmp_path)
    replayed = replay_all(prepared(tmp_path), trace)
    assert len(replayed) >= 200
    assert [each.differences for each in replayed if not each.same] == []
