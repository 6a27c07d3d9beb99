"""Starting with the last good configuration where the file cannot be used (REL-6)."""

import signal
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from session_runtime.config.history import History
from session_runtime.registry.keyring import hash_of
from tests.system.test_bad_input_at_start import start
from tests.system.test_daemon import Daemon, daemon

pytestmark = pytest.mark.requirement("REL-6")

GOOD = "[ask]\nmax_steps = 3\n"


def write(config: Path, text: str) -> None:
    config.write_text(text, "utf-8")


async def worked_once(config: Path, text: str = GOOD) -> None:
    """Let a daemon run with a good file, and end."""
    write(config, text)
    async with daemon(config) as running:
        running.process.send_signal(signal.SIGTERM)
        assert await running.process.wait() == 0


def kept(config: Path, text: str = GOOD) -> None:
    """Let the history hold what a daemon would have kept of a good file, without running one."""
    history = History(config.parent / ".session-runtime" / "history")
    history.add(tomllib.loads(text), "digest", datetime(2026, 3, 1, tzinfo=UTC))


async def explained(running: Daemon, key: str) -> object:
    async with httpx2.AsyncClient(trust_env=False) as client:
        response = await client.get(f"{running.url}/v1/config/explain", params={"key": key})
        return response.json()["value"]


async def scraped(running: Daemon) -> list[str]:
    async with httpx2.AsyncClient(trust_env=False) as client:
        return (await client.get(f"{running.url}/metrics")).text.splitlines()


@pytest.mark.parametrize(
    "broken",
    ["[ask\n", "[ask]\nmax_steps = 0\n", '[handlers]\npaths = ["gone"]\n', ""],
)
async def test_it_starts_with_what_worked_says_so_and_follows_the_file(
    tmp_path: Path, broken: str
) -> None:
    config = tmp_path / "config.toml"
    kept(config)
    write(config, broken)
    assert (await start(config))[0] == 78
    async with daemon(config, "--last-good") as running:
        assert await explained(running, "ask.max_steps") == 3
        assert "session_runtime_config_in_force 0" in await scraped(running)
        write(config, "[ask]\nmax_steps = 4\n")
        await running.logged("configuration applied (watch")
        assert await explained(running, "ask.max_steps") == 4
        assert "session_runtime_config_in_force 1" in await scraped(running)


async def test_it_starts_although_the_file_is_gone(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    await worked_once(config)
    config.unlink()
    async with daemon(config, "--last-good") as running:
        assert await explained(running, "ask.max_steps") == 3


async def test_what_is_wrong_is_logged_as_an_error(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    kept(config)
    write(config, "[ask]\nmax_steps = 0\n")
    async with daemon(config, "--last-good") as running:
        errors = [line for line in running.log.splitlines() if " error " in line]
    fault = "config.toml:2: ask.max_steps: must be at least 1 (given: 0)"
    assert len(errors) == 2
    assert f"with the last good configuration, as the file cannot be used: {fault}" in errors[0]
    assert f"configuration rejected (start, receipt 2): {fault}" in errors[1]


async def test_a_good_file_is_taken_as_it_is(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    kept(config)
    write(config, "[ask]\nmax_steps = 4\n")
    async with daemon(config, "--last-good") as running:
        assert await explained(running, "ask.max_steps") == 4
        assert "session_runtime_config_in_force 1" in await scraped(running)


async def test_without_a_history_the_fault_ends_the_start(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    write(config, "[ask\n")
    code, said = await start(config, "--last-good")
    assert code == 78
    assert "config.toml:1" in said
    assert "--last-good: the history is empty" in said


SECRET = '[models.main]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\napi_key = "{0}"\n'


async def test_a_secret_that_was_written_out_comes_from_the_file_or_not_at_all(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.toml"
    await worked_once(config, SECRET.format("hidden"))
    write(config, SECRET.format("hidden") + "[ask]\nmax_steps = 0\n")
    async with daemon(config, "--last-good") as running:
        assert await explained(running, "models.main.api_key") == "***"
    write(config, SECRET.format("hidden") + "[ask\n")
    code, said = await start(config, "--last-good")
    assert code == 78
    assert "models.main.api_key: entry 1 of the history had a secret here" in said
    assert "hidden" not in said


def key(name: str, digit: str) -> str:
    return f'[http.keys.{name}]\nhash = "sha256:{digit * 64}"\n'


@pytest.mark.requirement("NET-2")
async def test_a_key_that_was_removed_stays_out_and_what_is_in_force_is_told(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.toml"
    admin = f'[http.keys.me]\nhash = "{hash_of("k")}"\nroles = ["admin"]\n'
    await worked_once(config, admin + key("old", "b"))
    write(config, admin + "[ask]\nmax_steps = 0\n")
    async with daemon(config, "--last-good") as running, httpx2.AsyncClient(trust_env=False) as to:
        headers = {"authorization": "Bearer k"}
        page = (await to.get(f"{running.url}/v1/config", headers=headers)).json()
        status = (await to.get(f"{running.url}/v1/status", headers=headers)).json()
        log = running.log
    assert "the key of old is not in the file any more" in log
    assert not [each for each in page["keys"] if each["key"].startswith("http.keys.old")]
    assert (status["config"]["in_force"], status["config"]["entry"]) == (False, 2)


@pytest.mark.requirement("NET-2")
async def test_where_no_valid_key_would_be_left_nothing_is_started(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    kept(config, key("bot", "a"))
    write(config, "[ask]\nmax_steps = 0\n")
    code, said = await start(config, "--last-good")
    assert code == 78
    assert "the file has none of the keys that entry 1 of the history lets in (bot)" in said
