"""The doctor finds what hinders a daemon, says what to do, and changes nothing."""

import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from session_runtime.app.doctor import Finding, examine
from session_runtime.app.doctor import machine as looked_at
from session_runtime.app.reader import ConfigReader
from session_runtime.config.settings import Settings
from session_runtime.testing.replies import RawReply, reply_text
from session_runtime.testing.upstream import Upstream
from tests.support import chat_profile, write_config, write_handler

pytestmark = pytest.mark.requirement("NET-7d")


async def findings(
    folder: Path,
    text: str = "# none\n",
    *,
    connect: bool = False,
    env: dict[str, str] | None = None,
) -> list[Finding]:
    reader = ConfigReader(write_config(folder, f"{text}\n[http]\nport = 0\n"), env=env or {})
    return [finding async for finding in examine(reader, connect=connect)]


def of(found: list[Finding], check: str) -> list[tuple[str, str]]:
    return [(each.verdict, each.found) for each in found if each.check == check]


def settings_of(folder: Path, **sections: Any) -> Settings:
    runtime = {"state_dir": folder / "state", **sections.pop("runtime", {})}
    return Settings.model_validate({"runtime": runtime, **sections})


async def test_a_machine_that_is_well_is_told_so_and_nothing_is_written(tmp_path: Path) -> None:
    found = await findings(tmp_path)
    assert [each for each in found if each.verdict != "ok"] == []
    assert os.listdir(tmp_path) == ["config.toml"]  # noqa: PTH208 - in a coroutine
    checks = {each.check for each in found}
    assert checks == {
        *("daemon", "configuration", "keys", "tools", "clock", "watching", "port"),
        *("state directory", "disk", "open files", "model offline"),
    }


async def test_each_fault_of_the_configuration_is_told_with_its_place(tmp_path: Path) -> None:
    found = await findings(tmp_path, "[ask]\nmax_steps = 0\nmax_stepz = 1\n")
    told = of(found, "configuration")
    assert [verdict for verdict, _ in told] == ["fail", "fail"]
    assert told[0][1].startswith("config.toml:2: ask.max_steps: must be at least 1")


async def test_tools_that_cannot_work_are_told(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "a.good")
    write_handler(tmp_path / "tools", "a.odd", code="import nothing_like_it\n")
    (write_handler(tmp_path / "tools", "a.bad") / "config.json").write_text("{", "utf-8")
    found = await findings(tmp_path, f'[handlers]\npaths = ["{tmp_path / "tools"}"]\n')
    told = [text for verdict, text in of(found, "tools") if verdict != "ok"]
    assert len(told) == 2
    assert any("a.odd cannot be imported" in text for text in told)


async def test_a_model_that_is_not_there_is_told_although_nothing_is_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    found = await findings(tmp_path, chat_profile(f"http://127.0.0.1:{free}/v1"))
    [(verdict, text)] = of(found, "model main")
    assert (verdict, text[: len(f"127.0.0.1:{free} cannot")]) == (
        "fail",
        f"127.0.0.1:{free} cannot",
    )


async def test_a_model_is_asked_only_where_the_operator_wants_that(tmp_path: Path) -> None:
    async with Upstream([reply_text("ok")]) as upstream:
        text = chat_profile(upstream.base_url)
        quiet = await findings(tmp_path, text)
        assert upstream.bodies == []
        asked = await findings(tmp_path, text, connect=True)
        assert len(upstream.bodies) == 1
    assert [verdict for verdict, _ in of(quiet, "model main")] == ["ok"]
    assert of(asked, "model main")[1][1].startswith("it answered a minimal request")


@pytest.mark.requirement("CFG-4")
async def test_a_key_that_is_refused_is_told_and_never_shown(tmp_path: Path) -> None:
    key = "k3y-of-the-model-k3y"
    refusal = RawReply((f'{{"error": {{"message": "wrong key {key}"}}}}'.encode(),), status=401)
    async with Upstream([refusal]) as upstream:
        text = chat_profile(upstream.base_url) + 'api_key = "env:MY_API_KEY"\n'
        found = await findings(tmp_path, text, connect=True, env={"MY_API_KEY": key})
    assert ("fail", "model.unauthorized") in [
        (each.verdict, each.found.rpartition("(")[2].rstrip(")"))
        for each in found
        if each.check == "model main"
    ]
    assert key not in str(found)


async def test_servers_are_started_only_where_the_operator_wants_that(tmp_path: Path) -> None:
    text = '[mcp.servers.a]\ncommand = "sh"\nargs = ["-c", "touch started; exit 3"]\n'
    text += f'cwd = "{tmp_path}"\n'
    quiet = await findings(tmp_path, text)
    assert of(quiet, "servers") == [("ok", "not connected to: a; --connect does")]
    assert not (tmp_path / "started").exists()
    [(verdict, told)] = of(await findings(tmp_path, text, connect=True), "server a")
    assert verdict == "fail"
    assert told.startswith("it cannot be called: ")
    assert (tmp_path / "started").exists()


def test_a_port_that_is_taken_hinders_a_start_unless_the_daemon_has_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = settings_of(tmp_path, http={"port": taken.getsockname()[1]})
        assert looked_at.port(settings, running=False).verdict == "fail"
        assert looked_at.port(settings, running=True).verdict == "ok"
    assert looked_at.port(settings, running=True).verdict == "warn"
    assert looked_at.port(settings, running=False).verdict == "ok"


