"""Folders of handlers become tools; a bad one is left out alone, and nothing is imported."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from session_runtime.config.handlers import HandlersSettings
from session_runtime.errors import ConfigError
from session_runtime.local.scan import Scan, scan
from session_runtime.registry.catalog import Quarantined
from tests.support import scan_of, write_handler


def names(found: Scan) -> list[str]:
    return [tool.spec.name for tool in found.tools]


def problems(*paths: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        scan_of(*paths)
    return [problem.message for problem in caught.value.problems]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A handlers folder with one good tool."""
    root = tmp_path / "tools"
    write_handler(root, "good")
    return root


@pytest.mark.requirement("REG-1")
def test_folders_and_groups_become_tools_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("zoo", "files.write", "files.read", "alpha"):
        write_handler(tmp_path, name)
    assert names(scan_of(tmp_path)) == ["alpha", "files.read", "files.write", "zoo"]


@pytest.mark.requirement("REG-1")
def test_hidden_folders_are_passed_over(root: Path) -> None:
    for name in ("agents._writer", "_draft", "group._draft", "group.__pycache__"):
        write_handler(root, name)
    write_handler(root, "draft").rename(root / ".draft")
    (root / "notes.txt").write_text("no folder")
    (root / "group" / "data").mkdir()
    found = scan_of(root)
    assert (names(found), found.quarantined) == (["good"], ())


@pytest.mark.requirement("REG-1")
def test_a_spec_says_all_that_the_folder_says(tmp_path: Path) -> None:
    runtime = {
        "requires": ["admin"],
        "aliases": ["rm"],
        "deprecated": {"replacement": "files.trash"},
    }
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    write_handler(
        tmp_path, "files.delete", description="删除文件", parameters=schema, runtime=runtime
    )
    [tool] = scan_of(tmp_path).tools
    spec = tool.spec
    assert (spec.name, spec.native_name, spec.origin) == ("files.delete", "files/delete", "handler")
    assert (spec.description, spec.parameters) == ("删除文件", schema)
    assert (spec.requires, spec.aliases) == (frozenset({"admin"}), ("rm",))
    assert spec.deprecated is not None
    assert spec.deprecated.replacement == "files.trash"


@pytest.mark.requirement("REG-1")
def test_characters_that_break_names_are_replaced_and_the_folder_keeps_its_own(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path, "my tool")
    [tool] = scan_of(tmp_path).tools
    assert (tool.spec.name, tool.spec.native_name) == ("my_tool", "my tool")


@pytest.mark.requirement("REG-1")
def test_a_tool_of_the_operator_replaces_a_bundled_one_with_a_warning(
    root: Path, tmp_path: Path
) -> None:
    bundled = tmp_path / "bundled"
    write_handler(bundled, "good")
    write_handler(bundled, "end")
    found = scan_of(root, bundled=bundled)
    assert [(tool.spec.name, tool.spec.origin) for tool in found.tools] == [
        ("end", "bundled"),
        ("good", "handler"),
    ]
    assert found.warnings == (f"tool 'good' in {root / 'good'} replaces the bundled one",)


@pytest.mark.requirement("REG-4")
def test_two_tools_of_one_name_are_both_left_out_and_both_folders_named(
    root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    write_handler(other, "good")
    for path in (root, other):
        write_handler(path, f"unlike_{path.name}")
    found = scan_of(root, other)
    assert names(found) == ["unlike_other", "unlike_tools"]
    reason = (
        f"the name stands for {root / 'good'} and {other / 'good'}: rename or remove all but one"
    )
    assert found.quarantined == (
        Quarantined("good", str(other / "good"), reason),
        Quarantined("good", str(root / "good"), reason),
    )


@pytest.mark.requirement("REG-4")
@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("handler.py", None, "handler.py is missing"),
        ("config.json", None, "config.json is missing"),
        (
            "config.json",
            b'{"type": "function"',
            "config.json: not valid JSON: EOF while parsing an object",
        ),
        ("config.json", b"\xff\xfe", "config.json: it is not UTF-8"),
        (
            "config.json",
            b'{"type": "function", "function": {"name": "b", "description": "x"}}',
            "function.name is 'b' but it is registered as 'bad': rename one",
        ),
        (
            "config.json",
            b'{"type": "function", "function": {"name": "bad", "description": "x",'
            b' "parameters": {"type": "array"}}}',
            'parameters: the root must have "type": "object", got "array"',
        ),
        ("handler.py", b"#" * 1_000_001, "handler.py has more than 1000000 bytes"),
    ],
)
def test_a_bad_tool_costs_that_tool_alone(
    root: Path, file: str, content: bytes | None, reason: str
) -> None:
    folder = write_handler(root, "bad")
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    found = scan_of(root)
    assert names(found) == ["good"]
    [bad] = found.quarantined
    assert (bad.name, bad.place) == ("bad", str(folder))
    assert bad.reason.startswith(reason)


