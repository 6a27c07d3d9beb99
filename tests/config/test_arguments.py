"""Secrets in the arguments of a command are known by their words, and shown nowhere."""

import tomllib
from collections.abc import Sequence

import pytest

from session_runtime.config.arguments import are_secret, masked_argument, secret_positions
from session_runtime.config.changes import changes
from session_runtime.config.explain import explain
from session_runtime.config.written import masked, with_secrets
from session_runtime.errors import ConfigError
from tests.config.conftest import Reader

pytestmark = pytest.mark.requirement("CFG-4")

SECRETS = '["--api-key", "SEK1", "--token=SEK2", "--url=http://u:SEK3@h/?key=SEK4&page=5", "-v"]'
SHOWN = ["--api-key", "***", "--token=***", "--url=http://***@h/?key=***&page=5", "-v"]
KEY = "mcp.servers.shop.args"


def server(args: str) -> str:
    return f'[mcp.servers.shop]\ncommand = "shop"\nargs = {args}\n'


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("--verbose", "--verbose"),
        ("--x-token=SEK", "--x-token=***"),
        ("API_KEY=SEK", "API_KEY=***"),
        ("Authorization: Bearer SEK", "Authorization: ***"),
        ("X-Api-Key:SEK", "X-Api-Key:***"),
        ("Bearer SEK", "Bearer ***"),
        ('{"user": "a", "token": "SEK"}', '{"user": "a", "token": ***'),
        ("postgres://u:SEK@h/db", "postgres://***@h/db"),
        ("https://SEK@h/", "https://***@h/"),
        ("--url=https://h/?sig=SEK&page=5", "--url=https://h/?sig=***&page=5"),
        ("https://h/#access_token=SEK", "https://h/#access_token=***"),
        ("http://a/?key=SEK http://b/?key=SEK", "http://a/?key=*** http://b/?key=***"),
        ("--auth-url=https://h/SEK", "--auth-url=***"),
        ("--token=", "--token="),
        ("https://h/mcp?page=5", "https://h/mcp?page=5"),
        ("C:\\tools", "C:\\tools"),
    ],
)
def test_of_an_argument_what_its_words_call_secret_is_masked_once(
    argument: str, shown: str
) -> None:
    assert masked_argument(argument) == masked_argument(shown) == shown


@pytest.mark.parametrize(
    ("arguments", "secret"),
    [
        (("--api-key", "SEK", "x"), (False, True, False)),
        (("--api-key", "-SEK"), (False, True)),
        (("--auth", "--token", "SEK"), (False, False, True)),
        (("--token=a", "x"), (False, False)),
        (("token", "x"), (False, False)),
    ],
)
def test_what_follows_a_flag_that_sounds_secret_is_secret(
    arguments: Sequence[str], secret: tuple[bool, ...]
) -> None:
    assert are_secret(arguments) == secret


def test_numbers_and_switches_are_masked_but_earn_no_warning() -> None:
    assert secret_positions(["--max-tokens=100", "--auth", "off", "--token", "SEK"]) == (5,)
    assert masked_argument("--max-tokens=100") == "--max-tokens=***"


def test_arguments_are_shown_without_their_secrets_and_warned_about(read: Reader) -> None:
    old, new = read(server('["-v"]')), read(server(SECRETS))
    assert explain(new, KEY).value == SHOWN
    assert [change.new for change in changes(old, new)] == [SHOWN]
    assert "SEK" not in repr((old.digest, changes(old, new), new.warnings))
    assert [str(each).partition(" holds ")[0] for each in new.warnings] == [
        f"config.toml:3: {KEY}: item {number}" for number in (2, 3, 4)
    ]
    [rotated] = changes(new, read(server(SECRETS.replace("SEK1", "SEK9"))))
    assert (rotated.old, rotated.new) == (SHOWN, SHOWN)


@pytest.mark.parametrize("key", ["args", "arg"])
def test_a_fault_of_arguments_shows_none_of_them(read: Reader, key: str) -> None:
    text = server('"--token=SEK"').replace("args", key)
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert "(given: a text)" in str(caught.value)
    assert "SEK" not in str(caught.value)


@pytest.mark.requirement("CFG-4b")
def test_the_history_holds_none_and_gets_back_those_of_now_if_all_else_is_the_same() -> None:
    now = tomllib.loads(server(SECRETS))
    kept = masked(now)
    assert kept["mcp"] == {"servers": {"shop": {"command": "shop", "args": SHOWN}}}
    assert with_secrets(kept, now) == (now, ())
    elsewhere = tomllib.loads(server(SECRETS.replace("@h/", "@other/")))
    data, missing = with_secrets(kept, elsewhere)
    assert set(missing) == {("mcp", "servers", "shop", "args")}
    assert data == kept
