"""What the daemon takes hold of before it serves."""

import asyncio
import socket
from pathlib import Path

import pytest

from session_runtime.app.serve import (
    _give_signs_of_life,
    _reload_when_told,
    _StoppedError,
    _unless,
    bound,
    locked,
)
from session_runtime.app.signals import Signals
from session_runtime.config.receipt import Receipt, Trigger
from session_runtime.errors import StartError
from session_runtime.wire.control import LOCK


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


@pytest.mark.requirement("REL-5")
def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "other").touch()
    (tmp_path / "state" / LOCK).symlink_to(tmp_path / "other")
    with pytest.raises(StartError) as refused, locked(tmp_path / "state"):
        raise AssertionError("it was locked")
    assert str(refused.value) == (
        f"cannot use runtime.state_dir {tmp_path / 'state'}: {LOCK} is a symbolic link, which is not"
        " followed in the state folder; remove it, or put what it leads to in its place, or set"
        " runtime.state_dir to another folder"
    )


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


@pytest.mark.requirement("REL-8")
async def test_what_takes_long_to_open_is_given_up_once_the_process_is_told_to_stop() -> None:
    stop, begun, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def opening() -> None:
        async with _unless(stop):
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                closed.set()

    task = asyncio.create_task(opening())
    await begun.wait()
    stop.set()
    with pytest.raises(_StoppedError):
        await task
    assert closed.is_set()


async def test_what_is_open_before_that_goes_on_and_its_own_faults_are_its_own() -> None:
    stop = asyncio.Event()
    async with _unless(stop):
        pass
    stop.set()
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with _unless(asyncio.Event()):
            raise TimeoutError


class Alive:
    """A runtime whose edits are noticed now and then, and a service manager that counts."""

    watchdog_s = 0.0002

    def __init__(self, *watched: bool) -> None:
        self._watched = list(watched)
        self.signs = 0
        self.asked = asyncio.Event()

    @property
    def watched(self) -> bool:
        if len(self._watched) == 1:
            self.asked.set()
        return self._watched.pop(0)

    def alive(self) -> None:
        self.signs += 1


@pytest.mark.requirement("REL-8b")
async def test_no_sign_of_life_is_given_while_edits_are_not_noticed() -> None:
    one = Alive(True, False, False, True, False)
    giving = asyncio.create_task(_give_signs_of_life(one, one))  # type: ignore[arg-type]
    await one.asked.wait()
    giving.cancel()
    assert one.signs == 2


@pytest.mark.requirement("REL-8b")
async def test_nobody_is_told_who_does_not_wait_for_it() -> None:
    one = Alive()
    one.watchdog_s = None  # type: ignore[assignment]
    await _give_signs_of_life(one, one)  # type: ignore[arg-type]
    assert one.signs == 0


class Faulty:
    """A configuration whose first reload fails by a fault of ours, and a service manager that notes."""

    def __init__(self) -> None:
        self.live = self
        self.said: asyncio.Queue[str] = asyncio.Queue()
        self.attempts = 0

    async def reload(self, trigger: Trigger) -> Receipt:
        self.attempts += 1
        if self.attempts == 1:
            raise RuntimeError("a fault of ours")
        return Receipt(2, 0.0, trigger, "unchanged", "d", 1, 0.0)

    def reloading(self) -> None:
        self.said.put_nowait("reloading")

    def ready(self, status: str) -> None:
        self.said.put_nowait(status)


@pytest.mark.requirement("REL-8b")
async def test_a_fault_during_a_reload_by_signal_does_not_end_what_serves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, signals = Faulty(), Signals()
    working = asyncio.create_task(
        _reload_when_told(one, signals, one)  # type: ignore[arg-type]
    )
    said = []
    for _ in range(2):
        signals.reload.set()
        said += [await one.said.get(), await one.said.get()]
    working.cancel()
    assert said == [
        *("reloading", "reloading failed; the log has the reason"),
        *("reloading", "configuration unchanged (signal, receipt 2)"),
    ]
    assert "a fault of ours" in caplog.text
