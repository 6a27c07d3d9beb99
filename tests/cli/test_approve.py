"""``tools approve`` shows what changed, approves one form of it, and says when nothing waits (RTE-4)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_runtime.cli import exits
from session_runtime.registry.approval_file import ApprovalFile, Observation, Seen
from session_runtime.testing.mcp_servers.script import Script
from tests.cli.conftest import Run
from tests.cli.test_servers import ALONE
from tests.control_daemon import Daemon, control_daemon
from tests.system.server_config import server


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with control_daemon(tmp_path, '[runtime]\nwatch = "off"\n') as running:
        yield running


@pytest.mark.parametrize("arguments", [("a.wipe",), ("a.wipe", "--form", "f0"), ("--all", "a")])
def test_where_nothing_waits_nothing_is_approved(
    run: Run, daemon: Daemon, arguments: tuple[str, ...]
) -> None:
    done = run("tools", "approve", *arguments)
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "waits for an approval; status lists those that do" in done.err


@pytest.mark.parametrize(
    "arguments", [(), ("a.wipe", "--all", "a"), ("--form", "f0", "--all", "a"), ("--form", "f0")]
)
def test_one_thing_is_named(run: Run, daemon: Daemon, arguments: tuple[str, ...]) -> None:
    assert run("tools", "approve", *arguments).code == exits.USAGE


OLD = {"type": "object", "properties": {"path": {"type": "string"}}}
NEW = {"type": "object", "properties": {"path": {"type": "string"}, "all": {"type": "boolean"}}}
WIPE = {"name": "wipe", "inputSchema": NEW, "annotations": {"destructiveHint": True}}
SHOWN = """a.wipe: tool wipe of server a
   {
     "destructive": true,
     "output": null,
     "parameters": {
       "properties": {
  +      "all": {
  +        "type": "boolean"
  +      },
         "path": {
           "type": "string"
         }
       },
       "type": "object"
     }
   }
"""


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon whose tool ``a.wipe`` has another form than the one that was seen before it started."""
    seen = Seen("a", "wipe", "another", True, {"parameters": OLD, "output": None})
    ApprovalFile(tmp_path / ".session-runtime").change({seen.key: Observation(seen)})
    text = ALONE + server("a", Script(tools=(WIPE,)))
    with control_daemon(tmp_path, text) as running:
        yield running


@pytest.mark.requirement("RTE-4")
def test_what_waits_is_looked_at_and_approved_in_just_that_form(run: Run, waiting: Daemon) -> None:
    [found] = re.findall(
        r"^waits for an approval: a\.wipe in the form (\w+)$", run("status").out, re.M
    )
    shown = run("tools", "approve", "a.wipe")
    command = f"session-runtime tools approve a.wipe --form {found}"
    assert (shown.code, shown.out) == (0, f"{SHOWN}to approve exactly this: {command}\n")
    assert (
        json.loads(run("tools", "approve", "a.wipe", "--json").out)["forms"][0]["digest"] == found
    )
    assert run("tools", "approve", "a.wipe", "--form", "f0").code == exits.USAGE
    assert "waits for an approval" in run("status").out
    done = run(*command.split()[1:])
    assert done.out.splitlines()[0] == "approved: a.wipe"
    assert "waits for an approval" not in run("status").out


@pytest.mark.requirement("RTE-4")
def test_a_tool_that_waits_is_shown_without_a_daemon_too(run: Run, tmp_path: Path) -> None:
    seen = Seen("a", "wipe", "another", True)
    ApprovalFile(tmp_path / ".session-runtime").change({seen.key: Observation(seen)})
    (tmp_path / "config.toml").write_text(ALONE + server("a", Script(tools=(WIPE,))), "utf-8")
    lines = run("tools", "show", "a.wipe").out.splitlines()
    assert lines[:4] == [
        "a.wipe is left out: it changed and waits for an approval",
        "a.wipe: tool wipe of server a",
        "  how it was before was not kept; now it is:",
        "  {",
    ]
    assert json.loads(run("tools", "show", "a.wipe", "--json").out)["forms"][0]["before"] is None


@pytest.mark.requirement("RTE-4")
def test_an_approval_that_cannot_be_kept_acts_and_stands_in_the_status(
    run: Run, waiting: Daemon, tmp_path: Path
) -> None:
    [form] = re.findall(r"in the form (\w+)", run("status").out)
    file = tmp_path / ".session-runtime" / "approvals.json"
    file.unlink()
    file.mkdir()
    done = run("tools", "approve", "a.wipe", "--form", form)
    assert "approved as long as this process runs, but no longer" in done.err
    told = run("status").out
    assert "waits for an approval" not in told
    assert "warning: what was seen and approved of tools cannot be kept: " in told
