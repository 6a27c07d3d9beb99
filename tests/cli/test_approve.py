"""``tools approve`` speaks to the daemon, and says when nothing waits (RTE-4)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_runtime.cli import exits
from tests.cli.conftest import Run
from tests.control_daemon import Daemon, control_daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with control_daemon(tmp_path, '[runtime]\nwatch = "off"\n') as running:
        yield running


@pytest.mark.parametrize("arguments", [("a.wipe",), ("--all", "a")])
def test_where_nothing_waits_nothing_is_approved(
    run: Run, daemon: Daemon, arguments: tuple[str, ...]
) -> None:
    done = run("tools", "approve", *arguments)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "waits for an approval; status lists those that do" in done.err


@pytest.mark.parametrize("arguments", [(), ("a.wipe", "--all", "a")])
def test_one_thing_is_named(run: Run, daemon: Daemon, arguments: tuple[str, ...]) -> None:
    assert run("tools", "approve", *arguments).code == exits.USAGE
