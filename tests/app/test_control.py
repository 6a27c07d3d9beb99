"""The socket in the state directory: whose it is, and what may be in its place."""

import os
import socket
import stat
from pathlib import Path

import pytest

from session_runtime.app.control import LONGEST, control_socket
from session_runtime.errors import StartError
from session_runtime.wire.control import SOCKET

pytestmark = pytest.mark.requirement("NET-4")


def test_nobody_else_may_open_it_and_it_is_gone_afterwards(tmp_path: Path) -> None:
    before = os.umask(0)  # everything that is made is open to all, unless somebody takes care
    try:
        with control_socket(tmp_path) as sock, socket.socket(socket.AF_UNIX) as client:
            mode = (tmp_path / SOCKET).stat().st_mode
            client.connect(sock.getsockname())
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    assert sock.fileno() == -1
    assert list(tmp_path.iterdir()) == []


def test_it_is_private_from_the_moment_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []

    class Watched(socket.socket):
        def bind(self, address: object) -> None:
            super().bind(address)  # type: ignore[arg-type]
            modes.append(stat.S_IMODE((tmp_path / SOCKET).stat().st_mode))

    monkeypatch.setattr(socket, "socket", Watched)
    with control_socket(tmp_path):
        assert modes == [0o600]


def test_the_socket_of_a_daemon_that_died_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / SOCKET))
    with control_socket(tmp_path) as sock, socket.socket(socket.AF_UNIX) as client:
        client.connect(sock.getsockname())


def test_what_is_no_socket_stays_and_is_named(tmp_path: Path) -> None:
    (tmp_path / SOCKET).write_text("mine", "utf-8")
    with pytest.raises(StartError, match=r"control\.sock: something else is there; move it away"):
        with control_socket(tmp_path):
            raise AssertionError("it was opened")
    assert (tmp_path / SOCKET).read_text("utf-8") == "mine"


def test_a_path_too_long_for_a_socket_is_told_with_the_way_out(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * LONGEST)
    deep.mkdir()
    with pytest.raises(StartError, match=r"set runtime\.state_dir") as caught:
        with control_socket(deep):
            raise AssertionError("it was opened")
    assert caught.value.code == "start.control_socket"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="No such file"), control_socket(tmp_path / "gone"):
        raise AssertionError("it was opened")
