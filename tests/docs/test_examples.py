"""Every example of README and docs works: it runs, parses or at least is well-formed."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from session_runtime.config.load import load
from tests.docs.pages import ROOT, Block, blocks, links, pages, prints

DOCUMENTED_ADDRESS = "127.0.0.1:8040"
PARSERS = {"json": json.loads, "toml": tomllib.loads, "toml config": tomllib.loads}
KINDS = ("python", "sh", "sh run", "text", *PARSERS)
TIMEOUT_S = 60
BLOCKS = [block for page in pages() for block in blocks(page)]
MAIN = "import sys\nfrom session_runtime.cli import main\nsys.exit(main())"


def _of(*infos: str) -> list[Block]:
    return [block for block in BLOCKS if block.info in infos]


def _environment(commands: Path) -> dict[str, str]:
    """The environment without settings of ours, and with the command that the pages use."""
    ours = re.compile(r"SESSION_RUNTIME|TOOL_SEARCH_|PREFETCH_|OPENAI_|ANTHROPIC_")
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    package = str(ROOT / "runtime")
    return kept | {"PYTHONPATH": package, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    commands = tmp_path_factory.mktemp("bin")
    command = commands / "session-runtime"
    command.write_text(f"#!{sys.executable}\n{MAIN}\n", "utf-8")
    command.chmod(0o755)
    python = commands / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', "utf-8")
    python.chmod(0o755)
    return _environment(commands)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with the project's configuration in it."""
    shutil.copy(ROOT / "config.toml", tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def daemon(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running daemon; gives its ``host:port``."""
    folder = tmp_path_factory.mktemp("daemon")
    shutil.copy(ROOT / "config.toml", folder)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = ["session-runtime", "serve", "--config", "config.toml", "--port", str(port)]
    address = f"127.0.0.1:{port}"
    with subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        log = _until(address, process.stderr or [])
        assert address in log, log
        yield address
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)


def _until(word: str, lines: Iterable[str]) -> str:
    """The lines up to the first one with ``word`` in it; all of them if there is none."""
    read = []
    for line in lines:
        read.append(line)
        if word in line:
            break
    return "".join(read)


def _run(command: list[str], folder: Path, environment: dict[str, str], block: Block) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    if block.output is not None:
        assert prints(block.output, done.stdout), done.stdout


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_of_a_kind_that_is_checked(block: Block) -> None:
    assert block.info in KINDS


@pytest.mark.parametrize("block", _of("python"), ids=str)
def test_python_runs(block: Block, folder: Path, environment: dict[str, str]) -> None:
    _run([sys.executable, "-c", block.text], folder, environment, block)


@pytest.mark.parametrize("block", _of("sh run"), ids=str)
def test_commands_run_beside_a_daemon(
    block: Block, folder: Path, environment: dict[str, str], daemon: str
) -> None:
    script = block.text.replace(DOCUMENTED_ADDRESS, daemon)
    _run(["bash", "-euo", "pipefail", "-c", script], folder, environment, block)


@pytest.mark.parametrize("block", _of("sh", "sh run"), ids=str)
def test_commands_are_well_formed(block: Block) -> None:
    done = subprocess.run(
        ["bash", "-n"], input=block.text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("block", _of(*PARSERS), ids=str)
def test_data_parses(block: Block) -> None:
    PARSERS[block.info](block.text)


@pytest.mark.parametrize("block", _of("toml config"), ids=str)
def test_configurations_are_valid(block: Block, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(block.text, "utf-8")
    secrets = dict.fromkeys(re.findall(r'"env:(\w+)"', block.text), "a secret")
    load(path, named=True, env=secrets)


def test_nothing_tells_to_install_what_no_package_index_has() -> None:
    told = [*pages(), ROOT / "config.toml", *(ROOT / "runtime").rglob("*.py")]
    by_name = re.compile(r"pip install ['\"]?session-runtime")
    assert [str(each) for each in told if by_name.search(each.read_text("utf-8"))] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files(page: Path) -> None:
    dead = [target for target in links(page) if not (page.parent / target).exists()]
    assert not dead


def test_every_page_is_reached_from_the_index() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "docs" / "index.md"]
    while waiting:
        page = waiting.pop().resolve()
        if page not in seen and page.suffix == ".md" and page.exists():
            seen.add(page)
            waiting.extend(page.parent / target for target in links(page))
    lost = [str(page.relative_to(ROOT)) for page in pages() if page.resolve() not in seen]
    assert not lost
