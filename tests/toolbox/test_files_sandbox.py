"""Nothing that a tool names, and nothing that is swapped while it works, leads out of a root (SEC-1)."""

import os
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.files import FilesSettings
from session_runtime.errors import ToolError
from session_runtime.toolbox.files.access import FileRoots, UserFiles
from session_runtime.toolbox.files.roots import Place, Root
from tests.toolbox.file_trees import ANN, NOBODY, SECRET, everything, make_tree, open_docs

pytestmark = pytest.mark.requirement("SEC-1")

Action = Callable[[UserFiles, str], object]

ACTIONS: dict[str, Action] = {
    "read": lambda files, path: files.read(path),
    "list": lambda files, path: files.list(path),
    "create": lambda files, path: files.write(path, b"mine", replace=False),
    "replace": lambda files, path: files.write(path, b"mine", replace=True),
    "change": lambda files, path: files.change(path, lambda old: old + b"mine"),
}
every_action = pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)


def refused(files: UserFiles, action: Action, path: str) -> str:
    with pytest.raises(ToolError) as caught:
        action(files, path)
    return caught.value.code


@every_action
@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("../outside/a.txt", "docs/link"),
        ("../outside", "docs/link"),
        ("../outside", "docs/link/a.txt"),
        ("../outside", "docs/link/new.txt"),
        ("../nowhere", "docs/link"),
        ("../nowhere", "docs/link/new.txt"),
        ("second", "docs/link"),
        ("a.txt", "docs/link"),
        ("sub", "docs/link/b.txt"),
        ("/proc/self/environ", "docs/link"),
        ("/", "docs/link/etc/passwd"),
    ],
)
def test_links_are_not_followed(tmp_path: Path, action: Action, target: str, path: str) -> None:
    files = make_tree(tmp_path)
    (tmp_path / "docs" / "link").symlink_to(target)
    (tmp_path / "docs" / "second").symlink_to("../outside/a.txt")
    before = everything(tmp_path)
    assert refused(files, action, path) in ("files.forbidden", "files.exists")
    assert everything(tmp_path) == before


@every_action
@pytest.mark.parametrize(
    "path", ["docs/../outside/a.txt", "docs/sub/../../outside/a.txt", "../outside/a.txt", "/etc/passwd"]
)  # fmt: skip
def test_no_path_goes_up(tmp_path: Path, action: Action, path: str) -> None:
    files = make_tree(tmp_path)
    before = everything(tmp_path)
    assert refused(files, action, path) == "files.bad_path"
    assert everything(tmp_path) == before


def make_hard_link(path: Path) -> None:
    path.hardlink_to(path.parents[1] / "outside" / "a.txt")


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 5))  # /dev/zero, which never ends
    except PermissionError:
        pytest.skip("making a device needs a right that this user does not have")


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        try:
            os.chdir(path.parent)  # a socket's path may have 100 characters only
            bound.bind(path.name)
        finally:
            os.chdir(here)


SPECIAL = {
    "hard link": make_hard_link,
    "pipe": os.mkfifo,
    "device": make_device,
    "socket": make_socket,
}


@every_action
@pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL)
def test_hard_links_pipes_devices_and_sockets_are_refused_at_once(
    tmp_path: Path, action: Action, make: Callable[[Path], None]
) -> None:
    files = make_tree(tmp_path)
    make(tmp_path / "docs" / "odd")
    before = everything(tmp_path)
    assert refused(files, action, "docs/odd") in (
        "files.forbidden",
        "files.exists",
        "files.wrong_kind",
    )
    assert everything(tmp_path) == before


def test_what_is_mounted_below_a_root_is_not_entered() -> None:
    top = FileRoots(FilesSettings(), {"top": Root("top", Path("/"), False, False)}, ())
    files = top.of(NOBODY)
    for action in (lambda: files.read("top/proc/self/environ"), lambda: files.list("top/proc")):
        with pytest.raises(ToolError, match="'top/proc' is on another file system than its root"):
            action()
    assert "top/proc" not in [entry.path for entry in files.list("top").entries]


def swap_file_for_link(base: Path) -> None:
    (base / "docs/sub/b.txt").unlink()
    (base / "docs/sub/b.txt").symlink_to("../../outside/b.txt")


def swap_file_for_hard_link(base: Path) -> None:
    (base / "docs/sub/b.txt").unlink()
    (base / "docs/sub/b.txt").hardlink_to(base / "outside" / "b.txt")


def swap_file_for_pipe(base: Path) -> None:
    (base / "docs/sub/b.txt").unlink()
    os.mkfifo(base / "docs/sub/b.txt")


def swap_folder_for_link(base: Path) -> None:
    (base / "docs/sub").rename(base / "docs/moved")
    (base / "docs/sub").symlink_to("../outside")


def swap_folder_for_another(base: Path) -> None:
    (base / "docs/sub").rename(base / "moved-out")
    (base / "docs/sub").mkdir()
    (base / "docs/sub/b.txt").symlink_to("../../outside/b.txt")


def swap_root_for_link(base: Path) -> None:
    (base / "docs").rename(base / "moved-out")
    (base / "docs").symlink_to("outside")


