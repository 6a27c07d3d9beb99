"""Configurations that came into force, kept off the event loop."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime.app.keep import HistoryKeeper
from session_runtime.app.reader import ConfigReader
from session_runtime.config.history import History
from session_runtime.config.receipt import Receipt

pytestmark = pytest.mark.requirement("REL-6")

RECEIPT = Receipt(1, 1_000.0, "watch", "applied", "digest", 1, 0.0)


def reader(folder: Path) -> ConfigReader:
    return ConfigReader(folder / "config.toml", env={})


async def test_each_is_kept_in_turn_with_the_time_of_its_receipt(tmp_path: Path) -> None:
    history, read = History(tmp_path / "history"), reader(tmp_path)
    keeper = HistoryKeeper(history)
    for number in range(5):
        text = f'[ask]\nmax_steps = {number + 1}\n[models.main]\napi_key = "hidden"\n'
        text += 'base_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'
        keeper.keep(read(text.encode()), replace(RECEIPT, at=1_000.0 + number))
    await keeper.aclose()
    kept = [(entry.number, entry.at.timestamp()) for entry in history.entries()]
    assert kept == [(5, 1_004), (4, 1_003), (3, 1_002), (2, 1_001), (1, 1_000)]
    assert history.read(2)["ask"] == {"max_steps": 2}
    assert "hidden" not in str(history.read(2))


async def test_without_a_file_there_is_nothing_to_keep(tmp_path: Path) -> None:
    history = History(tmp_path / "history")
    keeper = HistoryKeeper(history)
    keeper.keep(replace(reader(tmp_path)(b"# nothing\n"), file=None), RECEIPT)
    await keeper.aclose()
    assert history.entries() == []


async def test_a_history_that_cannot_be_written_is_told_and_in_nobodys_way(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    (tmp_path / "history").write_text("no folder", "utf-8")
    keeper = HistoryKeeper(History(tmp_path / "history"))
    keeper.keep(reader(tmp_path)(b"# nothing\n"), RECEIPT)
    await keeper.aclose()
    (record,) = caplog.records
    assert "could not be kept in the history" in record.getMessage()
