"""A root that overlaps with what the daemon runs on is refused, with its line (SEC-1)."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from session_runtime.config.load import load
from session_runtime.errors import ConfigError
from session_runtime.toolbox.box import open_toolbox
from session_runtime.toolbox.files.access import FileRoots
from tests.support import opened, write_handler

BUNDLED = Path(__file__).parents[2] / "handlers"
FOLDERS = "data/sub etc logs/kept prompts schemas scripts secrets state/inner switch tools/inner variables"
CONFIG = """\
[runtime]
state_dir = "../state"
secret_sources = ["env:*_TOKEN", "file:{base}/secrets"]
[trace]
path = "../logs/kept/trace.jsonl"
[handlers]
paths = ["../tools"]
[handlers.entries.registered]
import = "package.module:function"
schema = "../schemas/registered.json"
[ask]
prompt_file = "../prompts/system.md"
[models.played]
wire = "scripted"
script = "../scripts/replies.json"
[files.roots.docs]
"""
PATH_LINE = CONFIG.count("\n") + 1


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A folder with all that a configuration can name; the configuration file lies in ``etc``."""
    for name in FOLDERS.split():
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "prompts" / "system.md").write_text("Be brief.")
    (tmp_path / "variables" / ".env").write_text("TOOL_SEARCH_MAX_RESULTS=3\n")
    (tmp_path / "switch" / "enabled").write_text("true")
    return tmp_path


def files_of(base: Path, root: str, more: str = "") -> FileRoots:
    """Open a configuration whose root ``docs`` has this path."""
    path = base / "etc" / "config.toml"
    path.write_text(f'{CONFIG.format(base=base)}path = "{root}"\n{more}', "utf-8")
    env = {"TOOL_SEARCH_ENABLED_FILE": str(base / "switch" / "enabled")}
    snapshot = load(path, named=True, env=env, dotenv=base / "variables" / ".env")
    files = open_toolbox(snapshot, BUNDLED).files
    assert files is not None
    return files


def refusal(base: Path, root: str, more: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        files_of(base, root, more)
    (problem,) = caught.value.problems
    return str(problem)


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize(
    ("root", "what"),
    [
        ("../state", "runtime.state_dir"),
        ("../state/inner", "runtime.state_dir"),
        ("..", "runtime.state_dir"),
        ("/", "runtime.state_dir"),
        ("../data/../state", "runtime.state_dir"),
        ("../logs", "trace.path"),
        ("../logs/kept", "trace.path"),
        ("../tools", "handlers.paths"),
        ("../tools/inner", "handlers.paths"),
        ("../schemas", "handlers.entries.registered.schema"),
        ("../prompts", "a file that the configuration reads"),
        ("../variables", "a file that the configuration reads"),
        ("../switch", "a file that the configuration reads"),
        ("../scripts", "models.played.script"),
        ("../secrets", "runtime.secret_sources"),
        (".", "the configuration file"),
        ("../etc", "the configuration file"),
        (str(BUNDLED), "the bundled tools"),
        (str(BUNDLED / "files"), "the bundled tools"),
        (str(BUNDLED.parent / "runtime" / "session_runtime" / "app"), "the program"),
        (sysconfig.get_path("purelib"), "Python and installed packages"),
        (str(Path(pytest.__file__).parent), "Python and installed packages"),
    ],
)
def test_a_root_over_or_in_what_the_daemon_runs_on_is_refused(
    base: Path, root: str, what: str
) -> None:
    told = refusal(base, root)
    assert told.startswith(f"config.toml:{PATH_LINE}: files.roots.docs.path: overlaps with ")
    assert f"{what} (" in told
    assert told.endswith(": name a folder apart")


@pytest.mark.requirement("SEC-1")
def test_links_and_later_folders_do_not_hide_an_overlap(base: Path) -> None:
    (base / "way").symlink_to("state/inner")
    assert "runtime.state_dir" in refusal(base, "../way")
    (base / "tools" / "inner").rmdir()
    (base / "tools").rmdir()
    (base / "tools").symlink_to("data/sub")
    assert "handlers.paths" in refusal(base, "../data")
    (base / "prompts" / "system.md").rename(base / "data" / "system.md")
    (base / "prompts" / "system.md").symlink_to("../data/system.md")
    assert "a file that the configuration reads" in refusal(base, "../data")
    (base / "state" / "inner").rmdir()
    (base / "state").rmdir()  # the daemon will make it
    assert "runtime.state_dir" in refusal(base, "..")


@pytest.mark.requirement("SEC-1")
def test_a_root_over_a_folder_that_python_imports_from_is_refused(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(base / "data" / "sub")])
    assert "a folder that Python imports from" in refusal(base, "../data")
    monkeypatch.setattr(sys, "path", [*sys.path[:-1], str(base)])
    assert files_of(base, "../data").roots["docs"].path == base / "data"


