"""The keys of the HTTP door: what a section may say, and that no message repeats a key (NET-2)."""

import pytest

from session_runtime.config.changes import changes
from session_runtime.config.explain import show
from session_runtime.config.restart import held_back
from session_runtime.registry.keyring import hash_of
from tests.config.conftest import Reader

KEY = f"sr_{'bot':x<43}"
HASH = hash_of(KEY)
NO_LIMITS = dict.fromkeys(
    (
        *("asks_per_minute", "tokens_per_day", "user_asks_per_minute", "user_tokens_per_day"),
        "user_max_concurrent_asks",
    )
)
BOT = f'[http.keys.bot]\nhash = "{HASH}"\n'
EVERYWHERE = '[http]\nhost = "0.0.0.0"\n'
NEEDS_KEYS = (
    "http.host: callers need no key, so only a loopback address is allowed: 127.0.0.1, ::1 or"
    " localhost; for others, set keys: session-runtime keys add NAME"
)


@pytest.mark.requirement("INT-1")
def test_a_key_has_a_hash_and_what_its_owner_is(read: Reader) -> None:
    more = 'roles = ["staff", "admin"]\nact_for = ["tg-*"]\nchannel = "tg"\ngroup = "g"\n'
    key = read(BOT + more).settings.http.keys["bot"]
    assert key.model_dump() == {
        "hash": HASH,
        "roles": ("staff", "admin"),
        "act_for": ("tg-*",),
        "channel": "tg",
        "group": "g",
        "max_concurrent_asks": None,
        **NO_LIMITS,
    }
    assert read(BOT).settings.http.keys["bot"].model_dump() == {
        "hash": HASH,
        "roles": (),
        "act_for": (),
        "channel": None,
        "group": None,
        "max_concurrent_asks": None,
        **NO_LIMITS,
    }


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize(
    "wrong",
    [
        KEY,
        "hunter2-hunter2",
        HASH.upper(),
        HASH[:-1],
        f"{HASH}0",
        f"{HASH}\\n",
        HASH.removeprefix("sha256:"),
        HASH.replace("sha256", "sha512"),
        "",
    ],
)
def test_what_is_no_hash_is_refused_and_not_repeated(read: Reader, wrong: str) -> None:
    [problem] = read.problems(f'[http.keys.bot]\nhash = "{wrong}"\n')
    assert problem == (
        'config.toml:2: http.keys.bot.hash: must be "sha256:" and 64 hexadecimal digits in small'
        " letters; what was given is not repeated, as it may be the key itself: session-runtime keys"
        " add NAME makes both"
    )


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("written", ["hsah", "key", "hashes", "secret", "value"])
def test_a_key_under_a_wrong_name_is_not_repeated(read: Reader, written: str) -> None:
    problems = read.problems(f'{BOT}{written} = "{KEY}"\n')
    assert problems
    assert KEY[3:] not in str(problems)


@pytest.mark.requirement("CFG-1")
def test_all_faults_of_a_key_are_told_at_once(read: Reader) -> None:
    text = '[http.keys.bot]\nroles = "admin"\nact_for = [""]\nchannel = ""\n'
    assert read.problems(text) == [
        "config.toml:1: http.keys.bot.hash: is missing: session-runtime keys add NAME makes a key"
        " and its hash",
        'config.toml:2: http.keys.bot.roles: must be a list (given: "admin")',
        'config.toml:3: http.keys.bot.act_for: item 1 must not be empty (given: "")',
        'config.toml:4: http.keys.bot.channel: must not be empty (given: "")',
    ]


@pytest.mark.requirement("NET-2b")
def test_a_key_belongs_to_one_name(read: Reader) -> None:
    [problem] = read.problems(BOT + BOT.replace("bot", "shop"))
    assert problem == (
        "config.toml:1: http.keys: bot and shop have the same hash: give each a key of its own"
    )


@pytest.mark.parametrize("name", ["bot", "shop-1", "ann@example.org", "机器人", "x" * 64])
def test_names_of_principals_are_plain(read: Reader, name: str) -> None:
    assert list(read(BOT.replace("bot", f'"{name}"')).settings.http.keys) == [name]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a\\nb", "x" * 65])
def test_other_names_are_refused(read: Reader, name: str) -> None:
    [problem] = read.problems(BOT.replace("bot", f'"{name}"'))
    assert "cannot own a key: use up to 64 letters, digits, _, -, . and @" in problem


@pytest.mark.requirement("NET-2b")
def test_no_key_is_for_the_name_of_those_who_need_none(read: Reader) -> None:
    [problem] = read.problems(BOT.replace("bot", "local"))
    assert "cannot own a key: that is the name of who needs none, on this machine" in problem


@pytest.mark.requirement("NET-2b")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "bot.example.org"])
def test_with_a_key_the_door_may_listen_anywhere(read: Reader, host: str) -> None:
    text = f'[http]\nhost = "{host}"\n'
    assert read(text + BOT).settings.http.host == host
    assert [NEEDS_KEYS in problem for problem in read.problems(text)] == [True]


@pytest.mark.requirement("NET-2b")
def test_a_key_that_is_no_good_is_told_without_a_word_about_the_host(read: Reader) -> None:
    [problem] = read.problems(f'{EVERYWHERE}[http.keys.bot]\nhash = "x"\n')
    assert "http.keys.bot.hash" in problem


@pytest.mark.requirement("NET-2b")
def test_a_host_for_everybody_given_elsewhere_needs_keys_too(read: Reader) -> None:
    env = {"SESSION_RUNTIME__HTTP__HOST": "0.0.0.0"}
    assert read(BOT, env=env).settings.http.host == "0.0.0.0"
    [problem] = read.problems("#", env=env)
    assert problem.startswith(f"env SESSION_RUNTIME__HTTP__HOST: {NEEDS_KEYS}")
    [problem] = read.problems("#", explicit={"http.host": "0.0.0.0"})
    assert NEEDS_KEYS in problem


@pytest.mark.requirement("NET-2b")
def test_the_last_key_stays_until_a_restart_and_with_it_the_host_for_everybody(
    read: Reader,
) -> None:
    running = read(EVERYWHERE + BOT)
    kept, waiting = held_back(running, read("[http]\nport = 8040\n"))
    assert kept.settings.http == running.settings.http
    assert [change.key for change in waiting] == ["http.host", "http.keys"]
    assert NEEDS_KEYS in read.problems(EVERYWHERE)[0]


@pytest.mark.requirement("NET-2b")
def test_keys_act_on_the_next_ask(read: Reader) -> None:
    before, after = read(BOT), read(BOT + BOT.replace("bot", "shop").replace(HASH, hash_of("x")))
    assert {(change.key, change.acts) for change in changes(before, after)} == {
        ("http.keys.shop.hash", "next ask")
    }
    assert before.digest != after.digest
    kept, waiting = held_back(before, after)
    assert (kept.settings.http, waiting) == (after.settings.http, ())


def test_a_hash_is_no_secret_and_is_shown(read: Reader) -> None:
    shown = {each.key: each.value for each in show(read(BOT))}
    assert shown["http.keys.bot.hash"] == HASH
