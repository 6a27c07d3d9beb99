"""What the daemon is to write has to have a place, or the configuration is refused before the start."""

import os
from pathlib import Path

import pytest

from session_runtime.config.load import find_state_dir
from tests.config.conftest import Reader


@pytest.mark.requirement("CFG-1")
def test_a_trace_that_would_be_a_folder_is_refused(read: Reader) -> None:
    (read.folder / "traces").mkdir()
    assert read.problems('[trace]\npath = "traces"\n') == [
        f"config.toml:2: trace.path: {read.folder / 'traces'} is a folder: name a file in it"
    ]


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("inner", ["", "/state", "/a/b/state"])
def test_a_state_folder_that_cannot_be_made_is_refused_once(read: Reader, inner: str) -> None:
    file = read.file("taken", "")
    folder = f"{file}{inner}"
    told = "is a file: name a folder" if not inner else f"cannot be made: {file} is a file"
    assert read.problems(f'[runtime]\nstate_dir = "taken{inner}"\n') == [
        f"config.toml:2: runtime.state_dir: {folder} {told}"
    ]


@pytest.mark.requirement("CFG-1")
def test_a_trace_below_a_file_is_refused(read: Reader) -> None:
    file = read.file("taken", "")
    assert read.problems('[trace]\npath = "taken/here/trace.jsonl"\n') == [
        f"config.toml:2: trace.path: {file / 'here'} cannot be made: {file} is a file"
    ]


@pytest.mark.requirement("CFG-1")
def test_faults_of_places_are_told_with_where_they_were_given(read: Reader) -> None:
    read.file("taken", "")
    [problem] = read.problems(env={"SESSION_RUNTIME__RUNTIME__STATE_DIR": "taken"})
    assert problem.startswith("env SESSION_RUNTIME__RUNTIME__STATE_DIR: runtime.state_dir: ")


@pytest.mark.requirement("CFG-1")
def test_a_folder_of_the_audit_log_that_cannot_be_made_is_refused(read: Reader) -> None:
    file = read.file("taken", "")
    assert read.problems('[audit]\npath = "taken"\n') == [
        f"config.toml:2: audit.path: {file} is a file: name a folder"
    ]
    assert not read('[audit]\nenabled = false\npath = "taken"\n').settings.audit.enabled


def test_a_trace_that_is_off_may_have_any_path(read: Reader) -> None:
    assert not read('[trace]\nenabled = false\npath = "."\n').settings.trace.enabled


@pytest.mark.parametrize("name", ["pipe", "link", "new", "file", "a/b/new"])
def test_a_trace_may_go_to_whatever_can_be_written(read: Reader, name: str) -> None:
    os.mkfifo(read.folder / "pipe")
    (read.folder / "link").symlink_to(read.file("file", ""))
    assert read(f'[trace]\npath = "{name}"\n').settings.trace.path == read.folder / name


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("a\\u0000b", "it holds a null character"),
        ("x" * 300, "a name in it is longer than 255 bytes"),
        ("é/" * 1_500, "it is longer than 4095 bytes"),
    ],
    ids=["null", "long name", "long path"],
)
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[trace]\npath = "{}"', "2: trace.path"),
        ('[runtime]\nstate_dir = "{}"', "2: runtime.state_dir"),
        ('[ask]\nprompt_file = "{}"', "2: ask.prompt_file"),
        ('[handlers]\npaths = [".", "{}"]', "2: handlers.paths: item 2"),
        ('[models.m]\nwire = "scripted"\nscript = "{}"', "3: models.m.script"),
        ('[files.roots.r]\npath = "{}"', "2: files.roots.r.path"),
        ('[handlers.entries.t]\nimport = "a:b"\nschema = "{}"', "3: handlers.entries.t.schema"),
    ],
    ids=lambda value: value.split(": ")[1] if ": " in value else "",
)
def test_a_path_that_no_file_can_have_is_refused_wherever_it_is_given(
    read: Reader, text: str, key: str, path: str, fault: str
) -> None:
    [problem] = read.problems(text.replace("{}", path))
    assert problem.startswith(f"config.toml:{key}: '")
    assert problem.endswith(f" is no usable path: {fault}")
    assert len(problem) < 250


def test_a_state_directory_that_nothing_can_have_is_not_looked_for(read: Reader) -> None:
    path = read.file("config.toml", '[runtime]\nstate_dir = "a\\u0000b"\n')
    found = find_state_dir(path, named=True, env={})
    assert found == read("[log]\n").settings.runtime.state_dir


def test_nothing_is_made_by_reading(read: Reader, tmp_path: Path) -> None:
    read('[runtime]\nstate_dir = "a/b"\n')
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
