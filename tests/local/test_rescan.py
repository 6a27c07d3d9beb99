"""Scans after the first one: what is told to be untouched is not looked at, and nothing else is lost."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.config.handlers import HandlersSettings
from session_runtime.local.scan import Scan, scan
from tests.support import ECHO, manifest, write_handler

pytestmark = pytest.mark.requirement("REL-7")

NAMES = ("a", "b", "group.a", "group.b", "other.a")


def rescan(root: Path, before: Scan | None = None, touched: frozenset[str] | None = None) -> Scan:
    return scan(HandlersSettings(paths=(root,)), None, before=before, touched=touched)


def told(found: Scan) -> object:
    return (
        [(tool.spec.name, tool.spec.digest, tool.code) for tool in found.tools],
        found.quarantined,
        found.digest,
    )


def test_what_was_not_touched_is_not_looked_at(tmp_path: Path) -> None:
    a, b = (write_handler(tmp_path, name) for name in ("a", "b"))
    before = rescan(tmp_path)
    for folder in (a, b):
        (folder / "handler.py").write_text("def execute(args, context):\n    return 'new'\n")
    found = rescan(tmp_path, before, frozenset({str(b / "handler.py")}))
    assert found.tools[0] is before.tools[0]
    assert found.tools[1].spec.digest != before.tools[1].spec.digest
    assert told(rescan(tmp_path, found)) == told(rescan(tmp_path))


def test_other_settings_are_a_reason_to_look_at_everything(tmp_path: Path) -> None:
    folder = write_handler(tmp_path, "a")
    write_handler(tmp_path, "b")
    before = rescan(tmp_path)
    (folder / "handler.py").write_text("def execute(args, context):\n    return 'new'\n")
    others = HandlersSettings(paths=(tmp_path,), disabled=("b",))
    [tool] = scan(others, None, before=before, touched=frozenset()).tools
    assert tool.spec.digest != before.tools[0].spec.digest


def test_a_stale_tool_stays_stale_while_others_are_touched(tmp_path: Path) -> None:
    folder = write_handler(tmp_path, "a")
    other = write_handler(tmp_path, "b")
    before = rescan(tmp_path)
    (folder / "config.json").write_text("{")
    broken = rescan(tmp_path, before, frozenset({str(folder / "config.json")}))
    (other / "handler.py").write_text("def execute(args, context):\n    return 'new'\n")
    found = rescan(tmp_path, broken, frozenset({str(other / "handler.py")}))
    assert [(bad.name, bad.stale) for bad in found.quarantined] == [("a", True)]
    assert [tool.spec.name for tool in found.tools] == ["a", "b"]


def test_a_tool_whose_code_is_written_half_way_stays_as_it_was(tmp_path: Path) -> None:
    folder = write_handler(tmp_path, "a")
    before = rescan(tmp_path)
    (folder / "handler.py").write_text("# first half\nimport json\n")
    found = rescan(tmp_path, before, frozenset({str(folder / "handler.py")}))
    assert [tool.code for tool in found.tools] == [tool.code for tool in before.tools]
    [bad] = found.quarantined
    assert (bad.name, bad.stale, bad.reason) == (
        "a",
        True,
        "its code cannot be imported: handler.py has no function execute(args, context)",
    )


@pytest.mark.parametrize("of", [0, 1], ids=["the folder", "the one above"])
def test_a_folder_of_tools_that_was_exchanged_is_looked_at_as_a_whole(
    tmp_path: Path, of: int
) -> None:
    root, new = tmp_path / "here" / "tools", tmp_path / "new" / "tools"
    write_handler(root, "a")
    write_handler(root, "gone")
    for name in ("a", "b"):
        write_handler(new, name)
    (new / "a" / "handler.py").write_text("def execute(args, context):\n    return 'new'\n")
    before = rescan(root)
    old, fresh = ((root, new), (root.parent, new.parent))[of]
    old.rename(tmp_path / "old")
    fresh.rename(old)
    found = rescan(root, before, frozenset({str(old)}))
    assert [tool.spec.name for tool in found.tools] == ["a", "b"]
    assert told(found) == told(rescan(root))


def add(root: Path, name: str, version: int) -> None:
    folder = root.joinpath(*name.split("."))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(manifest(name))
    (folder / "handler.py").write_text(f"{ECHO}# {version}\n")


def remove(root: Path, name: str, version: int) -> None:
    shutil.rmtree(root.joinpath(*name.split(".")), ignore_errors=True)


def spoil(root: Path, name: str, version: int) -> None:
    folder = root.joinpath(*name.split("."))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{" * version)


Edit = tuple[Callable[[Path, str, int], None], str]
EDITS = st.lists(
    st.lists(st.tuples(st.sampled_from([add, remove, spoil]), st.sampled_from(NAMES)), max_size=3),
    max_size=4,
)


@settings(max_examples=40, deadline=None)
@given(rounds=EDITS)
def test_looking_at_what_was_touched_finds_what_looking_at_everything_does(
    rounds: list[list[Edit]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("tools")
    write_handler(root, "always")
    partly = fully = rescan(root)
    for number, edits in enumerate(rounds, 1):
        for edit, name in edits:
            edit(root, name, number)
        touched = frozenset(str(root.joinpath(*name.split("."))) for _, name in edits)
        partly, fully = rescan(root, partly, touched), rescan(root, fully)
        assert told(partly) == told(fully)


@pytest.mark.parametrize("part", ["tool", "group", "file"])
def test_what_lies_behind_a_link_is_looked_at_whatever_was_touched(
    tmp_path: Path, part: str
) -> None:
    root = tmp_path / "tools"
    hidden = write_handler(root / "_hidden", "group.a")
    if part == "tool":
        (root / "a").symlink_to(hidden)
    elif part == "group":
        (root / "group").symlink_to(hidden.parent)
    else:
        (root / "a").mkdir()
        (root / "a" / "config.json").write_text((hidden / "config.json").read_text())
        (root / "a" / "handler.py").symlink_to(hidden / "handler.py")
    if part != "group":
        (hidden / "config.json").write_text(manifest("a"))
        shutil.copy(hidden / "config.json", root / "a" / "config.json") if part == "file" else None
    before = rescan(root)
    (hidden / "handler.py").write_text("def execute(args, context):\n    return 'new'\n")
    found = rescan(root, before, frozenset({str(hidden / "handler.py")}))
    assert [tool.code for tool in found.tools] != [tool.code for tool in before.tools]
    assert told(found) == told(rescan(root))
