"""Sessions are shared by those who need them, and connections are made for nobody else."""

import asyncio
import importlib.util
import sys
from pathlib import Path

import pytest

from session_runtime.app.reader import ConfigReader
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError
from session_runtime.mcp.pool import Held, ServerPool
from tests.mcp.links import Switchboard, definition, listing
from tests.mcp.peer import turns
from tests.support import write_config


def snapshot(folder: Path, text: str, **env: str) -> ConfigSnapshot:
    return ConfigReader(write_config(folder, text), env)()


def server(name: str, **settings: object) -> str:
    lines = [f"{key} = {value!r}" for key, value in {"command": "x", **settings}.items()]
    return "\n".join([f"[mcp.servers.{name}]", *lines, ""])


async def hold(pool: ServerPool, folder: Path, text: str, **env: str) -> Held:
    return await pool.hold(snapshot(folder, text, **env), {})


@pytest.mark.requirement("RTE-1")
async def test_an_edit_of_one_server_leaves_the_connections_of_all_others_alone(
    tmp_path: Path,
) -> None:
    board = Switchboard()
    pool = ServerPool(board)
    first = await hold(pool, tmp_path, server("a") + server("b") + server("c"))
    second = await hold(pool, tmp_path, server("a", args=["new"]) + server("b", naming="bare"))
    await pool.release(first.keys)
    assert [link.wanted.name for link in board.opened] == ["a", "b", "c", "a"]
    assert board.alive == ["a", "b"]
    assert second.sessions["b", ""] is first.sessions["b", ""]
    assert [session.wanted.name for session in second.new] == ["a"]
    await pool.release(second.keys)
    assert board.alive == []


@pytest.mark.requirement("RTE-2")
async def test_each_credential_has_a_session_of_its_own_and_a_rotated_secret_makes_a_new_one(
    tmp_path: Path,
) -> None:
    board = Switchboard()
    pool = ServerPool(board)
    text = server("a") + (
        '[mcp.servers.a.credentials.boss]\nroles = ["boss"]\nenv = {TOKEN = "env:BOSS_TOKEN"}\n'
        '[mcp.servers.a.credentials.staff]\nroles = ["staff"]\n'
    )
    first = await hold(pool, tmp_path, text, BOSS_TOKEN="one")
    second = await hold(pool, tmp_path, text, BOSS_TOKEN="two")
    assert [link.wanted.name for link in board.opened] == ["a", "a/boss", "a/staff", "a/boss"]
    assert not any("one" in key or "two" in key for key in (*first.keys, *second.keys))
    await pool.release([*first.keys, *second.keys])


async def test_where_only_credentials_count_the_server_gets_no_session_without_one(
    tmp_path: Path,
) -> None:
    board = Switchboard()
    pool = ServerPool(board)
    text = server("a", credentials_only=True).replace("True", "true")
    held = await hold(pool, tmp_path, text + '[mcp.servers.a.credentials.c]\nusers = ["ann"]\n')
    assert board.alive == ["a/c"]
    await pool.release(held.keys)


async def test_a_trial_connects_to_nobody_and_holds_what_is_there(tmp_path: Path) -> None:
    board = Switchboard()
    pool = ServerPool(board)
    first = await hold(pool, tmp_path, server("a"))
    trial = await pool.hold(snapshot(tmp_path, server("a") + server("b")), {}, trial=True)
    assert board.alive == ["a"]
    await pool.release(first.keys)
    assert board.alive == ["a"]
    await pool.release(trial.keys)
    assert board.alive == []


@pytest.mark.requirement("RTE-1")
async def test_waiting_ends_when_all_have_settled_and_in_time_if_one_never_does(
    tmp_path: Path,
) -> None:
    board = Switchboard({"a": listing("x"), "b": None})
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a") + server("b"))
    async with asyncio.timeout(20):
        await held.settled(60.0)
    more = await hold(pool, tmp_path, server("a") + server("hangs"))
    before = asyncio.all_tasks()
    await more.settled(0.01)
    assert asyncio.all_tasks() == before
    await pool.release([*held.keys, *more.keys])


