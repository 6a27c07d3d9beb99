"""Files in an open folder are read, written whole or not at all, changed one at a time, and listed."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from session_runtime.errors import ToolError
from session_runtime.services import FileEntry, Listing
from session_runtime.toolbox.files.access import UserFiles
from session_runtime.toolbox.owner import Owner
from tests.shape.tree import PACKAGE, ROOT
from tests.toolbox.file_trees import ANN, NOBODY, leftovers, make_tree, open_docs


@pytest.fixture
def docs(tmp_path: Path) -> UserFiles:
    return make_tree(tmp_path)


def fault(action: Callable[[], object]) -> tuple[str, str]:
    """The code and the text of the error that ``action`` ends in."""
    with pytest.raises(ToolError) as caught:
        action()
    return caught.value.code, str(caught.value)


def test_a_file_is_read_as_it_is(docs: UserFiles, tmp_path: Path) -> None:
    (tmp_path / "docs" / "raw").write_bytes(b"\xff\0\r\n")
    assert (docs.read("docs/sub/b.txt"), docs.read("docs/raw")) == (b"beta\n", b"\xff\0\r\n")


def test_a_new_file_gets_the_folders_that_it_needs(docs: UserFiles, tmp_path: Path) -> None:
    docs.write("docs/new/deep/报告.txt", b"x", replace=False)
    assert (tmp_path / "docs/new/deep/报告.txt").read_bytes() == b"x"
    assert leftovers(tmp_path) == []


def test_what_exists_is_replaced_only_if_that_is_asked_for(docs: UserFiles, tmp_path: Path) -> None:
    assert fault(lambda: docs.write("docs/a.txt", b"x", replace=False)) == (
        "files.exists",
        "'docs/a.txt' exists already, and replacing it was not asked for.",
    )
    docs.write("docs/a.txt", b"new", replace=True)
    assert docs.read("docs/a.txt") == b"new"
    assert leftovers(tmp_path) == []


def test_a_replaced_file_keeps_its_rights(docs: UserFiles, tmp_path: Path) -> None:
    path = tmp_path / "docs" / "a.txt"
    path.chmod(0o640)
    docs.write("docs/a.txt", b"new", replace=True)
    docs.change("docs/a.txt", lambda content: content + b"er")
    assert (path.stat().st_mode & 0o7777, path.read_bytes()) == (0o640, b"newer")


def test_a_write_protected_file_is_not_replaced(docs: UserFiles, tmp_path: Path) -> None:
    (tmp_path / "docs" / "a.txt").chmod(0o444)
    assert fault(lambda: docs.write("docs/a.txt", b"x", replace=True)) == (
        "files.read_only",
        "'docs/a.txt' is write-protected.",
    )
    assert docs.read("docs/a.txt") == b"alpha\n"


def test_in_a_root_that_is_not_writable_nothing_is_changed(tmp_path: Path) -> None:
    make_tree(tmp_path)
    docs = open_docs(tmp_path / "docs", writable=False).of(ANN)
    told = ("files.read_only", "Files in docs can be read, not changed.")
    assert fault(lambda: docs.write("docs/new.txt", b"x", replace=False)) == told
    assert fault(lambda: docs.change("docs/a.txt", lambda _: b"x")) == told
    assert docs.read("docs/a.txt") == b"alpha\n"


def test_sizes_are_bounded_both_ways(tmp_path: Path) -> None:
    make_tree(tmp_path)
    docs = open_docs(tmp_path / "docs", max_read_bytes=5, max_write_bytes=6).of(ANN)
    assert docs.read("docs/sub/b.txt") == b"beta\n"
    assert fault(lambda: docs.read("docs/a.txt")) == (
        "files.too_large",
        "'docs/a.txt' has 6 bytes; files of up to 5 bytes are read.",
    )
    assert fault(lambda: docs.write("docs/new.txt", b"1234567", replace=False)) == (
        "files.too_large",
        "'docs/new.txt' would have 7 bytes; files of up to 6 bytes are written.",
    )
    assert fault(lambda: docs.change("docs/sub/b.txt", lambda old: old * 2))[0] == "files.too_large"
    assert docs.read("docs/sub/b.txt") == b"beta\n"
    assert not (tmp_path / "docs" / "new.txt").exists()


@pytest.mark.parametrize(
    ("path", "code", "text"),
    [
        ("docs/none.txt", "files.not_found", "There is no file 'docs/none.txt'."),
        ("docs/none/a.txt", "files.not_found", "There is no folder 'docs/none'."),
        ("docs/a.txt/b", "files.wrong_kind", "'docs/a.txt' is a file, not a folder."),
        ("docs/sub", "files.wrong_kind", "'docs/sub' is a folder, not a file."),
        ("docs", "files.bad_path", "'docs' is no path of a file: write root/name."),
        ("", "files.bad_path", "'' is no path of a file: write root/name."),
        (
            "other/a.txt",
            "files.not_found",
            "There is no root 'other'. Paths begin with the name of a root: docs.",
        ),
    ],
)
def test_errors_say_what_is_wrong_with_a_path(
    docs: UserFiles, path: str, code: str, text: str
) -> None:
    assert fault(lambda: docs.read(path)) == (code, text)


def test_nothing_is_changed_when_the_edit_fails(docs: UserFiles, tmp_path: Path) -> None:
    def refuse(content: bytes) -> bytes:
        raise ToolError("no match", code="files.no_match")

    assert fault(lambda: docs.change("docs/a.txt", refuse)) == ("files.no_match", "no match")
    assert docs.read("docs/a.txt") == b"alpha\n"
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("content", [b"theirs", b"alpha\n and more", b"", b"alphA\n"])
def test_a_change_by_somebody_else_meanwhile_is_kept(
    docs: UserFiles, tmp_path: Path, content: bytes
) -> None:
    def edit(old: bytes) -> bytes:
        (tmp_path / "docs" / "a.txt").write_bytes(content)
        return old + b"mine"

    code, text = fault(lambda: docs.change("docs/a.txt", edit))
    assert (code, "Read it again." in text) == ("files.changed", True)
    assert docs.read("docs/a.txt") == content
    assert leftovers(tmp_path) == []


def test_changes_of_one_file_wait_for_each_other(tmp_path: Path) -> None:
    make_tree(tmp_path)
    opened = open_docs(tmp_path / "docs")
    started, go_on = threading.Event(), threading.Event()

    def slowly(old: bytes) -> bytes:
        started.set()
        go_on.wait(10)
        return old + b"one\n"

    def quickly(old: bytes) -> bytes:
        return old + b"two\n"

    first = threading.Thread(target=lambda: opened.of(ANN).change("docs/a.txt", slowly))
    second = threading.Thread(
        target=lambda: opened.of(Owner("local", "bob")).change("docs/a.txt", quickly)
    )
    first.start()
    assert started.wait(10)
    second.start()
    go_on.set()
    first.join(10)
    second.join(10)
    assert opened.of(NOBODY).read("docs/a.txt") == b"alpha\none\ntwo\n"


@pytest.mark.parametrize("call", ["fsync", "rename"])
@pytest.mark.parametrize(
    "action",
    [
        lambda docs: docs.write("docs/new.txt", b"x" * 100, replace=False),
        lambda docs: docs.write("docs/a.txt", b"x" * 100, replace=True),
        lambda docs: docs.change("docs/a.txt", lambda old: old * 2),
    ],
    ids=["create", "replace", "change"],
)
def test_a_write_that_fails_leaves_everything_as_it_was(
    docs: UserFiles,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    action: Callable[[UserFiles], None],
) -> None:
    def disk_is_full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/outside/path")

    monkeypatch.setattr(os, call, disk_is_full)
    code, text = fault(lambda: action(docs))
    assert code == "files.io_error"
    assert text.endswith("cannot be used: No space left on device.")
    assert sorted(path.name for path in (tmp_path / "docs").iterdir()) == ["a.txt", "sub"]
    assert docs.read("docs/a.txt") == b"alpha\n"


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.toolbox.file_trees import ANN, open_docs

os.rename = lambda *args, **options: os.kill(os.getpid(), signal.SIGKILL)
open_docs(Path(sys.argv[1])).of(ANN).change("docs/a.txt", lambda old: old * 2)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_content(
    docs: UserFiles, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "docs")]
    paths = os.pathsep.join([str(PACKAGE.parent), str(ROOT)])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert docs.read("docs/a.txt") == b"alpha\n"
    assert len(leftovers(tmp_path)) == 1
    assert [entry.path for entry in docs.list("docs").entries] == ["docs/a.txt", "docs/sub"]


def test_the_empty_path_lists_the_roots_and_a_folder_what_it_holds(
    docs: UserFiles, tmp_path: Path
) -> None:
    for path in (tmp_path / "docs" / "a.txt", tmp_path / "docs" / "sub"):
        os.utime(path, (0, 1_700_000_000))
    assert docs.list("") == Listing((FileEntry("docs", "folder", 0, None, True),))
    assert docs.list("docs") == Listing(
        (
            FileEntry("docs/a.txt", "file", 6, 1_700_000_000.0, True),
            FileEntry("docs/sub", "folder", 0, 1_700_000_000.0, True),
        )
    )
    assert [entry.path for entry in docs.list("docs/sub").entries] == ["docs/sub/b.txt"]


def test_a_long_list_is_cut_and_says_so(tmp_path: Path) -> None:
    make_tree(tmp_path)
    docs = open_docs(tmp_path / "docs", max_entries=1).of(ANN)
    listing = docs.list("docs")
    assert (len(listing.entries), listing.truncated) == (1, True)
    assert docs.list("docs/sub").truncated is False


def test_what_cannot_be_opened_is_counted_and_half_written_files_are_not(
    docs: UserFiles, tmp_path: Path
) -> None:
    folder = tmp_path / "docs" / "sub"
    (folder / "link").symlink_to("b.txt")
    (folder / "twice").hardlink_to(tmp_path / "docs" / "a.txt")
    os.mkfifo(folder / "pipe")
    (folder / "line\nbreak").touch()
    (folder / "cafe\u0301").touch()
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).touch()
    (folder / ".session-runtime-0123").touch()
    listing = docs.list("docs/sub")
    assert ([entry.path for entry in listing.entries], listing.others) == (["docs/sub/b.txt"], 6)


def test_each_user_has_an_own_folder_below_a_root_per_user(tmp_path: Path) -> None:
    opened = open_docs(tmp_path, per_user=True)
    ann, bob = opened.of(ANN), opened.of(Owner("local", "../ann"))
    assert ann.list("docs") == Listing(())
    ann.write("docs/a.txt", b"of ann", replace=False)
    bob.write("docs/a.txt", b"of bob", replace=False)
    assert (ann.read("docs/a.txt"), bob.read("docs/a.txt")) == (b"of ann", b"of bob")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["%2e%2e%2fann", "ann"]
    assert fault(lambda: bob.read("docs/ann/a.txt"))[0] == "files.not_found"


@pytest.mark.requirement("NET-2b")
def test_users_of_two_principals_share_no_folder_whatever_they_are_called(tmp_path: Path) -> None:
    opened = open_docs(tmp_path, per_user=True)
    owners = [
        Owner(principal, user)
        for principal in ("local", "bot", "@bot", "%bot")
        for user in ("ann", "bot", "@bot", "")
    ]
    for owner in owners:
        opened.of(owner).write("docs/a.txt", repr(owner).encode(), replace=False)
    for owner in owners:
        assert opened.of(owner).read("docs/a.txt") == repr(owner).encode()
        assert [entry.path for entry in opened.of(owner).list("docs").entries] == ["docs/a.txt"]
    assert (tmp_path / "@bot" / "ann" / "a.txt").exists()


def test_who_states_no_user_is_refused_where_users_are_kept_apart(tmp_path: Path) -> None:
    nobody = open_docs(tmp_path, per_user=True).of(NOBODY)
    told = (
        "files.no_user",
        "In docs each user has an own folder, and this request states no user.",
    )
    for action in (
        lambda: nobody.list("docs"),
        lambda: nobody.read("docs/a.txt"),
        lambda: nobody.write("docs/a.txt", b"x", replace=False),
    ):
        assert fault(action) == told
    assert nobody.list("") == Listing(())
    assert list(tmp_path.iterdir()) == []
