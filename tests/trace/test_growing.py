"""A trace that is followed loses no line to a rotation and shows none twice, whenever that comes."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from session_runtime.trace.lines import Growing

Act = Callable[[], None]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    path.write_text("")
    return path


@pytest.fixture
def before_opening(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Act], None]:
    """Let something happen just before a file of this name is opened next."""
    waiting: dict[str, list[Act]] = {}
    really = os.open

    def opening(path: str | Path, *arguments: int) -> int:
        for act in waiting.pop(Path(path).name, []):
            act()
        return really(path, *arguments)

    monkeypatch.setattr(os, "open", opening)
    return lambda name, act: waiting.setdefault(name, []).append(act)


def rotate(path: Path, *new: str) -> None:
    """Move every file on by one, and begin the current one anew."""
    for number in range(9, 0, -1):
        if (old := path.with_name(f"{path.name}.{number}")).exists():
            old.rename(path.with_name(f"{path.name}.{number + 1}"))
    path.rename(path.with_name(f"{path.name}.1"))
    path.write_text("".join(f"{line}\n" for line in new))


def texts(growing: Growing) -> Iterator[str]:
    return ((line.text or b"").decode() for line in growing.lines())


def test_a_line_that_is_written_just_before_a_rotation_is_shown(
    trace: Path, before_opening: Callable[[str, Act], None]
) -> None:
    growing = Growing(trace)

    def written_and_rotated() -> None:
        with trace.open("a") as file:
            file.write("late\n")
        rotate(trace, "new")

    before_opening("t", written_and_rotated)
    assert [*texts(growing), *texts(growing)] == ["late", "new"]
    growing.close()


def test_a_rotation_while_the_files_are_looked_for_shows_nothing_twice(
    trace: Path, before_opening: Callable[[str, Act], None]
) -> None:
    growing = Growing(trace)
    rotate(trace, "one")
    before_opening("t.1", lambda: rotate(trace, "two"))
    assert [*texts(growing), *texts(growing)] == ["one", "two"]
    growing.close()