SWAPS = {
    swap.__name__: swap
    for swap in (
        swap_file_for_link,
        swap_file_for_hard_link,
        swap_file_for_pipe,
        swap_folder_for_link,
        swap_folder_for_another,
        swap_root_for_link,
    )
}


class Saboteur:
    """Runs ``swap`` right before the call number ``at`` that enters the file system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, swap: Callable[[], None]) -> None:
        self.calls = 0
        self._at = at
        self._swap = swap
        for name in ("open", "stat", "mkdir", "rename", "scandir"):
            monkeypatch.setattr(os, name, self._before(getattr(os, name)))

    def _before(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                self._swap()
            return real(*args, **options)

        return call


@every_action
@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
def test_a_swap_at_any_moment_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Action, swap: Callable[[Path], None]
) -> None:
    for moment in count(1):
        base = tmp_path / str(moment)
        base.mkdir()
        files = make_tree(base)
        outside = everything(base / "outside")
        path = "docs/sub" if action is ACTIONS["list"] else "docs/sub/b.txt"
        shown: list[object] = []
        with monkeypatch.context() as patch:
            saboteur = Saboteur(patch, moment, lambda base=base: swap(base))
            with suppress(ToolError):
                shown.append(action(files, path))
        assert SECRET not in str(shown)
        assert everything(base / "outside") == outside
        if saboteur.calls < moment:
            return  # there was no such moment: all have been tried


def test_a_root_that_became_a_link_is_out_of_order(tmp_path: Path) -> None:
    files = make_tree(tmp_path)
    swap_root_for_link(tmp_path)
    for name, action in ACTIONS.items():
        path = "docs/sub" if name == "list" else "docs/a.txt"
        assert refused(files, action, path) == "files.root_lost"


@every_action
def test_what_the_runtime_needs_is_refused_even_if_it_is_put_into_a_root_later(
    tmp_path: Path, action: Action
) -> None:
    make_tree(tmp_path)
    state, config = tmp_path / "state", tmp_path / "config.toml"
    protected = (Place("state", state), Place("configuration", config))
    files = open_docs(tmp_path / "docs", protected=protected).of(ANN)
    (tmp_path / "docs/kept").mkdir()
    (tmp_path / "docs/kept/a.txt").write_text(SECRET)
    state.symlink_to("docs/kept")
    config.symlink_to("docs/a.txt")
    before = everything(tmp_path)
    codes = {refused(files, action, path) for path in ("docs/kept/a.txt", "docs/a.txt")}
    assert codes <= {"files.forbidden", "files.exists", "files.wrong_kind"}
    assert everything(tmp_path) == before
    assert [entry.path for entry in files.list("docs").entries] == ["docs/sub"]


@every_action
@pytest.mark.parametrize("now", ["docs", "."])
def test_a_root_that_came_to_belong_to_the_runtime_is_refused_as_a_whole(
    tmp_path: Path, action: Action, now: str
) -> None:
    make_tree(tmp_path)
    files = open_docs(tmp_path / "docs", protected=(Place("state", tmp_path / "state"),)).of(ANN)
    (tmp_path / "state").symlink_to(now)
    before = everything(tmp_path)
    assert refused(files, action, "docs/sub") == "files.forbidden"
    assert everything(tmp_path) == before


def told(files: UserFiles, action: Action, path: str) -> str:
    try:
        action(files, path)
    except ToolError as error:
        return str(error)
    return ""


def test_errors_show_nothing_from_outside_of_the_root(tmp_path: Path) -> None:
    files = make_tree(tmp_path)
    (tmp_path / "docs/link").symlink_to("../outside")
    (tmp_path / "docs/a.txt/").chmod(0o444)
    paths = ("docs/link", "docs/none", "docs/none/x", "docs/../x", "docs/sub", "none", "docs/a.txt")
    said = [told(files, action, path) for action in ACTIONS.values() for path in paths]
    swap_root_for_link(tmp_path)
    said += [told(files, action, "docs/a.txt") for action in ACTIONS.values()]
    assert len(set(said)) > 10
    assert [text for text in said if str(tmp_path) in text or "outside" in text] == []


NAMES = "docs sub a.txt b.txt out file twice pipe outside proc self new ~ .. . \\.. %2e%2e ․․ ．．"
PARTS = st.sampled_from([*NAMES.split(" "), "", "..\0", "sub\n"])
PATHS = st.lists(PARTS | st.text(max_size=3), max_size=5).map("/".join)


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(ACTIONS)), PATHS | PATHS.map("docs/".__add__)), max_size=8
    )
)
def test_whatever_tools_ask_for_nothing_outside_is_touched_or_seen(
    asked: list[tuple[str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        files = make_tree(base)
        (base / "docs/out").symlink_to("../outside")
        (base / "docs/file").symlink_to(base / "outside" / "a.txt")
        (base / "docs/sub/twice").hardlink_to(base / "outside" / "a.txt")
        os.mkfifo(base / "docs/pipe")
        outside = everything(base / "outside")
        shown: list[object] = []
        for name, path in asked:
            with suppress(ToolError):
                shown.append(ACTIONS[name](files, path))
        assert SECRET not in str(shown)
        assert everything(base / "outside") == outside
        assert {path.name for path in base.iterdir()} == {"docs", "outside"}
