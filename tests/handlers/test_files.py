"""``files.*`` as a model calls them, on a root that may be written to."""

import json
import tracemalloc
from pathlib import Path

import pytest

from session_runtime.handler import HandlerContext
from session_runtime.local.scan import Scan
from session_runtime.services import Services
from tests.toolbox.file_trees import ANN, make_tree, open_docs


@pytest.fixture
def context(tmp_path: Path) -> HandlerContext:
    """A context with the root ``docs``: ``a.txt`` and ``sub/b.txt``."""
    return HandlerContext(services=Services(files=make_tree(tmp_path)))


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """The folder behind the root."""
    return tmp_path / "docs"


async def test_a_file_is_written_listed_found_read_and_edited(
    run, context: HandlerContext, docs: Path
) -> None:
    text = "one\ntwo 二\nthree\n"
    written = await run("files.write", context, path="docs/new/c.md", content=text)
    assert json.loads(written.content) == {"written": "docs/new/c.md", "bytes": 18}
    found = await run("files.search", context, text="TWO 二", path="docs")
    assert json.loads(found.content) == {
        "matches": [{"path": "docs/new/c.md", "line": 2, "text": "two 二"}],
        "files": 3,
        "truncated": False,
    }
    read = await run("files.read", context, path="docs/new/c.md", line=2, lines=1)
    assert read.content == "docs/new/c.md, lines 2 to 2 of 3. Go on with line 3.\ntwo 二\n"
    edited = await run("files.edit", context, path="docs/new/c.md", old="two 二\n", new="2\n")
    assert edited.content == (
        "--- docs/new/c.md\n+++ docs/new/c.md\n@@ -1,3 +1,3 @@\n one\n-two 二\n+2\n three"
    )
    assert (docs / "new" / "c.md").read_bytes() == b"one\n2\nthree\n"


async def test_a_list_shows_roots_then_levels_of_folders(run, context: HandlerContext) -> None:
    roots = json.loads((await run("files.list", context)).content)
    assert roots == {
        "entries": [{"path": "docs", "kind": "folder", "writable": True}],
        "truncated": False,
    }
    both = json.loads((await run("files.list", context, path="docs", depth=2)).content)
    assert [(entry["path"], entry.get("bytes")) for entry in both["entries"]] == [
        ("docs/a.txt", 6),
        ("docs/sub", None),
        ("docs/sub/b.txt", 5),
    ]


async def test_a_list_and_a_search_say_what_they_left_out(
    run, context: HandlerContext, docs: Path
) -> None:
    for number in range(201):
        (docs / f"f{number:03}").write_text("needle\n")
    (docs / "link").symlink_to("a.txt")
    (docs / "picture").write_bytes(b"needle \xff\xfe")
    (docs / "program").write_bytes(b"needle \0")
    listed = json.loads((await run("files.list", context, path="docs")).content)
    assert (len(listed["entries"]), listed["truncated"], listed["unusable"]) == (200, True, 1)
    found = json.loads((await run("files.search", context, text="needle", limit=2)).content)
    assert [match["path"] for match in found["matches"]] == ["docs/f000", "docs/f001"]
    assert found["truncated"]
    alone = json.loads((await run("files.search", context, text="needle", name="p*")).content)
    assert alone == {"matches": [], "files": 2, "truncated": False, "skipped": 3}


async def test_a_search_in_one_file_and_with_capitals_that_matter(
    run, context: HandlerContext
) -> None:
    found = await run("files.search", context, text="beta", path="docs/sub/b.txt")
    assert json.loads(found.content)["matches"] == [
        {"path": "docs/sub/b.txt", "line": 1, "text": "beta"}
    ]
    missed = await run("files.search", context, text="Beta", ignore_case=False)
    assert json.loads(missed.content)["matches"] == []


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny", b"x\r\ny\r\nc\r\n"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\n", "a", "x\ny", b"x\ny\r\nb\n"),
        (b"no end", "end", "END", b"no END"),
        (b"\xef\xbb\xbfa", "a", "b", b"\xef\xbb\xbfb"),
        (b"a\nb\n", "b\n", "", b"a\n"),
    ],
    ids=["crlf", "crlf in the new text", "mixed", "no final newline", "byte order mark", "removed"],
)
async def test_an_edit_leaves_everything_else_as_it_was(
    run,
    context: HandlerContext,
    docs: Path,
    before: bytes,
    old: str,
    new: str,
    after: bytes,
) -> None:
    (docs / "a.txt").write_bytes(before)
    result = await run("files.edit", context, path="docs/a.txt", old=old, new=new)
    assert result.status == "ok"
    assert (docs / "a.txt").read_bytes() == after


async def test_an_edit_needs_a_passage_that_is_there_once(
    run, context: HandlerContext, docs: Path
) -> None:
    (docs / "a.txt").write_text("x = 1\ny = 1\nz = 1\n")
    arguments = {"path": "docs/a.txt", "old": "= 1", "new": "= 2"}
    many = await run("files.edit", context, **arguments)
    assert (many.error_code, "3 times, beginning in lines 1, 2, 3." in many.content) == (
        "files.not_unique",
        True,
    )
    none = await run("files.edit", context, **arguments | {"old": "= 3"})
    same = await run("files.edit", context, **arguments | {"old": "y = 1", "new": "y = 1"})
    assert (none.error_code, same.error_code) == ("files.no_match", "files.no_change")
    assert (docs / "a.txt").read_text() == "x = 1\ny = 1\nz = 1\n"
    every = await run("files.edit", context, **arguments, replace_all=True)
    assert every.content.count("\n+") == 4
    assert (docs / "a.txt").read_text() == "x = 2\ny = 2\nz = 2\n"