@pytest.mark.requirement("SEC-1")
def test_without_a_configuration_file_its_place_is_kept_free(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(base / "data")
    env = {
        "SESSION_RUNTIME__FILES__ROOTS__DOCS__PATH": str(base / "data"),
        "SESSION_RUNTIME__RUNTIME__STATE_DIR": str(base / "state"),
    }
    snapshot = load(Path("config.toml"), named=False, env=env)
    with pytest.raises(ConfigError, match="the configuration file") as caught:
        open_toolbox(snapshot, BUNDLED)
    assert str(caught.value).startswith("env SESSION_RUNTIME__FILES__ROOTS__DOCS__PATH: ")


@pytest.mark.requirement("SEC-1")
@pytest.mark.parametrize("second", ["../data", "../data/sub", "../alias", "../alias/sub"])
def test_two_roots_may_not_overlap(base: Path, second: str) -> None:
    (base / "alias").symlink_to("data")
    told = refusal(base, "../data", f'[files.roots.more]\npath = "{second}"\n')
    assert told.startswith(f"config.toml:{PATH_LINE + 2}: files.roots.more.path: overlaps with")
    assert f"files.roots.docs ({base}/data)" in told


def test_a_folder_beside_all_that_is_a_root_and_a_link_to_it_is_followed_once(base: Path) -> None:
    (base / "etc" / "data").symlink_to("../data")
    root = files_of(base, "data", "writable = true\nper_user = true\n").roots["docs"]
    assert (root.path, root.writable, root.per_user) == (base / "data", True, True)


@pytest.mark.parametrize(
    ("root", "told"),
    [
        ("../none", "there is no folder {base}/etc/../none: create it, or name another"),
        ("../switch/enabled", "{base}/etc/../switch/enabled is no folder: name the folder around it"),
        ("loop", "there is no folder {base}/etc/loop: create it, or name another"),
    ],
)  # fmt: skip
def test_a_root_has_to_be_a_folder_that_is_there(base: Path, root: str, told: str) -> None:
    (base / "etc" / "loop").symlink_to("loop")
    line = f"config.toml:{PATH_LINE}: files.roots.docs.path: "
    assert refusal(base, root) == line + told.format(base=base)


def test_all_roots_that_are_wrong_are_told_at_once(base: Path) -> None:
    more = '[files.roots.more]\npath = "../none"\n'
    with pytest.raises(ConfigError) as caught:
        files_of(base, "../state", more)
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["files.roots.docs.path", "files.roots.more.path"]


async def test_tools_that_have_nothing_to_work_on_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    root = '[files.roots.docs]\npath = "data"\n'
    names = []
    for text in ("", root, f"{root}writable = true\n"):
        async with opened(tmp_path, text) as runtime:
            found = [tool["name"] for tool in runtime.tools()]
            names.append([name for name in found if name.startswith("files.")])
    reading = ["files.list", "files.read", "files.search"]
    assert names == [[], reading, sorted([*reading, "files.edit", "files.write"])]


@pytest.mark.requirement("SEC-1")
async def test_a_runtime_does_not_start_with_a_root_over_its_handlers(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "own")
    text = '[handlers]\npaths = ["tools"]\n[files.roots.docs]\npath = "tools/own"\n'
    with pytest.raises(ConfigError) as caught:
        async with opened(tmp_path, text):
            pass
    assert str(caught.value) == (
        f"config.toml:4: files.roots.docs.path: overlaps with handlers.paths ({tmp_path}{os.sep}tools):"
        " name a folder apart"
    )
