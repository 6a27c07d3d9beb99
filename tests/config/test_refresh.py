"""Building anew from what is in force, for what changes by itself: no file is read (RTE-4)."""

import asyncio
from pathlib import Path

import pytest

from session_runtime.config.live import News
from tests.config.living import Note, Place, living, results

pytestmark = pytest.mark.requirement("RTE-4")


def something_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every generation differ from the one before, as if a server listed another tool."""
    told = News("d", tools={"added": ("a.x",)})
    monkeypatch.setattr(Note, "news", property(lambda _: told))


async def refresh(place: Place) -> str:
    return (await place.live.refresh("servers")).verdict


async def test_a_refresh_reads_nothing_and_does_not_use_up_what_was_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(3))
    async with living(file) as place:
        something_new(monkeypatch)
        before = place.live.snapshot
        file.write_text("[broken")
        receipt = await place.live.refresh("servers")
        assert place.live.snapshot is before
        assert (receipt.trigger, receipt.verdict, receipt.generation) == ("servers", "applied", 2)
        assert (receipt.tools, receipt.changes) == ({"added": ("a.x",)}, ())
        assert (await place.live.reload("watch")).verdict == "rejected"
        await place.live.refresh("servers")
        file.write_text(results(4))
        await place.live.reload("watch", frozenset({"tools/a"}))
    assert place.builder.purposes == ["reload", "refresh", "refresh", "reload"]
    assert place.builder.touched[-1] is None


async def test_a_refresh_tells_nothing_about_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(3))
    async with living(file) as place:
        file.write_text("[broken")
        rejected = await place.live.reload("watch")
        assert await refresh(place) == "unchanged"
        assert place.live.rejected == rejected
        assert place.live.rejected_since == rejected.at
        file.write_text(results(3))
        await place.live.reload("watch")
        place.builder.refuses = "the library is gone"
        assert await refresh(place) == "rejected"
        assert (place.live.rejected, place.live.rejected_since) == (None, None)


async def test_all_who_ask_while_an_attempt_runs_share_the_refresh_that_follows_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(3))
    async with living(file) as place:
        place.builder.gate.clear()
        file.write_text(results(4))
        first = asyncio.create_task(place.live.reload("watch"))
        more = [asyncio.create_task(place.live.refresh("servers")) for _ in range(20)]
        await asyncio.sleep(0)
        place.builder.gate.set()
        receipt, *others = await asyncio.gather(first, *more)
    assert receipt.verdict == "applied"
    assert len({other.id for other in others}) == 1
    assert place.builder.purposes == ["reload", "reload", "refresh"]


async def test_to_validate_is_a_trial(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(3))
    async with living(file) as place:
        await place.live.validate()
    assert place.builder.purposes == ["reload", "trial"]