@pytest.mark.requirement("REG-4")
@pytest.mark.parametrize(
    ("folder", "reason"),
    [
        ("a.b", "a folder's name may not hold a dot"),
        ("x" * 129, "its name cannot be used: it has 129 characters"),
        ("---", "its name cannot be used: it holds nothing that can be read"),
    ],
)
def test_a_folder_whose_name_cannot_be_a_tool_is_left_out(
    root: Path, folder: str, reason: str
) -> None:
    write_handler(root, "bad").rename(root / folder)
    [bad] = scan_of(root).quarantined
    assert bad.reason.startswith(reason)


@pytest.mark.requirement("REG-4")
def test_links_are_followed_inside_the_folder_only(root: Path, tmp_path: Path) -> None:
    outside = write_handler(tmp_path / "outside", "far")
    (root / "far").symlink_to(outside, target_is_directory=True)
    (root / "outside").symlink_to(outside.parent, target_is_directory=True)
    inside = write_handler(root, "near").rename(root / "..data")
    (root / "near").mkdir()
    for file in ("config.json", "handler.py"):
        (root / "near" / file).symlink_to(inside / file)
    borrowed = write_handler(root, "borrowed")
    (borrowed / "handler.py").unlink()
    (borrowed / "handler.py").symlink_to(outside / "handler.py")
    found = scan_of(root)
    assert names(found) == ["good", "near"]
    assert [(bad.name, bad.reason) for bad in found.quarantined] == [
        ("borrowed", f"handler.py is a link that leads out of {root}"),
        ("far", f"it is a link that leads out of {root}"),
        ("outside", f"it is a link that leads out of {root}"),
    ]


def test_a_pipe_in_place_of_a_file_does_not_block_the_scan(root: Path) -> None:
    folder = write_handler(root, "bad")
    (folder / "handler.py").unlink()
    os.mkfifo(folder / "handler.py")
    [bad] = scan_of(root).quarantined
    assert bad.reason == "handler.py is not a regular file"


def test_a_folder_that_cannot_be_listed_costs_that_folder_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_handler(root, "locked.tool")
    scandir = os.scandir

    def guarded(path: Path) -> object:
        if Path(path) == root / "locked":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = scan_of(root)
    assert names(found) == ["good"]
    assert found.quarantined == (
        Quarantined("locked", str(root / "locked"), "cannot be read: Permission denied"),
    )


@pytest.mark.requirement("REG-4")
def test_a_configured_folder_must_exist_and_hold_a_usable_tool(root: Path, tmp_path: Path) -> None:
    empty, broken = tmp_path / "empty", tmp_path / "broken"
    empty.mkdir()
    (write_handler(broken, "bad") / "handler.py").unlink()
    assert problems(root, empty, broken) == [
        f"{empty} holds no tool: a tool is a folder with config.json and handler.py",
        f"{broken} holds no usable tool: bad: handler.py is missing",
    ]
    assert problems(root, tmp_path / "gone", root / "good" / "handler.py") == [
        f"{tmp_path / 'gone'} cannot be read as a folder of tools: No such file or directory",
        f"{root / 'good' / 'handler.py'} cannot be read as a folder of tools: Not a directory",
    ]