@pytest.mark.requirement("RTE-1")
async def test_a_server_without_tools_after_the_wait_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    board = Switchboard({"a": listing("x")})
    pool = ServerPool(board)
    known = {("known", ""): listing("y")}
    text = server("a") + server("slow") + server("known")
    held = await pool.hold(snapshot(tmp_path, text), known)
    await held.settled(0.01)
    assert [record.getMessage() for record in caplog.records] == [
        "server slow has no tools yet, after mcp.wait_s = 0.01 s: they join when it lists them"
    ]
    await pool.release(held.keys)


@pytest.mark.requirement("RTE-4")
async def test_only_another_list_is_a_change(tmp_path: Path) -> None:
    board = Switchboard({"a": listing("x")})
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a"))
    assert pool.changed.is_set()
    for what, changed in [
        (listing("x"), False),
        (listing("x", "y"), True),
        (listing("x", definition("y", "Other words.")), True),
        (listing("x"), True),
    ]:
        pool.changed.clear()
        board.last("a").lists(what)
        assert pool.changed.is_set() is changed
    await pool.release(held.keys)


async def test_a_restart_makes_a_new_connection_and_keeps_the_list_until_that_has_one(
    tmp_path: Path,
) -> None:
    board = Switchboard({"a": listing("x")})
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a"))
    session = held.sessions["a", ""]
    board.answers["a"] = None
    await session.restart()
    await session.settled()
    assert [link.closed.is_set() for link in board.opened] == [True, False]
    assert session.listing is not None
    assert (session.listing.stale, [tool.name for tool in session.listing.tools]) == (True, ["x"])
    assert session.health.restarts == 1
    board.last("a").lists(listing("y"))
    assert [tool.name for tool in session.listing.tools] == ["y"]
    await pool.release(held.keys)
    assert board.alive == []


async def test_a_restart_goes_on_although_who_asked_for_it_is_gone(tmp_path: Path) -> None:
    board = Switchboard({"a": listing("x")})
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a"))
    old = board.last("a")
    old.close_gate.clear()
    asking = asyncio.create_task(held.sessions["a", ""].restart())
    await turns()
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
    old.close_gate.set()
    await held.sessions["a", ""].settled()
    assert held.sessions["a", ""].ready
    await pool.release(held.keys)
    assert board.alive == []


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize("restarting", [False, True])
async def test_a_session_ends_although_who_lets_it_go_is_cancelled(
    tmp_path: Path, restarting: bool
) -> None:
    board = Switchboard({"a": listing("x")})
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a"))
    old = board.last("a")
    old.close_gate.clear()
    tasks = [asyncio.create_task(held.sessions["a", ""].restart())] if restarting else []
    await turns()
    releasing = asyncio.create_task(pool.release(held.keys))
    await turns()
    releasing.cancel()
    await asyncio.wait([releasing])
    assert releasing.cancelled()
    old.close_gate.set()
    await asyncio.gather(*tasks)
    await held.sessions["a", ""].aclose()
    assert board.alive == []
    assert [link.started for link in board.opened] == [True, False][: len(board.opened)]


async def test_all_who_want_a_restart_meanwhile_share_one(tmp_path: Path) -> None:
    board = Switchboard({"a": listing("x")})
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a"))
    session = held.sessions["a", ""]
    await asyncio.gather(session.restart(), session.restart())
    await session.restart()
    assert (session.health.restarts, len(board.opened)) == (2, 3)
    await pool.release(held.keys)


async def test_a_session_that_was_let_go_is_not_restarted(tmp_path: Path) -> None:
    board = Switchboard()
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a"))
    await pool.release(held.keys)
    await held.sessions["a", ""].restart()
    assert board.alive == []


@pytest.mark.parametrize("trial", [False, True])
async def test_without_the_library_a_configured_server_is_a_fault_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trial: bool
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    pool = ServerPool()
    assert (await pool.hold(snapshot(tmp_path, ""), {})).keys == ()
    with pytest.raises(ConfigError) as caught:
        await pool.hold(snapshot(tmp_path, server("a")), {}, trial=trial)
    assert "pip install '.[mcp]' in the source tree" in str(caught.value)
    assert caught.value.problems[0].key == "mcp.servers"


async def test_who_has_no_servers_does_not_pay_for_the_library() -> None:
    look = "import sys, session_runtime.app.serve; print(sorted({'mcp', 'mcp_types'} & {*sys.modules}))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", look, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert told == b"[]\n"
