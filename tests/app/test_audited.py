"""What a runtime records of its calls, and what operators see of it (RTE-13)."""

from pathlib import Path

import pytest

from session_runtime.audit.tail import last_lines
from session_runtime.errors import StartError
from session_runtime.types import AskRequest, Identity
from tests.ask.confirming import Home, following
from tests.audit.logs import verified
from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler

STATE = ".session-runtime"


def config(folder: Path) -> str:
    return scripted(folder, calls(("t", {"token": "x"})), says("done")) + tool_folder(folder)


def told(text: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in text.splitlines() if "_audit_" in line)
    return {name: value for name, _, value in lines if name != "#"}


@pytest.mark.requirement("RTE-13")
async def test_the_calls_of_an_ask_are_recorded_and_the_status_shows_the_end(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "t")
    async with opened(tmp_path, config(tmp_path)) as runtime:
        assert runtime.status()["audit"]["sequence"] == 0
        asked = await ask(runtime, AskRequest("go", identity=Identity("u1")))
        records = runtime.status()["audit"]
    report = verified(tmp_path / STATE)
    [call] = [r for r in last_lines(tmp_path / STATE, 99) if r.get("tool") == "t"]
    assert call["ask_id"] == asked.result.ask_id
    assert (call["principal"], call["identity"]["user"]) == ("local", "u1")
    assert (call["status"], call["arguments"]) == ("ok", {"token": "***"})
    async with opened(tmp_path, config(tmp_path)) as runtime:
        again = runtime.status()["audit"]
        assert (again["sequence"], again["head"]) == (report.sequence, report.head)
        assert told(runtime.metrics()) == {
            "session_runtime_audit_sequence": str(report.sequence),
            "session_runtime_audit_failing": "0",
            "session_runtime_audit_altered": "0",
            "session_runtime_audit_lost_total": "0",
        }
    assert records["folder"] == str(tmp_path / STATE / "audit")


@pytest.mark.requirement("RTE-13")
@pytest.mark.requirement("RTE-9b")
async def test_what_a_person_declined_is_recorded_as_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.write("wipe")
    async with home.open(calls(("wipe", {"n": 1})), says("I leave it.")) as runtime:
        first = await ask(runtime, "wipe it")
        tokens = tuple(call.token for call in first.result.pending)
        no = following(first.result, confirmations=(), declined=tokens)
        second = await ask(runtime, no)
    told = [r for r in last_lines(tmp_path / STATE, 99) if r.get("tool") == "wipe"]
    assert [
        (r["ask_id"], r["event"], r["status"], r["error_code"], r["arguments"]) for r in told
    ] == [
        (first.result.ask_id, "call", "refused", "tool.needs_confirmation", {"n": 1}),
        (second.result.ask_id, "call", "refused", "tool.declined", {"n": 1}),
    ]


async def test_nothing_is_recorded_where_that_is_off(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "t")
    text = config(tmp_path) + "[audit]\nenabled = false\n"
    async with opened(tmp_path, text) as runtime:
        await ask(runtime, "go")
        assert runtime.status()["audit"] is None
    assert not (tmp_path / STATE / "audit").exists()


@pytest.mark.requirement("RTE-13")
async def test_a_log_that_lost_its_key_hinders_the_start(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "t")
    async with opened(tmp_path, config(tmp_path)) as runtime:
        await ask(runtime, "go")
    (tmp_path / STATE / "audit.key").unlink()
    with pytest.raises(StartError, match="put it back, or move the folder away"):
        async with opened(tmp_path, config(tmp_path)):
            pass


@pytest.mark.requirement("RTE-13")
async def test_the_folder_can_be_another_one(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "t")
    text = config(tmp_path) + '[audit]\npath = "records"\n'
    async with opened(tmp_path, text) as runtime:
        await ask(runtime, "go")
    assert verified(tmp_path / STATE).sequence > 1
    assert [path.suffix for path in (tmp_path / "records").iterdir()] == [".jsonl"]
