"""How a command reaches the daemon of a state directory, and what it is told if it cannot."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from session_runtime.app.serve import locked
from session_runtime.client.control import ControlClient
from session_runtime.errors import (
    PermanentError,
    RequestError,
    SessionRuntimeError,
    TransientError,
)
from session_runtime.wire.control import SOCKET
from tests.control_daemon import serving_socket
from tests.transports.stub import StubDoor

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def test_a_request_reaches_the_daemon_and_gives_its_json(tmp_path: Path) -> None:
    client = ControlClient(tmp_path)
    async with serving_socket(StubDoor(), tmp_path, asyncio.Event()):
        assert await asyncio.to_thread(client.request, "GET", "/v1/status") == {"state": "ready"}
        body = {"pattern": "a.*", "reason": None}
        made = await asyncio.to_thread(client.request, "POST", "/v1/revocations", body)
    assert (made["number"], made["pattern"], made["by"]) == (1, "a.*", "local")


@pytest.mark.parametrize("left_behind", [False, True])
def test_without_a_daemon_the_way_out_is_named(tmp_path: Path, left_behind: bool) -> None:
    if left_behind:  # by a daemon that was killed
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(tmp_path / SOCKET))
    with pytest.raises(TransientError) as refused:
        ControlClient(tmp_path).request("GET", "/v1/status")
    assert (refused.value.code, str(refused.value)) == (
        "daemon.not_running",
        f"no daemon runs with runtime.state_dir {tmp_path}: start it, or name its configuration by"
        " --config; if it began with another folder, name that by --state-dir",
    )


def test_a_daemon_whose_socket_is_gone_is_not_taken_for_none(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(TransientError) as refused:
        ControlClient(tmp_path).request("GET", "/v1/status")
    assert (refused.value.code, str(refused.value)) == (
        "daemon.not_running",
        f"a daemon runs with runtime.state_dir {tmp_path}, but its control.sock there is gone or"
        " another one by now: restart it",
    )


async def test_a_refusal_of_the_daemon_keeps_its_code_and_words(tmp_path: Path) -> None:
    async with serving_socket(StubDoor(), tmp_path, asyncio.Event()):
        with pytest.raises(RequestError, match="no ask 'ask_1' is running") as refused:
            await asyncio.to_thread(ControlClient(tmp_path).request, "GET", "/v1/asks/ask_1")
    assert refused.value.code == "request.unknown_ask"


def answering(status: str, body: str) -> Answer:
    """A server that answers everything alike."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write((head + body).encode())
        writer.close()

    return answer


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def hanging_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


FAULT = '{"error": {"code": "some.code", "message": "m", "retryable": %s}}'


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (answering("500 No", FAULT % "true"), TransientError, "some.code"),
        (answering("500 No", FAULT % "false"), PermanentError, "some.code"),
        (answering("409 No", FAULT % "false"), RequestError, "some.code"),
        (answering("200 OK", "hello"), PermanentError, "daemon.bad_answer"),
        (answering("200 OK", "[]"), PermanentError, "daemon.bad_answer"),
        (answering("500 No", "{}"), PermanentError, "daemon.bad_answer"),
        (hanging_up, TransientError, "daemon.no_answer"),
        (silence, TransientError, "daemon.no_answer"),
    ],
)
async def test_what_else_the_daemon_may_do_is_told_by_class_and_code(
    tmp_path: Path, answer: Answer, kind: type[SessionRuntimeError], code: str
) -> None:
    server = await asyncio.start_unix_server(answer, tmp_path / SOCKET)
    client = ControlClient(tmp_path, timeout_s=0.2)
    async with server:
        with pytest.raises(kind) as told:
            await asyncio.to_thread(client.request, "GET", "/v1/status")
    assert told.value.code == code


def test_a_socket_of_another_user_is_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(self: socket.socket, address: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    with pytest.raises(PermanentError, match="run the command as the user of the daemon") as told:
        ControlClient(tmp_path).request("GET", "/v1/status")
    assert told.value.code == "daemon.forbidden"


async def test_what_may_take_long_is_waited_for_by_who_says_so(tmp_path: Path) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline() == b"POST /slow HTTP/1.1\r\n":
            asked.set()
            await go_on.wait()
            await answering("200 OK", "{}")(reader, writer)
        else:
            await silence(reader, writer)

    server = await asyncio.start_unix_server(slow, tmp_path / SOCKET)
    client = ControlClient(tmp_path, timeout_s=0.05)
    async with server, asyncio.TaskGroup() as group:
        waiting = group.create_task(
            asyncio.to_thread(client.request, "POST", "/slow", patient=True)
        )
        await asked.wait()
        with pytest.raises(TransientError, match="did not answer GET /v1/status"):
            await asyncio.to_thread(client.request, "GET", "/v1/status")
        go_on.set()
    assert waiting.result() == {}