async def test_the_diff_of_a_long_file_counts_from_its_beginning(
    run, context: HandlerContext, docs: Path
) -> None:
    (docs / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 20_001)))
    result = await run("files.edit", context, path="docs/a.txt", old="line 15000\n", new="new\n")
    assert result.content.splitlines()[2:] == [
        "@@ -14997,7 +14997,7 @@",
        " line 14997",
        " line 14998",
        " line 14999",
        "-line 15000",
        "+new",
        " line 15001",
        " line 15002",
        " line 15003",
    ]
    every = await run(
        "files.edit", context, path="docs/a.txt", old="line", new="row", replace_all=True
    )
    assert every.content == "docs/a.txt was changed from line 1 on: 20000 lines became 20000."


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("files.read", {"path": "docs/none.txt"}, "files.not_found"),
        ("files.read", {"path": "docs/../outside/a.txt"}, "files.bad_path"),
        ("files.read", {"path": "docs/a.txt", "line": 2}, "files.out_of_range"),
        ("files.read", {"path": "docs/sub"}, "files.wrong_kind"),
        ("files.read", {"path": "docs/raw"}, "files.not_text"),
        ("files.read", {"path": "docs/wide"}, "files.not_text"),
        ("files.edit", {"path": "docs/wide", "old": "a", "new": "b"}, "files.not_text"),
        ("files.edit", {"path": "docs/raw", "old": "a", "new": "b"}, "files.not_text"),
        ("files.edit", {"path": "docs/a.txt", "old": "", "new": "b"}, "tool.invalid_arguments"),
        ("files.write", {"path": "docs/a.txt", "content": "x"}, "files.exists"),
        ("files.write", {"path": "/etc/passwd", "content": "x"}, "files.bad_path"),
        ("files.list", {"path": "etc"}, "files.not_found"),
        ("files.list", {"depth": 6}, "tool.invalid_arguments"),
        ("files.search", {"text": "a\nb"}, "tool.invalid_arguments"),
        ("files.search", {"text": "a", "path": "docs/none"}, "files.not_found"),
    ],
)
async def test_what_cannot_be_done_is_told_with_a_code_and_changes_nothing(
    run,
    context: HandlerContext,
    docs: Path,
    name: str,
    arguments: dict[str, object],
    code: str,
) -> None:
    (docs / "raw").write_bytes(b"\xff\xfe")
    (docs / "wide").write_text("a", "utf-16-le")
    result = await run(name, context, **arguments)
    assert (result.status, result.error_code) == ("error", code)
    assert (docs / "a.txt").read_text() == "alpha\n"


async def test_a_root_that_is_not_writable_can_only_be_read(
    run, docs: Path, tmp_path: Path
) -> None:
    make_tree(tmp_path)
    files = open_docs(docs, writable=False).of(ANN)
    context = HandlerContext(services=Services(files=files))
    read = await run("files.read", context, path="docs/a.txt")
    assert read.content == "docs/a.txt, lines 1 to 1 of 1.\nalpha\n"
    written = await run("files.write", context, path="docs/n.txt", content="x")
    edited = await run("files.edit", context, path="docs/a.txt", old="a", new="b")
    assert (written.error_code, edited.error_code) == ("files.read_only", "files.read_only")


def test_looking_at_files_is_marked_as_harmless_and_changing_them_is_not(bundled: Scan) -> None:
    told = {
        tool.spec.name: (tool.spec.annotations.read_only, tool.spec.annotations.destructive)
        for tool in bundled.tools
        if tool.spec.name.startswith("files.")
    }
    assert told == {
        "files.edit": (False, False),
        "files.list": (True, False),
        "files.read": (True, False),
        "files.search": (True, False),
        "files.write": (False, False),
    }


async def test_an_edit_that_would_grow_without_bounds_is_refused_before_it_is_made(
    run, context: HandlerContext, docs: Path
) -> None:
    (docs / "a.txt").write_text("a" * 100_000)
    result = await run(
        "files.edit", context, path="docs/a.txt", old="a", new="b" * 900_000, replace_all=True
    )
    assert (result.status, result.error_code) == ("error", "files.too_large")
    assert (docs / "a.txt").read_text() == "a" * 100_000


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("files.read", {"line": 900_000, "lines": 2}),
        ("files.search", {"text": "needle"}),
    ],
)
async def test_a_file_of_nothing_but_lines_is_never_taken_apart_at_once(
    run, context: HandlerContext, docs: Path, name: str, arguments: dict[str, object]
) -> None:
    (docs / "a.txt").write_text("\n" * 1_000_000 + "needle")
    tracemalloc.start()
    try:
        result = await run(name, context, path="docs/a.txt", **arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.status == "ok"
    assert peak < 7_000_000, "a list of its lines would have eight bytes and more for each"


@pytest.mark.parametrize(
    ("line", "lines", "told", "shown"),
    [
        (1, 1, "lines 1 to 1 of 3. Go on with line 2.", "one\n"),
        (2, 5, "lines 2 to 3 of 3.", "\nthree"),
        (3, 1, "lines 3 to 3 of 3.", "three"),
    ],
)
async def test_the_last_line_counts_without_a_line_end(
    run, context: HandlerContext, docs: Path, line: int, lines: int, told: str, shown: str
) -> None:
    (docs / "a.txt").write_text("one\n\nthree")
    read = await run("files.read", context, path="docs/a.txt", line=line, lines=lines)
    assert read.content == f"docs/a.txt, {told}\n{shown}"
    (docs / "a.txt").write_text("one\n\nthree\n")
    read = await run("files.read", context, path="docs/a.txt", line=3)
    assert read.content == "docs/a.txt, lines 3 to 3 of 3.\nthree\n"
