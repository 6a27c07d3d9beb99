import json
from pathlib import Path

import pytest

from session_runtime.app.runtime import bundled_handlers
from session_runtime.cli import exits
from tests.cli.conftest import Run

QUESTION = "Count the words of the text 'one two three'"


def used_in(paths: str) -> str:
    return f"[handlers]\npaths = {paths}\n[trace]\nenabled = false\n"


@pytest.mark.parametrize("name", ["words", "text.words"])
def test_a_new_tool_can_be_checked_and_called_at_once(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "config.toml").write_text(used_in('["tools"]'))
    done = run("tools", "new", name)
    folder = tmp_path.joinpath("tools", *name.split("."))
    assert (done.code, done.err) == (exits.OK, "")
    assert done.out.splitlines() == [
        f"wrote {folder}: say in config.json what the tool is, and do it in handler.py",
        f"try it: session-runtime tools show {name}",
    ]
    checked = run("config", "check", "--json")
    assert (checked.code, json.loads(checked.out)["quarantined"]) == (exits.OK, [])
    assert run("ask", QUESTION).out == "words: 3\n"


def test_without_a_folder_in_use_the_line_to_add_is_told(run: Run, tmp_path: Path) -> None:
    written, to_add = run("tools", "new", "words").out.splitlines()
    assert written.startswith("wrote tools/words: ")
    assert to_add == 'to use it, write under [handlers] in config.toml: paths = ["tools"]'
    (tmp_path / "config.toml").write_text(used_in('["tools"]'))
    assert run("ask", QUESTION).out == "words: 3\n"


def test_the_line_to_add_keeps_the_folders_that_are_in_use(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(used_in('["tools", "/opt/tools"]'))
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    inside = run("tools", "new", "words", "--dir", "more").out.splitlines()[1]
    beside = run("tools", "new", "words", "--dir", str(outside)).out.splitlines()[1]
    assert inside.endswith('in config.toml: paths = ["tools", "/opt/tools", "more"]')
    assert beside.endswith(f'in config.toml: paths = ["tools", "/opt/tools", "{outside}"]')


def test_programs_get_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(used_in('["tools"]'))
    assert json.loads(run("tools", "new", "words", "--dir", "tools", "--json").out) == {
        "name": "words",
        "folder": "tools/words",
        "in_paths": True,
        "next": [
            "wrote tools/words: say in config.json what the tool is, and do it in handler.py",
            "try it: session-runtime tools show words",
        ],
    }


def test_a_refusal_says_what_to_do_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    bad = run("tools", "new", "my tool")
    assert (bad.code, bad.out) == (exits.USAGE, "")
    assert bad.err == "error: 'my tool' cannot be a name: write 'my_tool'\n"
    assert list(tmp_path.iterdir()) == []
    run("tools", "new", "words")
    again = run("tools", "new", "words")
    assert (again.code, again.out) == (exits.USAGE, "")
    assert again.err == "error: tools/words exists: choose another name, or remove it\n"


def test_a_folder_that_is_a_file_is_the_callers_mistake(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("tools", "new", "words", "--dir", "file")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert done.err == "error: file is a file, no folder: choose another place\n"


def test_what_the_system_refuses_is_told_with_the_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(
        path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False
    ) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Path, "mkdir", full_disk)
    done = run("tools", "new", "words", "--dir", "new")
    assert (done.code, done.out, done.err) == (
        exits.FAILED,
        "",
        "error: new: No space left on device\n",
    )


def test_no_tool_is_written_among_those_that_come_with_the_package(run: Run) -> None:
    folder = bundled_handlers()
    for place in (folder, folder / "mine"):
        done = run("tools", "new", "words", "--dir", str(place))
        assert (done.code, done.out) == (exits.USAGE, "")
        assert "that come with session-runtime: name another folder by --dir" in done.err
    assert not (folder / "words").exists()


def test_a_secret_that_the_daemon_alone_has_keeps_no_tool_from_being_written(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text(
        '[models.m]\nbase_url = "http://h/v1"\nmodel = "m"\napi_key = "env:ONLY_THERE_API_KEY"\n'
    )
    done = run("tools", "new", "words")
    assert (done.code, done.out.startswith("wrote tools/words: ")) == (exits.OK, True)
    assert "the daemon may have it" in done.err
