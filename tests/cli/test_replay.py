"""``replay`` and ``config check --replay`` tell what a configuration would change for recorded asks."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from session_runtime import AskRequest, Runtime
from session_runtime.cli import exits
from tests.cli.conftest import Done, Run
from tests.support import calls, says, scripted, write_handler
from tests.system.server_config import server

TOUCHES = (
    "from pathlib import Path\nPath('touched').touch()\ndef execute(args, context):\n    return 1\n"
)
BASE = """
[handlers]
paths = ["tools"]
bundled = false
[skills]
tool_search_enabled = true
tool_search_always_loaded = []
prefetch_tools = []
[trace]
path = "trace.jsonl"
"""
RULE = '[access.rules.nobody]\ndeny = ["weather.*"]\n'
KEY = """
[models.far]
wire = "chat"
base_url = "http://127.0.0.1:9"
model = "m"
api_key = "env:FAR_API_KEY"
"""
FOUND = {"query": "select:weather.forecast"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration, the trace of three asks to it, and one under which they differ."""
    write_handler(tmp_path / "tools", "weather.forecast", code=TOUCHES)
    write_handler(tmp_path / "tools", "music.play")
    replies = calls(("tool_search", FOUND)), calls(("weather.forecast", {})), says("sunny")
    record(tmp_path, BASE + scripted(tmp_path, *replies), 3)
    (tmp_path / "touched").unlink(missing_ok=True)
    (tmp_path / "other.toml").write_text((tmp_path / "config.toml").read_text() + RULE)
    return tmp_path


def record(folder: Path, text: str, times: int) -> None:
    (folder / "config.toml").write_text(text)
    asyncio.run(_ask(folder, times))


async def _ask(folder: Path, times: int) -> None:
    async with Runtime.open(folder / "config.toml", env={}, watch=False) as runtime:
        for _ in range(times):
            await runtime.ask(AskRequest("go"))


def lines(done: Done) -> Iterator[Any]:
    return map(json.loads, done.out.splitlines())


@pytest.mark.requirement("OPS-2")
def test_the_same_configuration_changes_nothing_and_nothing_is_run_or_written(
    run: Run, folder: Path
) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run("replay", "trace.jsonl")
    assert done == Done(exits.OK, "0 of 3 asks would differ\n", "")
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.requirement("OPS-2")
def test_another_configuration_is_told_ask_by_ask_and_counted(run: Run, folder: Path) -> None:
    done = run("replay", "trace.jsonl", "--config", "other.toml")
    assert (done.code, done.err) == (exits.FAILED, "")
    asked, *told = done.out.splitlines()
    assert asked.startswith("ask_")
    why = "(denied by access.rules.nobody)"
    gone = f"call of weather.forecast: ran -> tool.unknown {why}"
    searched = "loaded weather.forecast -> nothing; not found nothing -> weather.forecast"
    assert told[0].startswith("  directory: 2 tools in ")
    assert told[1:3] == [
        f"  turn 1: search 'select:weather.forecast': {searched}",
        f"  turn 2: {gone}",
    ]
    assert told[-5:] == [
        "3 of 3 asks would differ",
        f"     3  {gone}",
        f"     3  a search does not load weather.forecast any more {why}",
        "     3  another number of tokens of tools",
        "     3  directory: 2 -> 1 tools",
    ]


@pytest.mark.requirement("NET-7b")
@pytest.mark.requirement("OPS-2")
def test_programs_get_a_line_for_each_ask_that_differs_and_a_summary(
    run: Run, folder: Path
) -> None:
    assert [*lines(run("replay", "trace.jsonl", "--json"))] == [
        {
            "summary": {
                "asks": 3,
                "same": 3,
                "differ": 0,
                "uncertain": 0,
                "damaged_lines": 0,
                "changes": [],
                "changes_not_named": 0,
                "unknown": [],
            }
        }
    ]
    done = run("replay", "trace.jsonl", "--json", "--config", "other.toml")
    *asks, last = lines(done)
    assert (done.code, last["summary"]["differ"], len(asks)) == (exits.FAILED, 3, 3)
    assert asks[0]["differences"][2] == {
        "kind": "call",
        "turn": 2,
        "what": "call of weather.forecast: ran -> tool.unknown (denied by access.rules.nobody)",
        "before": "ran",
        "after": "tool.unknown",
    }


@pytest.mark.requirement("OPS-2")
def test_damaged_lines_are_counted_and_told(run: Run, folder: Path) -> None:
    whole = (folder / "trace.jsonl").read_text().splitlines()
    torn = [whole[0][:50], *whole, '{"ask_id": "x"}', *["[]"] * 5]
    (folder / "trace.jsonl").write_text("\n".join(torn))
    done = run("replay", "trace.jsonl")
    assert (done.code, done.out) == (exits.OK, "0 of 3 asks would differ\n")
    warnings = done.err.splitlines()
    assert warnings[0].startswith("warning: trace.jsonl:1: it is no record of an ask: ")
    assert warnings[1].startswith("warning: trace.jsonl:5: it is no record of an ask: ")
    assert warnings[1].endswith(" is missing")
    last = "warning: 2 other lines of trace.jsonl are damaged too"
    assert (len(warnings), warnings[-1]) == (6, last)