@pytest.mark.requirement("REG-4")
def test_a_folder_that_is_named_twice_is_told_whatever_it_is_called(
    root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    write_handler(other, "fine")
    link = tmp_path / "link"
    link.symlink_to(root, target_is_directory=True)
    assert problems(root, other, other / ".." / "tools", link, other) == [
        "item 3 is the same folder as item 1: remove one of them",
        "item 4 is the same folder as item 1: remove one of them",
        "item 5 is the same folder as item 2: remove one of them",
    ]


@pytest.mark.requirement("REG-4")
def test_a_path_that_no_folder_can_have_is_a_fault_of_the_configuration() -> None:
    assert problems(Path("a\0b")) == [
        "a\0b cannot be read as a folder of tools: embedded null byte"
    ]


@pytest.mark.requirement("REG-1")
def test_enabled_and_disabled_are_patterns_and_disabled_wins(root: Path) -> None:
    for name in ("files.read", "files.delete"):
        write_handler(root, name)
    assert names(scan_of(root, disabled=("files.*",))) == ["good"]
    assert names(scan_of(root, enabled=("files.*",), disabled=("*.delete",))) == ["files.read"]
    assert names(scan_of(root, enabled=("good",), disabled=("good",))) == []


def test_a_disabled_tool_is_not_even_read(root: Path) -> None:
    (write_handler(root, "bad") / "config.json").write_text("{")
    assert scan_of(root, disabled=("bad",)).quarantined == ()


def test_a_pattern_that_matches_nothing_is_warned_about_with_the_nearest_name(root: Path) -> None:
    write_handler(root, "files.read")
    found = scan_of(root, enabled=("files.raed", "*"), disabled=("gone.*",))
    assert found.warnings == (
        "handlers.enabled: 'files.raed' matches no tool; did you mean 'files.read'?",
        "handlers.disabled: 'gone.*' matches no tool",
    )


@pytest.mark.parametrize("switched_off", [{"idle": ("files.*",)}, {"bundled_off": True}])
def test_a_pattern_that_matches_tools_that_are_left_out_anyway_is_told_only_if_it_enables(
    root: Path, tmp_path: Path, switched_off: Mapping[str, Any]
) -> None:
    bundled = tmp_path / "bundled"
    write_handler(bundled, "files.read")
    handlers = HandlersSettings(
        paths=(root,),
        enabled=("good", "files.*", "gone"),
        disabled=("files.*", "files.raed"),
        bundled=not switched_off.get("bundled_off"),
    )
    found = scan(handlers, bundled, switched_off.get("idle", ()))
    assert names(found) == ["good"]
    assert found.warnings == (
        "handlers.enabled: 'files.*' matches only tools that are left out: they need a section of their"
        " own, or handlers.bundled",
        "handlers.enabled: 'gone' matches no tool",
        "handlers.disabled: 'files.raed' matches no tool; did you mean 'files.read'?",
    )


def test_digests_change_with_any_file_of_the_tool_and_with_nothing_else(root: Path) -> None:
    before = scan_of(root)
    (root / "good" / "notes.md").write_text("no code")
    assert scan_of(root).digest == before.digest
    (root / "good" / "neighbour.py").write_text("x = 1")
    after = scan_of(root)
    assert after.digest != before.digest
    assert after.tools[0].spec.digest != before.tools[0].spec.digest


@pytest.mark.requirement("REG-4")
def test_a_folder_whose_name_is_no_text_costs_no_other_tool(root: Path) -> None:
    for name in ("fits_", "differs"):
        odd = os.fsencode(root) + b"/" + name.strip("_").encode() + b"\xff"
        write_handler(root, name).rename(os.fsdecode(odd))
    found = scan_of(root)
    assert names(found) == ["fits_", "good"]
    assert [(each.name, each.reason) for each in found.quarantined] == [
        ("differs_", "function.name is 'differs' but it is registered as 'differs_': rename one")
    ]


def test_a_file_whose_name_is_no_text_is_code_like_any_other(root: Path) -> None:
    before = scan_of(root).digest
    Path(os.fsdecode(os.fsencode(root) + b"/good/h\xff.py")).write_text("X = 1\n")
    found = scan_of(root)
    assert (names(found), found.quarantined) == (["good"], ())
    assert found.digest != before


def test_a_root_whose_name_is_no_text_can_be_scanned(root: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(root) + b"\xff"))
    root.rename(odd)
    assert names(scan_of(odd)) == ["good"]


def test_the_folder_of_the_bundled_tools_is_no_folder_of_others(tmp_path: Path) -> None:
    write_handler(tmp_path / "bundled", "a")
    (tmp_path / "link").symlink_to("bundled")
    for path in (tmp_path / "bundled", tmp_path / "link"):
        with pytest.raises(ConfigError, match="holds the tools that come with session-runtime"):
            scan(HandlersSettings(paths=(path,)), tmp_path / "bundled")
