"""The configurations that worked: kept in order, without secrets, and whole whatever happens."""

import fcntl
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings

from session_runtime.config import durable
from session_runtime.config.history import Entry, History, Kept
from session_runtime.config.written import Difference, alike, masked
from session_runtime.errors import ConfigError, RequestError
from tests.config.editing import swept
from tests.config.layouts import SETTINGS, tree

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
ADDS = """
from datetime import UTC, datetime
from session_runtime.config.history import History

def prepare(folder):
    for number in (1, 2, 3):
        History(folder, keep=3).add({"ask": {"max_steps": number}}, "d", datetime.now(UTC))

def write(folder, step):
    History(folder, keep=3).add({"ask": {"max_steps": 4}}, "d", datetime.now(UTC), step)

sweep(prepare, write)
"""


def steps(number: int) -> dict[str, Any]:
    return {"ask": {"max_steps": number}}


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history", keep=3)


@pytest.mark.requirement("REL-6")
def test_entries_are_listed_with_the_newest_first(history: History, tmp_path: Path) -> None:
    first, second = AT, AT + timedelta(hours=1)
    assert history.add(steps(1), "d1", first).number == 1
    assert history.add(steps(2), "d2", second).number == 2
    assert history.entries() == [Entry(2, second, "d2"), Entry(1, first, "d1")]
    assert [history.read(number) for number in (1, 2)] == [steps(1), steps(2)]


@pytest.mark.requirement("REL-6")
def test_whoever_adds_is_told_the_oldest_that_is_left(history: History) -> None:
    kept = [history.add(steps(number), "d", AT) for number in (1, 2, 3, 4)]
    assert kept == [Kept(1, 1), Kept(2, 1), Kept(3, 1), Kept(4, 2)]
    assert history.add(steps(4), "d", AT) == Kept(4, 2)


@pytest.mark.requirement("REL-6")
def test_only_the_owner_may_read_what_is_kept(history: History, tmp_path: Path) -> None:
    history.add(steps(1), "d", AT)
    [file] = (tmp_path / "history").iterdir()
    assert file.name == "000001.toml"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]


def test_the_same_again_is_no_new_entry(history: History) -> None:
    for digest, number in (("d", 1), ("d", 1), ("other", 2)):
        assert history.add(steps(1), digest, AT).number == number
    assert history.add(steps(2), "other", AT).number == 3
    assert history.add(steps(1), "d", AT).number == 4


def test_profiles_in_another_order_are_a_new_entry(history: History) -> None:
    profiles = {"a": {"model": "m"}, "b": {"model": "m"}}
    assert history.add({"models": profiles}, "d", AT).number == 1
    assert history.add({"models": dict(reversed(profiles.items()))}, "d", AT).number == 2


@pytest.mark.requirement("REL-6")
def test_the_oldest_go_and_numbers_are_never_given_again(tmp_path: Path) -> None:
    for number in range(1, 8):
        assert History(tmp_path, keep=3).add(steps(number), "d", AT).number == number
    assert [entry.number for entry in History(tmp_path).entries()] == [7, 6, 5]


@pytest.mark.requirement("CFG-4b")
def test_no_secret_is_kept(history: History, tmp_path: Path) -> None:
    secret = "sk-5tr3ng-geheim"
    history.add({"models": {"m": {"api_key": secret, "headers": {"X-A": secret}}}}, "d", AT)
    assert secret not in (tmp_path / "history" / "000001.toml").read_text()
    assert history.read(1) == {"models": {"m": {"api_key": "***", "headers": {"X-A": "***"}}}}


def test_a_number_that_is_not_there_is_answered_with_those_that_are(
    history: History, tmp_path: Path
) -> None:
    with pytest.raises(RequestError) as none:
        history.read(1)
    assert str(none.value).startswith(f"there is no history in {tmp_path / 'history'}: ")
    for number in (1, 2, 3, 4, 5):
        history.add(steps(number), "d", AT)
    (tmp_path / "history" / "000004.toml").unlink()
    with pytest.raises(RequestError) as caught:
        history.read(9)
    assert caught.value.code == "config.unknown_entry"
    assert str(caught.value) == f"there is no entry 9 in {tmp_path / 'history'}; there is 3, 5"


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"[ask", "is damaged: "), (b"\xff", "is damaged: "), (None, "cannot be read: Is a dir")],
)
def test_a_damaged_entry_is_told_and_harms_no_other(
    history: History, tmp_path: Path, content: bytes | None, fault: str
) -> None:
    history.add(steps(1), "d", AT)
    bad = tmp_path / "history" / "000002.toml"
    bad.mkdir() if content is None else bad.write_bytes(content)
    with pytest.raises(ConfigError, match=f"000002.toml {fault}"):
        history.read(2)
    assert history.add(steps(1), "d", AT).number == 3
    assert [entry.number for entry in history.entries() if entry.digest] == [3, 1]


