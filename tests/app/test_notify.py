"""What the service manager is told, as it hears it on its socket."""

import logging
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from session_runtime.app.notify import STATUS_CHARS, ServiceManager

pytestmark = pytest.mark.requirement("REL-8b")


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(address)
        sock.settimeout(5)
        yield sock


def heard(sock: socket.socket) -> str:
    return sock.recv(4096).decode()


def test_each_state_is_one_message(tmp_path: Path) -> None:
    with listening(str(tmp_path / "notify")) as sock:
        manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        manager.ready("serving")
        manager.reloading()
        manager.status("three tools")
        manager.alive()
        manager.stopping(2.5, "one ask runs")
        said = [heard(sock) for _ in range(5)]
    reloading = said.pop(1)
    assert said == [
        "READY=1\nSTATUS=serving",
        "STATUS=three tools",
        "WATCHDOG=1",
        "STOPPING=1\nEXTEND_TIMEOUT_USEC=2500000\nSTATUS=one ask runs",
    ]
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", reloading)


def test_a_name_with_an_at_sign_is_an_abstract_one() -> None:
    name = f"session-runtime-test-{os.getpid()}"
    with listening(f"\0{name}") as sock:
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).alive()
        assert heard(sock) == "WATCHDOG=1"


def test_a_status_is_one_short_line_that_says_nothing_else(tmp_path: Path) -> None:
    with listening(str(tmp_path / "notify")) as sock:
        manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        manager.status("broken:\nREADY=1\x1b[2J " + "x" * 9_999)
        said = heard(sock)
    assert said.startswith("STATUS=broken: READY=1\\x1b[2J xxx")
    assert len(said) < STATUS_CHARS + 20


@pytest.mark.parametrize("address", [None, "", "vsock:2:1", "relative"])
def test_without_a_socket_of_ours_nothing_is_sent(
    address: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    env = {"WATCHDOG_USEC": "1000000"} | ({} if address is None else {"NOTIFY_SOCKET": address})
    manager = ServiceManager(env)
    manager.ready("serving")
    assert manager.watchdog_s is None
    assert bool(caplog.records) is bool(address)


def test_a_manager_that_cannot_be_reached_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    address = str(tmp_path / "notify")
    manager = ServiceManager({"NOTIFY_SOCKET": address})
    manager.alive()
    manager.alive()
    assert len(caplog.records) == 1
    with listening(address) as sock:
        manager.alive()
        assert heard(sock) == "WATCHDOG=1"


@pytest.mark.parametrize(
    ("usec", "process", "seconds"),
    [
        ("3000000", "", 3.0),
        ("3000000", str(os.getpid()), 3.0),
        ("3000000", "1", None),
        ("0", "", None),
        ("soon", "", None),
        ("", "", None),
    ],
)
def test_a_sign_of_life_is_given_to_who_waits_for_ours(
    usec: str, process: str, seconds: float | None
) -> None:
    env = {"NOTIFY_SOCKET": "@nobody", "WATCHDOG_USEC": usec, "WATCHDOG_PID": process}
    assert ServiceManager(env).watchdog_s == seconds
