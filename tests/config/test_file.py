"""What a configuration file may look like, and that nothing else is ever taken for defaults."""

import os
from pathlib import Path

import pytest

from session_runtime.config.load import load
from session_runtime.errors import ConfigError
from tests.config.conftest import Reader

TEXT = '[skills]\ntool_search_enabled = true\nprefetch_tools = ["时间"]\n'


def faults_of(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(path, named=True, env={})
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(),
    ],
    ids=["plain", "byte order mark", "Windows line ends", "both"],
)
def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(data)
    skills = load(path, named=True, env={}).settings.skills
    assert (skills.tool_search_enabled, skills.prefetch_tools) == (True, ("时间",))


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("data", [b"", b" \r\n\t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_an_empty_file_is_refused_and_not_taken_for_defaults(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(data)
    assert faults_of(path) == ["config.toml: is empty; to run on defaults alone, write a comment"]


@pytest.mark.requirement("CFG-1")
def test_a_file_of_comments_alone_means_defaults(read: Reader) -> None:
    assert read("# nothing yet\n").settings == read().settings


@pytest.mark.requirement("CFG-1")
def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes("[log]\n# Größe\n".encode("latin-1"))
    assert faults_of(path) == ["config.toml:2: is not UTF-8 (byte 0xf6)"]


@pytest.mark.requirement("CFG-1")
def test_a_syntax_error_is_told_with_line_and_column(read: Reader) -> None:
    [problem] = read.problems("[skills]\ntool_search_enabled true\n")
    assert problem == (
        "config.toml:2: column 21: not valid TOML: Expected '=' after a key in a key/value pair"
    )


@pytest.mark.requirement("CFG-1")
def test_a_file_that_breaks_off_is_told_with_its_last_line(read: Reader) -> None:
    [problem] = read.problems('[ask]\n\nsystem_prompt = "half')
    assert problem.startswith("config.toml:3: ")


@pytest.mark.requirement("CFG-1")
def test_endless_nesting_is_refused(read: Reader) -> None:
    [problem] = read.problems("x = " + "[" * 100_000)
    assert problem == "config.toml: is nested too deeply"


@pytest.mark.requirement("CFG-6")
def test_without_a_file_at_the_default_path_defaults_and_variables_hold(tmp_path: Path) -> None:
    snapshot = load(tmp_path / "config.toml", named=False, env={"TOOL_SEARCH_MAX_RESULTS": "7"})
    assert snapshot.path is None
    assert snapshot.settings.skills.tool_search_max_results == 7
    assert snapshot.settings.skills.tool_search_enabled is False


@pytest.mark.requirement("CFG-6")
def test_a_named_file_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"
    assert faults_of(path) == [f"absent.toml: {path} cannot be read: No such file or directory"]


@pytest.mark.requirement("INT-1")
def test_relative_paths_count_from_the_folder_of_the_file(
    read: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read.file("prompt.md", "Be brief.")
    monkeypatch.chdir("/")
    settings = read(
        '[ask]\nprompt_file = "prompt.md"\n[handlers]\npaths = ["tools", "/opt/tools"]\n'
        '[models.s]\nwire = "scripted"\nscript = "script.json"\n',
        env={"SESSION_RUNTIME__RUNTIME__STATE_DIR": "state"},
    ).settings
    assert settings.ask.prompt_file == tmp_path / "prompt.md"
    assert settings.handlers.paths == (tmp_path / "tools", Path("/opt/tools"))
    assert settings.models["s"].script == tmp_path / "script.json"
    assert settings.runtime.state_dir == tmp_path / "state"


@pytest.mark.requirement("INT-1")
def test_the_trace_lies_in_the_state_directory_unless_it_is_given(
    read: Reader, tmp_path: Path
) -> None:
    assert read().settings.trace.path == tmp_path / ".session-runtime" / "trace.jsonl"
    moved = read('[runtime]\nstate_dir = "/var/lib/bot"\n').settings
    assert moved.trace.path == Path("/var/lib/bot/trace.jsonl")
    given = read('[runtime]\nstate_dir = "/var/lib/bot"\n[trace]\npath = "t.jsonl"\n').settings
    assert given.trace.path == tmp_path / "t.jsonl"


@pytest.mark.requirement("CFG-1")
def test_a_pipe_or_a_device_is_refused_instead_of_read_for_ever(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    assert faults_of(pipe) == [f"pipe.toml: {pipe} is no plain file"]
    assert faults_of(Path("/dev/zero")) == ["zero: /dev/zero is no plain file"]