def test_a_state_directory_that_others_may_write_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert looked_at.state(folder).verdict == "ok"
    folder.mkdir(0o700)
    assert looked_at.state(folder).verdict == "ok"
    folder.chmod(0o777)
    assert looked_at.state(folder).verdict == "warn"
    (tmp_path / "file").write_text("", "utf-8")
    assert looked_at.state(tmp_path / "file").verdict == "fail"


def test_a_clock_that_is_behind_what_was_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text("", "utf-8")
    written = (tmp_path / "trace.jsonl").stat().st_mtime
    assert looked_at.clock(tmp_path, written + 1).verdict == "ok"
    assert looked_at.clock(tmp_path, written - 500).verdict == "warn"


def test_limits_of_the_machine_are_compared_with_what_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path, handlers={"paths": (tmp_path,)})
    assert looked_at.open_files(settings, 1_024).verdict == "warn"
    assert looked_at.open_files(settings, -1).verdict == "ok"
    monkeypatch.setattr(looked_at, "INOTIFY", tmp_path)
    for allowed, verdict in (("100", "ok"), ("2", "warn"), ("odd", "ok")):
        (tmp_path / "max_user_watches").write_text(allowed, "utf-8")
        [finding] = looked_at.watching(settings, tmp_path / "config.toml")
        assert finding.verdict == verdict
    off = settings_of(tmp_path, runtime={"watch": "off"})
    assert [each.verdict for each in looked_at.watching(off, tmp_path / "c")] == ["warn"]
    large = settings_of(tmp_path, trace={"path": tmp_path / "t", "max_bytes": 2**60})
    assert [each.verdict for each in looked_at.disks(large)] == ["warn"]


def test_extras_that_are_configured_have_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path, mqtt={"enabled": True})
    assert [each.verdict for each in looked_at.extras(settings)] == ["ok"]
    monkeypatch.setattr(looked_at, "is_installed", lambda _: False)
    [finding] = looked_at.extras(settings)
    assert (finding.verdict, finding.do) == (
        "fail",
        "pip install '.[mqtt]' in the source tree of session-runtime",
    )


def test_a_file_that_goes_while_the_clock_is_looked_at_hinders_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looked_at, "_some_files", lambda _: [tmp_path / "gone"])
    assert looked_at.clock(tmp_path, time.time()).verdict == "ok"


def test_each_disk_that_is_written_to_is_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("state", "traces", "audit"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(looked_at, "_device", lambda folder: folder == tmp_path / "traces")
    free = {tmp_path / "state": 10**12, tmp_path / "traces": 10**6}
    monkeypatch.setattr(looked_at, "_free", free.__getitem__)
    settings = settings_of(
        tmp_path,
        trace={"path": tmp_path / "traces/t.jsonl"},
        audit={"path": tmp_path / "audit"},
    )
    assert [(each.verdict, each.found) for each in looked_at.disks(settings)] == [
        ("ok", f"953674 MiB are free at {tmp_path / 'state'}"),
        ("fail", f"0 MiB are free at {tmp_path / 'traces'}"),
    ]


def test_a_trace_that_goes_to_no_plain_file_needs_no_disk(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, trace={"path": Path("/dev/null")}, audit={"enabled": False})
    assert [each.found.rpartition(" at ")[2] for each in looked_at.disks(settings)] == [
        str(tmp_path)
    ]


def test_spans_need_what_sends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(tmp_path, otel={"enabled": True})
    assert [each.verdict for each in looked_at.extras(settings)] == ["ok"]
    monkeypatch.setattr(looked_at, "is_installed", lambda module: "exporter" not in module)
    assert [each.verdict for each in looked_at.extras(settings)] == ["fail"]


MQTT = '[mqtt]\nenabled = true\nurl = "mqtt://127.0.0.1:{port}"\n'


async def test_a_broker_that_cannot_be_reached_is_told_with_its_key(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        reached = await findings(tmp_path, MQTT.format(port=port))
    gone = await findings(tmp_path, MQTT.format(port=port))
    assert of(reached, "mqtt") == [("ok", f"127.0.0.1:{port} can be reached")]
    [finding] = [each for each in gone if each.check == "mqtt"]
    assert finding.verdict == "fail"
    assert finding.found.startswith(f"127.0.0.1:{port} cannot be reached: ")
    assert finding.do == "start the broker, or mend mqtt.url; look at firewall and name server"


async def test_a_model_that_is_down_is_one_finding(tmp_path: Path) -> None:
    text = chat_profile("http://127.0.0.1:9/v1")
    [(verdict, found)] = of(await findings(tmp_path, text, connect=True), "model main")
    assert (verdict, found.partition(": ")[0]) == ("fail", "127.0.0.1:9 cannot be reached")


async def test_the_key_is_named_only_where_it_is_refused(tmp_path: Path) -> None:
    async with Upstream([RawReply((b"{}",), status=404)]) as upstream:
        found = await findings(tmp_path, chat_profile(upstream.base_url), connect=True)
    [failed] = [each for each in found if each.check == "model main" and each.verdict == "fail"]
    assert "api_key" not in failed.do
