"""What the daemon takes hold of before it serves."""

import socket
from pathlib import Path

import pytest

from session_runtime.app.serve import bound, locked
from session_runtime.errors import StartError


@pytest.mark.requirement("INT-1")
def test_a_state_folder_belongs_to_one_daemon_until_it_lets_go(tmp_path: Path) -> None:
    with locked(tmp_path / "state"):
        with pytest.raises(StartError, match="another daemon uses"), locked(tmp_path / "state"):
            raise AssertionError("it was locked twice")
    with locked(tmp_path / "state"):
        pass


@pytest.mark.requirement("INT-1")
def test_a_state_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot use"), locked(tmp_path / "file" / "state"):
        raise AssertionError("it was made")


@pytest.mark.requirement("NET-2a")
def test_a_port_in_use_is_named_with_the_way_out() -> None:
    with bound("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with (
            pytest.raises(StartError, match=rf"127\.0\.0\.1:{port}.*set http\.port"),
            bound("127.0.0.1", port),
        ):
            raise AssertionError("it was bound twice")
    assert first.fileno() == -1


@pytest.mark.requirement("NET-2a")
def test_a_bound_socket_listens() -> None:
    with bound("127.0.0.1", 0) as sock, socket.create_connection(sock.getsockname()) as client:
        assert client.getpeername() == sock.getsockname()
