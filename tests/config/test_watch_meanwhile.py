"""Edits are noticed while an earlier one is still being prepared, as a server that it names hangs."""

import asyncio
from pathlib import Path

import pytest

from session_runtime.config.watch import Mode
from tests.config.living import living, results, watching
from tests.config.test_watch import by_rename

pytestmark = pytest.mark.requirement("REL-5")


@pytest.mark.parametrize("mode", ["events", "polling"])
async def test_an_edit_during_a_long_reload_hurries_it_and_is_in_force_next(
    mode: Mode, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    recheck_s = 60.0 if mode == "events" else 0.02
    async with living(file, mode=mode, recheck_s=recheck_s) as place:
        await watching(place, mode)
        place.builder.patient = True
        file.write_text(results(2))
        await place.builder.begun.wait()
        place.builder.patient = False
        file.write_text(results(3))
        await place.live.in_force(3)
        kept = [each.settings.skills.tool_search_max_results for each in place.builder.committed]
    assert kept == [1, 2, 3]


async def test_an_edit_that_cannot_be_used_leaves_its_receipt_during_a_long_reload(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        place.builder.patient = True
        file.write_text(results(2))
        await place.builder.begun.wait()
        file.write_text(results(0))
        await place.live.until("rejected")
        assert [each.verdict for each in place.live.receipts.newest(2)] == ["rejected", "applied"]


async def test_the_watching_lives_on_during_a_long_reload_and_does_not_hurry_it(
    tmp_path: Path,
) -> None:
    """A rejected edit is tried again at each look, but not while another one is being prepared."""
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        by_rename(file, results(0))
        await place.live.until("rejected")
        place.builder.patient = True
        by_rename(file, results(2))
        await place.builder.begun.wait()
        before = place.watcher.looks
        async with asyncio.timeout(20):
            while place.watcher.looks < before + 2:
                file.chmod(0o600)  # tells of an event, and changes nothing
                await asyncio.sleep(0.001)
        assert place.watcher.alive
        assert len(place.builder.committed) == 1
        place.builder.patient = False
        by_rename(file, results(3))
        await place.live.in_force(3)


async def test_a_reload_that_fails_inside_the_runtime_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events", recheck_s=0.05) as place:
        await watching(place)
        works = place.live.reload

        async def broken(*_: object) -> None:
            monkeypatch.setattr(place.live, "reload", works)
            raise RuntimeError("a fault of ours")

        monkeypatch.setattr(place.live, "reload", broken)
        file.write_text(results(2))
        await place.live.in_force(2)
        assert place.watcher.status()["restarts"] == 1
    assert "a fault of ours" in caplog.text
