"""Secrets in the arguments of a command are known by their words, and shown nowhere."""

import subprocess
import sys
import tomllib

import pytest

from session_runtime.config.arguments import masked_arguments, secret_positions
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
        ("--password=SEK;a=SEK, SEK", "--password=***"),
        ("API_KEY=SEK", "API_KEY=***"),
        ("Authorization: Bearer SEK", "Authorization: ***"),
        ("Cookie: a=SEK; b=SEK", "Cookie: ***"),
        ("X-Api-Key:SEK", "X-Api-Key:***"),
        ("Bearer SEK", "Bearer ***"),
        ('{"user": "a", "token": "SEK"}', '{"user": "a", "token": "***"}'),
        ('{"token":"SE\\"K","host":"h"}', '{"token":"***","host":"h"}'),
        ('{"tokens": ["SEK", "SEK"], "host": "h"}', '{"tokens": ***'),
        ('{"token": 5, "key": SEK}', '{"token": 5, "key": ***}'),
        ("host=h password=SEK dbname=a", "host=h password=*** dbname=a"),
        ("Server=h;Password=SEK SEK;Database=d", "Server=h;Password=***;Database=d"),
        ("curl -H 'X-Key: SEK' http://h/a", "curl -H 'X-Key: ***' http://h/a"),
        ("exec prog --token SEK --password SEK -v", "exec prog --token *** --password *** -v"),
        ("prog --auth Bearer SEK --url http://h", "prog --auth *** --url http://h"),
        ("AUTH=Basic SEK==", "AUTH=***"),
        ("AUTH=Basic SEK=;host=h", "AUTH=***;host=h"),
        ("TOKEN=SEK SEK:SEK http://h/a", "TOKEN=*** http://h/a"),
        ("prog --token=SEK --url=http://h/a", "prog --token=*** --url=http://h/a"),
        ("exec prog --token --verbose", "exec prog --token --verbose"),
        ("import x; token='SEK'; x(1)", "import x; token='***'; x(1)"),
        ("postgres://u:SEK@h/db", "postgres://***@h/db"),
        ("https://SEK@h/", "https://***@h/"),
        ("--url=https://h/?sig=SEK&page=5", "--url=https://h/?sig=***&page=5"),
        ("https://h/#access_token=SEK", "https://h/#access_token=***"),
        ("https://h/?key=SEK#token=SEK", "https://h/?key=***#token=***"),
        ("http://a/?key=SEK http://b/?key=SEK", "http://a/?key=*** http://b/?key=***"),
        ("--auth-url=https://h/SEK", "--auth-url=***"),
        ("password=http://SEK;host=h;token=SEK", "password=***;host=h;token=***"),
        ("--token=", "--token="),
        ("https://h/mcp?page=5", "https://h/mcp?page=5"),
        ("C:\\tools", "C:\\tools"),
    ],
)
def test_of_an_argument_the_values_that_its_words_call_secret_are_masked_once(
    argument: str, shown: str
) -> None:
    assert masked_arguments([argument]) == masked_arguments([shown]) == [shown]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--api-key", "SEK", "x"], ["--api-key", "***", "x"]),
        (["--api-key", "-SEK"], ["--api-key", "***"]),
        (["--auth", "--token", "SEK"], ["--auth", "--token", "***"]),
        (["-auth", "-token", "SEK"], ["-auth", "-token", "***"]),
        (["--token", "-x-token-SEK"], ["--token", "***"]),
        (["--pwd", "SEK"], ["--pwd", "***"]),
        (["--token=SEK", "x"], ["--token=***", "x"]),
        (["token", "x"], ["token", "x"]),
        (["--token", ["SEK"], 5], ["--token", "***", 5]),
    ],
)
def test_what_follows_a_flag_that_sounds_secret_is_masked(
    arguments: list[object], shown: list[object]
) -> None:
    assert masked_arguments(arguments) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["--max-tokens=100000", "--max_output_tokens", "100000", "--tokenizer=cl100k"],
        ["--sort-key=name", "--primary-key", "id", "--keyboard", "us", "--author=ann"],
        ["--token-file", "/run/token", "--password-stdin", "x", "--auth-type=basic"],
        ["--auth", "off", "--token-ttl=3600", "--session=none", '{"auth": true}'],
    ],
    ids=["tokens", "keys", "files", "switches"],
)
def test_what_only_sounds_secret_is_neither_masked_nor_warned_about(arguments: list[str]) -> None:
    assert masked_arguments(arguments) == arguments
    assert secret_positions([*arguments, "--token", "SEK"]) == (len(arguments) + 2,)


LONG = """
import resource
from session_runtime.config.arguments import masked_arguments
from session_runtime.trace.parts import address_parts

resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
for part in ("x", "a:", "://", "a://", "-", "--a ", " ", "token=,", '"', "'a':", "a ", "h?a=&", "{", "\\\\"):
    for start in ("", "token=", 'token="', "a token=", "https://h?", "https://"):
        text = start + part * (300_000 if part == "x" else 20_000)
        masked_arguments([text])
        list(address_parts(text))
"""


def test_the_work_grows_with_the_length_of_an_argument_and_no_faster() -> None:
    """Work that grew with its square would take minutes of the processor."""
    assert subprocess.run([sys.executable, "-c", LONG], check=False).returncode == 0


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
def test_the_history_holds_none_and_gets_back_those_of_now() -> None:
    now = tomllib.loads(server(SECRETS))
    kept = masked(now)
    assert kept["mcp"] == {"servers": {"shop": {"command": "shop", "args": SHOWN}}}
    assert with_secrets(kept, now) == (now, ())


@pytest.mark.requirement("CFG-4b")
@pytest.mark.parametrize(
    ("worked", "now", "back"),
    [
        ('"--token", "A", "/data"', '"/more", "--token", "B"', ["--token", "B", "/data"]),
        ('"--max-tokens=5", "--token=A"', '"--token=B"', ["--max-tokens=5", "--token=B"]),
        ('"-k=***"', '"x"', ["-k=***"]),
        (
            '"--token", "A", "--url=http://u:p@h/a"',
            '"--url=http://u:q@h/a", "--token", "B"',
            ["--token", "B", "--url=http://u:q@h/a"],
        ),
        (
            '"--key", "A", "--key", "B", "-v"',
            '"--key", "C", "--key", "D"',
            ["--key", "C", "--key", "D", "-v"],
        ),
        ('"--token", "A"', '"--tokens", "B"', None),
        ('"--key", "A", "-v"', '"--key", "C", "--key", "D"', None),
        ('"--token", "A", "--url=http://h"', '"--token", "B", "--url=http://other"', None),
        ('"host=h password=A"', '"host=other password=B"', None),
        ('"--token", "A"', "", None),
    ],
)
def test_a_secret_comes_back_to_the_same_flag_of_the_same_command_and_host(
    worked: str, now: str, back: list[str] | None
) -> None:
    data, missing = with_secrets(
        masked(tomllib.loads(server(f"[{worked}]"))), tomllib.loads(server(f"[{now}]"))
    )
    assert missing == (() if back is not None else (("mcp", "servers", "shop", "args"),))
    if back is not None:
        assert data == {"mcp": {"servers": {"shop": {"command": "shop", "args": back}}}}


@pytest.mark.requirement("CFG-4b")
def test_no_secret_goes_to_another_command() -> None:
    now = tomllib.loads(server('["--token", "B"]'))
    kept = masked(tomllib.loads(server('["--token", "A"]').replace('"shop"', '"old"', 1)))
    assert with_secrets(kept, now) == (kept, (("mcp", "servers", "shop", "args"),))
