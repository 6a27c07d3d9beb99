"""A new tool is written whole or not at all, and can be used as it is."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import RequestError
from session_runtime.local.scaffold import write_tool
from tests.support import scan_of, write_handler


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


def refusal(root: Path, name: str) -> str:
    with pytest.raises(RequestError) as caught:
        write_tool(root, name)
    return str(caught.value)


@pytest.mark.parametrize("name", ["echo", "shop.price", "商店.价格", "a-b.c_d", "back\\slash"])
def test_a_new_tool_is_two_files_that_a_scan_takes_without_a_complaint(
    tmp_path: Path, name: str
) -> None:
    root = tmp_path / "not" / "there" / "yet"
    folder = write_tool(root, name)
    found = scan_of(root)
    assert folder == root.joinpath(*name.split("."))
    assert files(folder) == {"config.json", "handler.py"}
    assert [tool.spec.name for tool in found.tools] == [name]
    assert (found.quarantined, found.warnings) == ((), ())


@pytest.mark.parametrize("name", ["my tool", "a.b.c", "a/b", "../up", "/abs", "_x", "agents.a", ""])
def test_a_name_that_no_tool_can_have_writes_nothing(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path / "tools", name).startswith(f"{name!r} cannot be a name: ")
    assert files(tmp_path) == set()


@pytest.mark.requirement("TS-10")
@pytest.mark.parametrize("name", ["tool_search", "Tool_Search"])
def test_the_name_of_the_loader_is_no_name_of_a_tool(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path / "tools", name) == (
        f"{name!r} cannot be a name: tool_search is kept for tool search"
    )
    assert files(tmp_path) == set()


def test_what_exists_is_never_touched(tmp_path: Path) -> None:
    write_handler(tmp_path, "shop.price", code="mine = 1\n")
    before = files(tmp_path)
    taken = tmp_path / "shop"
    assert refusal(tmp_path, "shop.price") == (
        f"{taken / 'price'} exists: choose another name, or remove it"
    )
    assert refusal(tmp_path, "shop") == f"{taken} exists: choose another name, or remove it"
    assert (taken / "price" / "handler.py").read_text() == "mine = 1\n"
    assert files(tmp_path) == before


def test_a_tool_is_no_group_of_others(tmp_path: Path) -> None:
    folder = write_handler(tmp_path, "shop")
    assert refusal(tmp_path, "shop.price") == (
        f"{folder} is a tool and cannot be a group too: choose another group"
    )


def test_a_tool_that_could_not_be_written_whole_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full_disk(path: Path, text: str, encoding: str) -> int:
        if path.name == "config.json":
            raise OSError(28, "No space left on device")
        return write(path, text, encoding)

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_tool(tmp_path, "shop.price")
    assert files(tmp_path) == {"shop"}


def test_a_folder_that_no_system_has_is_refused(tmp_path: Path) -> None:
    assert refusal(Path("a\0b"), "echo") == "'a\\x00b' is no folder: embedded null byte"


@given(st.text("ab._/\\ '界\0-", max_size=8))
def test_any_name_is_refused_or_becomes_exactly_this_tool(name: str) -> None:
    with TemporaryDirectory() as temporary:
        root = Path(temporary) / "tools"
        try:
            folder = write_tool(root, name)
        except RequestError:
            assert not root.exists()
            return
        assert folder.is_relative_to(root)
        assert [tool.spec.name for tool in scan_of(root).tools] == [name]
        assert list(Path(temporary).iterdir()) == [root]


def test_a_link_that_leads_nowhere_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "echo").symlink_to(tmp_path / "gone")
    assert refusal(tmp_path, "echo") == (
        f"{tmp_path / 'echo'} exists: choose another name, or remove it"
    )
    assert files(tmp_path) == {"echo"}


@pytest.mark.parametrize(("root", "name"), [("file", "a"), ("file/in", "a"), ("", "file.a")])
def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path, root: str, name: str) -> None:
    (tmp_path / "file").write_text("mine")
    assert refusal(tmp_path / root, name) == (
        f"{tmp_path / 'file'} is a file, no folder: choose another place"
    )
    assert (tmp_path / "file").read_text() == "mine"