@pytest.mark.requirement("OPS-2")
def test_rotated_files_are_replayed_with_their_trace_and_each_once(run: Run, folder: Path) -> None:
    first, *others = (folder / "trace.jsonl").read_text().splitlines(keepends=True)
    (folder / "trace.jsonl.1").write_text(first)
    (folder / "trace.jsonl").write_text("".join(others))
    for given in (["trace.jsonl"], ["trace.jsonl", "trace.jsonl.1", "trace.jsonl"]):
        assert run("replay", *given).out == "0 of 3 asks would differ\n"
    assert run("replay", "trace.jsonl.1").out == "0 of 1 asks would differ\n"


def test_what_cannot_be_read_is_a_wrong_command(run: Run, folder: Path) -> None:
    done = run("replay", "none.jsonl")
    told = "error: there is no trace at none.jsonl; it must be a plain file\n"
    assert done == Done(exits.USAGE, "", told)
    (folder / "empty.jsonl").write_text("\n")
    inside = "empty.jsonl/none.jsonl"
    done = run("replay", inside)
    told = f"error: {inside} cannot be read: Not a directory\n"
    assert done == Done(exits.USAGE, "", told)
    done = run("replay", "empty.jsonl")
    assert done == Done(exits.USAGE, "", "error: there is no recorded ask in empty.jsonl\n")
    assert run("replay").code == exits.USAGE
    (folder / "bad.toml").write_text("[nonsense]\n")
    assert run("replay", "trace.jsonl", "--config", "bad.toml").code == exits.CONFIG


def test_a_secret_that_this_shell_lacks_does_not_keep_from_replaying(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAR_API_KEY", raising=False)
    with (folder / "config.toml").open("a") as file:
        file.write(KEY)
    done = run("replay", "trace.jsonl")
    assert (done.code, done.out) == (exits.OK, "0 of 3 asks would differ\n")
    assert "FAR_API_KEY" in done.err


@pytest.mark.requirement("OPS-2")
def test_an_edit_is_checked_on_recorded_asks_before_it_is_applied(run: Run, folder: Path) -> None:
    done = run("config", "check", "--config", "other.toml", "--replay", "trace.jsonl")
    told = done.out.splitlines()
    assert done.code == exits.OK
    assert told[0].startswith("ok: 2 tools")
    assert told[1:3] == [
        "3 of 3 asks would differ",
        "     3  call of weather.forecast: ran -> tool.unknown (denied by access.rules.nobody)",
    ]
    checked = json.loads(run("config", "check", "--replay", "trace.jsonl", "--json").out)
    assert (checked["ok"], checked["replay"]["differ"]) == (True, 0)
    assert run("config", "check", "--diff", "--replay", "trace.jsonl").code == exits.USAGE


@pytest.mark.requirement("OPS-2")
def test_tools_of_servers_are_known_by_their_lists_alone(run: Run, tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "music.play")
    replies = calls(("tool_search", {"query": "echo"})), calls(("far.echo", {"text": "a"}))
    record(tmp_path, BASE + server("far") + scripted(tmp_path, *replies, says("done")), 1)
    done = run("replay", "trace.jsonl", "--json")
    asked, last = lines(done)
    assert (done.code, last["summary"]["differ"], last["summary"]["uncertain"]) == (0, 0, 1)
    assert asked["unknown"] == [
        "server not opened: far: its tools are taken as recorded, and searches and tokens are not compared"
        " (give its list by --tools)"
    ]
    (tmp_path / "lists.json").write_text(run("tools", "snapshot", "--servers").out)
    known = run("replay", "trace.jsonl", "--tools", "lists.json")
    assert known == Done(exits.OK, "0 of 1 asks would differ\n", "")
    with (tmp_path / "config.toml").open("a") as file:
        file.write('[access.rules.x]\ndeny = ["far.echo"]\n')
    denied = run("replay", "trace.jsonl", "--tools", "lists.json")
    told = "call of far.echo: ran -> tool.unknown (denied by access.rules.x)"
    assert (denied.code, told in denied.out) == (exits.FAILED, True)


def test_a_file_that_holds_no_lists_is_refused(run: Run, folder: Path) -> None:
    for content, why in (
        ("{}", "it holds no lists of servers: make it by tools snapshot --servers"),
        ('{"version": 1, "servers": {"a": {"": [{"name": "x"}]}}}', "a tool needs the texts name"),
        ('{"version": 1, "servers": {"a": []}}', "a server has no table of lists"),
    ):
        (folder / "lists.json").write_text(content)
        done = run("replay", "trace.jsonl", "--tools", "lists.json")
        assert (done.code, done.out) == (exits.USAGE, "")
        assert done.err.startswith(f"error: lists.json: {why}")
