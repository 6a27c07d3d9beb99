"""The record of tool calls is verified and shown without a daemon."""

import json
from pathlib import Path

import pytest

from session_runtime.audit.entry import Entry, Outcome, Subject, entry_to_json
from session_runtime.audit.verify import verify
from session_runtime.cli import exits
from session_runtime.types import AskRequest, Identity
from tests.audit.logs import files, store_in, write
from tests.cli.conftest import Run
from tests.control_daemon import Daemon, control_daemon

STATE = ".session-runtime"


@pytest.mark.requirement("NET-7b")
@pytest.mark.requirement("RTE-13")
def test_a_log_as_it_was_written_is_good(run: Run, tmp_path: Path) -> None:
    write(tmp_path / STATE, [1, 2])
    head = verify(tmp_path / STATE).head
    done = run("audit", "verify")
    assert (done.code, done.err) == (exits.OK, "")
    assert done.out == f"3 records are as they were written, from 1 to 3:{head}\n"
    assert json.loads(run("audit", "verify", "--json").out) == {
        "ok": True,
        "records": 3,
        "first": 1,
        "sequence": 3,
        "head": head,
        "files": 1,
        "fault": None,
        "notes": [],
    }


@pytest.mark.requirement("RTE-13")
def test_the_first_line_that_was_changed_is_told(run: Run, tmp_path: Path) -> None:
    write(tmp_path / STATE, [1, 2])
    [file] = files(tmp_path / STATE)
    file.write_bytes(file.read_bytes().replace(b'"n":1', b'"n":9'))
    done = run("audit", "verify")
    assert (done.code, done.out) == (
        exits.FAILED,
        "edited: 000000000001.jsonl:2: record 2 was edited\n",
    )
    assert json.loads(run("audit", "verify", "--json").out)["fault"]["kind"] == "edited"


def test_an_unfinished_last_line_is_told_and_is_no_fault(run: Run, tmp_path: Path) -> None:
    write(tmp_path / STATE, [1])
    with files(tmp_path / STATE)[0].open("ab") as file:
        file.write(b'{"seq":3')
    done = run("audit", "verify")
    assert done.code == exits.OK
    assert done.out.startswith("note: 000000000001.jsonl:3: the last line is unfinished")


def test_a_record_that_was_known_has_to_be_there(run: Run, tmp_path: Path) -> None:
    write(tmp_path / STATE, [1])
    head = verify(tmp_path / STATE).head
    assert run("audit", "verify", "--expect", f"2:{head}").code == exits.OK
    assert run("audit", "verify", "--expect", f"9:{head}").code == exits.FAILED
    done = run("audit", "verify", "--expect", "9")
    assert done.code == exits.USAGE
    assert "take sequence and head of the status" in done.err


def test_where_nothing_was_recorded_there_is_nothing_to_verify(run: Run) -> None:
    done = run("audit", "verify")
    assert done.code == exits.FAILED
    assert "nothing was recorded yet" in done.err
    assert run("audit", "tail").err.startswith("nothing is recorded in ")


@pytest.mark.requirement("RTE-13")
def test_the_last_records_are_shown_in_order_and_cannot_steer_a_terminal(
    run: Run, tmp_path: Path
) -> None:
    call = Subject(0.0, "a", "c1", "bank.pay\x1b[2J\n", "here", "bot", Identity("u1"), b"{}", {})
    refused = Outcome("refused", "tool.revoked", 0, 0.0, None, 0)
    write(tmp_path / STATE, [1])
    store_in(tmp_path / STATE).append(
        [entry_to_json(Entry(call)), entry_to_json(Entry(call, refused))]
    )
    done = run("audit", "tail", "-n", "2")
    at = "1970-01-01T00:00:00.000+00:00"
    assert done.out == (
        f"       3  {at}  bank.pay\\x1b[2J\\n  begun  bot for u1\n"
        f"       4  {at}  bank.pay\\x1b[2J\\n  refused (tool.revoked)  bot for u1\n"
    )
    lines = run("audit", "tail", "--json").out.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "record", [{"event": "call", "tool": "t", "fault": "TypeError"}, {"event": [1]}, {"time": 1}]
)
def test_a_record_without_its_particulars_is_shown_as_it_is(
    run: Run, tmp_path: Path, record: dict[str, object]
) -> None:
    store_in(tmp_path / STATE).append([record])
    done = run("audit", "tail", "-n", "1")
    rest = {name: value for name, value in record.items() if name != "event"}
    told = f"       2  {record.get('event')} {json.dumps(rest)}\n"
    assert (done.code, done.out) == (exits.OK, told)


@pytest.mark.requirement("RTE-13")
def test_the_status_of_a_daemon_shows_the_end_that_can_be_verified(
    run: Run, tmp_path: Path
) -> None:
    with control_daemon(tmp_path, '[runtime]\nwatch = "off"\n') as daemon:
        daemon.do(asked(daemon))
        audit = json.loads(run("status", "--json").out)["audit"]
        end = f"{audit['sequence']}:{audit['head']}"
        assert f"audit log: ends with record {end} in {audit['file']}\n" in run("status").out
        assert run("audit", "verify", "--expect", end).code == exits.OK


@pytest.mark.requirement("RTE-13")
def test_the_status_of_a_daemon_tells_that_its_log_was_cut(run: Run, tmp_path: Path) -> None:
    with control_daemon(tmp_path, '[runtime]\nwatch = "off"\n') as daemon:
        daemon.do(asked(daemon))
        audit = json.loads(run("status", "--json").out)["audit"]
        files(tmp_path / STATE)[0].write_bytes(b"")
        daemon.do(asked(daemon))
        known = f"record {audit['sequence']}:{audit['head']} is not there any more"
        assert f"warning: the audit log was altered: {known}" in run("status").out
        assert "session_runtime_audit_altered 1\n" in daemon.do(metrics(daemon))
    assert run("audit", "verify").code == exits.FAILED


async def asked(daemon: Daemon) -> None:
    """One ask, with a prefetch that is recorded, and the record on the disk."""
    await daemon.runtime.ask(AskRequest("hello"))
    log = daemon.runtime._audit
    assert log is not None
    await log._idle.wait()


async def metrics(daemon: Daemon) -> str:
    return daemon.runtime.metrics()
