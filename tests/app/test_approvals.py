"""What is known of the tools of servers belongs to the state directory (RTE-4)."""

from pathlib import Path

import pytest

from session_runtime.errors import StartError
from tests.support import opened


@pytest.mark.requirement("RTE-4")
async def test_a_runtime_does_not_start_if_it_cannot_know_what_was_approved(tmp_path: Path) -> None:
    state = tmp_path / ".session-runtime"
    state.mkdir()
    (state / "approvals.json").write_text("{")
    with pytest.raises(StartError, match="it cannot be known which tools of servers were approved"):
        async with opened(tmp_path, ""):
            pass


async def test_without_servers_nothing_waits_and_nothing_is_kept(tmp_path: Path) -> None:
    async with opened(tmp_path, "") as runtime:
        nothing = {"waiting": [], "drifted": 0, "not_kept": 0, "trouble": None}
        assert runtime.status()["approvals"] == nothing
        for name in ("waiting", "drifted_total", "not_kept"):
            assert f"session_runtime_tools_{name} 0\n" in runtime.metrics()
    assert not (tmp_path / ".session-runtime" / "approvals.json").exists()
