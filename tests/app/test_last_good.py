"""Who may call, and what they may do, where an entry of the history takes the place of the file."""

import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from session_runtime.app.last_good import last_good
from session_runtime.app.reader import ConfigReader
from session_runtime.config.explain import explain
from session_runtime.config.history import History
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.errors import ConfigError
from session_runtime.registry.keyring import hash_of

pytestmark = [pytest.mark.requirement("REL-6"), pytest.mark.requirement("NET-2")]

BROKEN = "[ask]\nmax_steps = 0\n"


def key(name: str, *roles: str, of: str | None = None) -> str:
    return f'[http.keys.{name}]\nhash = "{hash_of(of or name)}"\nroles = {list(roles)}\n'


def started(
    folder: Path, kept: str, now: str | bytes | None, env: Mapping[str, str] | None = None
) -> ConfigSnapshot:
    """What a start takes that finds the file ``now``, with ``kept`` in the history."""
    history = History(folder / ".session-runtime" / "history")
    history.add(tomllib.loads(kept), "digest", datetime(2026, 3, 1, tzinfo=UTC))
    config = folder / "config.toml"
    if now is not None:
        config.write_bytes(now if isinstance(now, bytes) else now.encode())
    read = ConfigReader(config, env or {})
    with pytest.raises(ConfigError) as caught:
        read(must_exist=True)
    return last_good(read, caught.value)


def roles(snapshot: ConfigSnapshot) -> dict[str, tuple[str, ...]]:
    return {name: each.roles for name, each in snapshot.settings.http.keys.items()}


@pytest.mark.parametrize(
    "kept",
    ["", key("alice"), key("alice", "admin"), key("alice", of="old"), key("bob") + key("alice")],
    ids=["none", "others roles", "same", "another hash", "one more"],
)
def test_the_keys_are_those_of_the_file_with_their_roles(tmp_path: Path, kept: str) -> None:
    snapshot = started(
        tmp_path, f"[ask]\nmax_steps = 3\n{kept}", BROKEN + key("alice", "admin") + key("new")
    )
    assert snapshot.settings.ask.max_steps == 3
    assert roles(snapshot) == {"alice": ("admin",), "new": ()}
    assert snapshot.settings.http.keys["alice"].hash == hash_of("alice")


def test_a_key_that_was_demoted_in_the_file_stays_demoted(tmp_path: Path) -> None:
    snapshot = started(tmp_path, key("alice", "admin"), BROKEN + key("alice", "guest"))
    assert roles(snapshot) == {"alice": ("guest",)}


@pytest.mark.parametrize(
    "now",
    [
        f"[ask\n{key('alice')}",
        f"[ask\n{key('alice')}".encode("utf-16"),
        key("alice").encode() + b"# \xff\n",
    ],
    ids=["syntax", "utf-16", "no utf-8"],
)
def test_what_may_hold_keys_and_cannot_be_understood_lets_nobody_in_without_one(
    tmp_path: Path, now: str | bytes
) -> None:
    with pytest.raises(ConfigError) as caught:
        started(tmp_path, "[ask]\nmax_steps = 3\n", now)
    assert "entry 1 of the history has no key, but the file may: " in str(caught.value)


def test_a_file_that_cannot_be_read_may_hold_keys(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="has no key, but the file may"):
        started(tmp_path, "[ask]\nmax_steps = 3\n", None)


def test_what_cannot_be_understood_and_holds_no_key_is_no_reason_to_ask_for_one(
    tmp_path: Path,
) -> None:
    assert roles(started(tmp_path, "[ask]\nmax_steps = 3\n", "[ask\n")) == {}


def test_keys_of_a_variable_are_enough(tmp_path: Path) -> None:
    env = {"SESSION_RUNTIME__HTTP__KEYS__OPS__HASH": hash_of("ops")}
    assert list(roles(started(tmp_path, key("alice"), BROKEN, env))) == ["ops"]


def test_keys_that_are_at_fault_themselves_are_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        started(tmp_path, key("alice", "admin"), '[http.keys.alice]\nhash = "x"\n')
    assert [problem.key for problem in caught.value.problems] == ["http.keys.alice.hash"]


ALLOWED = '[access]\ndefault = "allow"\n'
DENIED = '[access]\ndefault = "deny"\n'


@pytest.mark.parametrize(
    ("kept", "now", "default"),
    [
        (ALLOWED, BROKEN + DENIED, "deny"),
        ("", BROKEN + DENIED, "deny"),
        (DENIED, BROKEN, "deny"),
        (DENIED, BROKEN + ALLOWED, "allow"),
        (DENIED, '[access]\ndefault = "alow"\n', "deny"),
    ],
    ids=["tightened", "new", "left out", "opened", "at fault"],
)
def test_what_callers_may_do_is_what_the_file_says_as_far_as_it_says_it(
    tmp_path: Path, kept: str, now: str, default: str
) -> None:
    assert started(tmp_path, kept, now).settings.access.default == default


def test_what_the_entry_says_is_told_with_the_entry_and_no_line_of_the_file(tmp_path: Path) -> None:
    secret = '[models.m]\nmodel = "m"\nbase_url = "http://h/v1"\napi_key = "SEK"\n'
    kept = f"[ask]\nmax_tool_calls = 3\n{secret}"
    snapshot = started(tmp_path, kept, BROKEN + secret)
    assert [(each.source, each.line, each.key) for each in snapshot.warnings] == [
        ("history entry 1", None, "models.m.api_key")
    ]
    told = {explain(snapshot, key).source for key in ("ask.max_tool_calls", "models.m.api_key")}
    assert told == {"history entry 1"}


def test_what_the_entry_lacks_by_now_is_told_with_the_entry(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        started(tmp_path, "[ask]\nprompt_file = 'gone.md'\n", BROKEN)
    assert [(each.source, each.line, each.key) for each in caught.value.problems] == [
        ("config.toml", 2, "ask.max_steps"),
        ("history entry 1", None, "ask.prompt_file"),
    ]
