"""What is left of attempts when the runtime closes, and what the newest receipts are remembered for."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from session_runtime.config.receipt import Receipt, Receipts
from session_runtime.config.watch import Watcher
from tests.config.living import living, results


class Gate(asyncio.Event):
    """Tells when somebody waits at it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.reached.set()
        return await super().wait()


@pytest.mark.requirement("REL-2")
async def test_an_attempt_under_way_is_given_up_on_closing_and_nothing_comes_into_force(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(3), "utf-8")
    async with living(file) as place:
        tasks = asyncio.all_tasks()
        place.builder.gate = gate = Gate()
        file.write_text(results(4), "utf-8")
        first = asyncio.create_task(place.live.reload("http"))
        await gate.reached.wait()
        second = asyncio.create_task(place.live.reload("signal"))
        await asyncio.sleep(0)
        await place.live.aclose()
        await asyncio.wait([first, second])
        gate.set()
        assert (first.cancelled(), second.cancelled()) == (True, True)
        assert asyncio.all_tasks() == tasks
        assert len(place.builder.committed) == 1
        await place.live.aclose()


async def test_who_is_told_hears_of_every_receipt_good_or_bad(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(3), "utf-8")
    async with living(file) as place:
        heard: list[Receipt] = []
        place.live._tell = heard.append
        file.write_text("[broken", "utf-8")
        receipts = [await place.live.reload("http"), await place.live.reload("http")]
        assert place.live.rejected == receipts[-1]
        file.write_text(results(3), "utf-8")
        receipts.append(await place.live.reload("http"))
        await place.live.validate()
        assert place.live.rejected is None
    assert heard == receipts


@pytest.mark.requirement("REL-5")
async def test_an_edit_that_somebody_else_found_bad_is_tried_again_by_the_watcher(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(3), "utf-8")
    async with living(file) as place:
        place.builder.refuses = "the disk is not mounted"
        assert (await place.live.reload("http")).verdict == "rejected"
        await place.live.next_receipt()
        async with Watcher(place.live, file, "polling", 0.02).running():
            place.builder.refuses = None
            receipt = await place.live.next_receipt()
        assert (receipt.trigger, receipt.verdict) == ("watch", "unchanged")
        assert place.live.rejected_since is None


def test_the_last_change_that_came_into_force_is_remembered_however_many_follow() -> None:
    receipts = Receipts()
    applied = Receipt(1, 5.0, "watch", "applied", "d", 2, 0.0)
    receipts.add(applied)
    for number in range(2, 500):
        receipts.add(Receipt(number, 6.0, "watch", "unchanged", "d", 2, 0.0))
    assert applied not in receipts.newest()
    assert receipts.applied == applied
