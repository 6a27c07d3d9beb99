"""The image: what is built into it, as whom it runs, and that signals reach the daemon."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from session_runtime.cli import main, serve
from session_runtime.config.http import HttpSettings
from tests.deploy.files import ROOT, UID, compose, environment, instructions, last

OF_US = ("SESSION_RUNTIME_CONFIG", "SESSION_RUNTIME__RUNTIME__STATE_DIR")


@pytest.mark.requirement("REL-8a")
def test_the_daemon_is_started_without_a_shell_that_would_take_its_signals() -> None:
    [program] = last("ENTRYPOINT").words()
    name, *options = last("CMD").words()
    assert program == "/opt/session-runtime/bin/session-runtime"
    assert name == serve.command.name
    with serve.command.make_context(name, options) as context:
        assert context.params["as_json"] is True
    assert last("STOPSIGNAL").text == "SIGTERM"


def test_it_runs_as_a_number_that_is_not_root_and_owns_nothing_but_its_state() -> None:
    assert last("USER").text == f"{UID}:{UID}"
    owned = [each.text for each in instructions() if f"--chown={UID}:{UID}" in each.text]
    assert owned == [f"--from=build --chown={UID}:{UID} /state /var/lib/session-runtime"]
    assert environment()["SESSION_RUNTIME__RUNTIME__STATE_DIR"] == "/var/lib/session-runtime"


def test_its_variables_are_those_that_the_daemon_reads() -> None:
    ours = [name for name in environment() if name.startswith("SESSION_RUNTIME")]
    assert sorted(ours) == sorted(OF_US)


def test_every_command_is_a_list_so_that_nothing_depends_on_a_shell() -> None:
    for each in instructions():
        if each.name in ("RUN", "CMD", "ENTRYPOINT"):
            assert each.words()


def test_its_base_is_a_choice_with_a_tag_and_names_no_registry() -> None:
    [base] = [each.text for each in instructions() if each.name == "ARG"]
    name, _, image = base.partition("=")
    assert (name, image.count(":"), "/" in image) == ("BASE", 1, False)
    froms = [each.text for each in instructions() if each.name == "FROM"]
    assert froms == ["${BASE} AS build", "${BASE}"]


def test_it_is_healthy_when_the_daemon_says_that_it_lives() -> None:
    command = last("HEALTHCHECK").text.partition("CMD ")[2]
    assert f"http://127.0.0.1:{HttpSettings().port}/healthz" in command
    assert last("EXPOSE").text == str(HttpSettings().port)


@pytest.mark.parametrize("where", ["image", "compose"])
def test_a_proxy_of_the_environment_is_not_asked_how_the_daemon_is(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "image":
        command = json.loads(last("HEALTHCHECK").text.partition("CMD ")[2])
    else:
        command = compose()["services"]["daemon"]["healthcheck"]["test"][1:]
    code = command[-1]

    async def asked() -> bytes:
        seen = asyncio.get_running_loop().create_future()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.set_result(await reader.readline())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
            program = code.replace(":8040/", f":{port}/")
            probe = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
            assert await probe.wait() == 0
        line: bytes = await seen
        return line

    assert asyncio.run(asked()).startswith(b"GET /")


def test_what_is_copied_is_enough_to_build_the_wheel(tmp_path: Path) -> None:
    ignored = (ROOT / "docs/deploy/Containerfile.dockerignore").read_text("utf-8").split()
    copies = [each.text.split()[:-1] for each in instructions() if each.name == "COPY"]
    sources = [name for names in copies for name in names if not names[0].startswith("--")]
    assert {f"!{name}" for name in sources} == {each for each in ignored if each[0] == "!"}
    for name in sources:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "out"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    assert len(list((tmp_path / "out").glob("*.whl"))) == 1


def test_the_command_of_the_image_is_the_one_of_the_package(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*last("CMD").words(), "--help"]) == 0
    assert "Run the daemon until SIGTERM" in capsys.readouterr().out