def test_a_folder_that_cannot_be_read_is_told(history: History, tmp_path: Path) -> None:
    (tmp_path / "history").write_text("in its place")
    for look in (history.entries, partial(history.read, 1), partial(history.diff, 1, 2)):
        with pytest.raises(ConfigError) as caught:
            look()
        assert str(caught.value) == f"history: {tmp_path}/history cannot be read: Not a directory"


def test_what_an_operator_put_there_is_no_entry(history: History, tmp_path: Path) -> None:
    history.add(steps(1), "d", AT)
    for name in ("000002.toml~", "copy of 000001.toml", "12.toml", "notes.txt", "000000.toml"):
        (tmp_path / "history" / name).write_text("x")
    assert [entry.number for entry in history.entries()] == [1]


def test_two_entries_are_compared_by_key(history: History) -> None:
    history.add({"ask": {"max_steps": 1}, "http": {"port": 1}}, "d", AT)
    history.add({"ask": {"max_steps": 2}, "http": {"port": 1}}, "d", AT)
    assert history.diff(1, 2) == (Difference("ask.max_steps", 1, 2, "next ask"),)
    assert history.diff(2, 2) == ()


@settings(deadline=None)
@given(SETTINGS)
def test_whatever_a_file_says_is_read_back(settings: Mapping[tuple[str, ...], Any]) -> None:
    data = tree(settings)
    with TemporaryDirectory() as folder:
        history = History(Path(folder))
        number = history.add(data, "d", AT).number
        assert alike(history.read(number), masked(data))
        assert history.add(data, "d", AT).number == number


@pytest.mark.requirement("REL-6")
def test_a_kill_at_any_step_leaves_whole_entries_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    assert swept(tmp_path, ADDS) == len(list(tmp_path.iterdir())) == 7
    seen = set()
    for case in tmp_path.iterdir():
        history = History(case, keep=3)
        numbers = tuple(entry.number for entry in history.entries())
        seen.add(numbers)
        assert [history.read(number) for number in numbers] == [steps(number) for number in numbers]
        assert history.add(steps(5), "d5", AT).number == numbers[0] + 1
        names = sorted(path.name for path in (case).iterdir())
        assert names == [f"{numbers[0] + 1 - back:06}.toml" for back in (2, 1, 0)]
    assert seen == {(3, 2, 1), (4, 3, 2, 1), (4, 3, 2)}


@pytest.mark.requirement("REL-6")
@pytest.mark.parametrize("folders", [False, True])
def test_an_entry_that_may_not_outlive_a_crash_is_told(
    history: History, monkeypatch: pytest.MonkeyPatch, folders: bool
) -> None:
    history.add(steps(1), "d1", AT)
    works = os.fsync

    def broken(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) is folders:
            raise OSError(5, "Input/output error")
        works(descriptor)

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        history.add(steps(2), "d2", AT)
    assert [entry.number for entry in history.entries()] == ([2, 1] if folders else [1])


@dataclass
class LockedFor:
    """A clock that goes on where somebody sleeps; after so many seconds the lock is given back."""

    seconds: float
    handle: int
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= self.seconds:
            fcntl.flock(self.handle, fcntl.LOCK_UN)


@pytest.mark.requirement("REL-6")
def test_a_history_that_somebody_keeps_locked_is_waited_for_as_nobody_waits_for_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        monkeypatch.setattr(durable, "time", LockedFor(30.0, handle))
        assert History(tmp_path).add(steps(1), "d", AT) == Kept(1, 1)
        fcntl.flock(handle, fcntl.LOCK_EX)
        monkeypatch.setattr(durable, "time", LockedFor(3_600.0, handle))
        with pytest.raises(TimeoutError):
            History(tmp_path).add(steps(2), "d", AT)
    finally:
        os.close(handle)
