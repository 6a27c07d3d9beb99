"""The section [callbacks]: addresses and secrets, and that neither is told in clear (SEC-3, CFG-4)."""

import pytest

from session_runtime.config.explain import show
from tests.config.conftest import Reader

SECRET = f"whsec_{'QUJD' * 10}"
URL = 'url = "https://bot.example/r?token=abc"\n'
BOT = f'[callbacks.bot]\n{URL}secret = "env:BOT_SECRET"\n'


@pytest.mark.requirement("SEC-3b")
def test_an_address_has_a_secret_and_neither_is_shown(read: Reader) -> None:
    snapshot = read(BOT, env={"BOT_SECRET": SECRET})
    bot = snapshot.settings.callbacks["bot"]
    assert (bot.url, bot.principals, bot.timeout_s, bot.tries) == (
        "https://bot.example/r?token=abc",
        ("*",),
        10.0,
        6,
    )
    assert bot.secret.get_secret_value() == SECRET
    told = f"{bot!r}{[*show(snapshot)]}"
    assert "abc" not in told
    assert SECRET[6:] not in told


@pytest.mark.requirement("SEC-3b")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[callbacks.b]\n{URL}", "callbacks.b.secret: is missing"),
        ('[callbacks.b]\nsecret = "env:BOT_SECRET"\n', "callbacks.b.url: is missing"),
        (BOT.replace("https://", "ftp://"), "callbacks.bot.url: is no address"),
        (BOT.replace("https://", "https://me:pw@"), "must not hold a name, a password"),
        (BOT.replace("bot.example", ""), "callbacks.bot.url: is no address"),
        (BOT.replace("bot.example", "bot..example"), "callbacks.bot.url: is no address"),
        (BOT.replace("bot.example", "b" * 64), "callbacks.bot.url: is no address"),
        (BOT.replace("/r?", "/ r?"), "callbacks.bot.url: is no address"),
        (f"{BOT}tries = 21\n", "callbacks.bot.tries"),
        (BOT.replace("env:BOT_SECRET", "short"), "callbacks.bot.secret: must be"),
    ],
)
def test_what_cannot_be_used_is_refused(read: Reader, text: str, said: str) -> None:
    problems = read.problems(text, env={"BOT_SECRET": SECRET})
    assert any(said in problem for problem in problems), problems
    assert "pw" not in str(problems)


def test_a_secret_of_the_wrong_shape_is_refused_and_not_repeated(read: Reader) -> None:
    [problem] = read.problems(BOT, env={"BOT_SECRET": "hunter2-hunter2"})
    assert problem.startswith('config.toml:3: callbacks.bot.secret: must be "whsec_"')
    assert "hunter2" not in problem


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("table", "key"),
    [
        (f"[callbacks.bot]\n{URL}", "callbacks.bot.secret"),
        (f'[http.keys.a]\nhash = "sha256:{"0" * 64}"\n[mqtt.signers.a]\n', "mqtt.signers.a.secret"),
    ],
)
@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("env:ABSENT", "the variable ABSENT is not set"),
        ("env:PATH", "env:PATH is not allowed by runtime.secret_sources"),
        ("file:/absent/s", "file:/absent/s is not allowed by runtime.secret_sources"),
    ],
)
def test_of_a_required_secret_that_cannot_be_read_only_the_reason_is_told(
    read: Reader, table: str, key: str, place: str, why: str
) -> None:
    sources = 'runtime.secret_sources = ["env:A*"]\n'
    [problem] = read.problems(f'{sources}{table}secret = "{place}"\n')
    assert f": {key}: {why}" in problem
    assert "is missing" not in problem


def test_a_secret_that_is_empty_is_said_to_be_so(read: Reader) -> None:
    [problem] = read.problems(f'[callbacks.bot]\n{URL}secret = ""\n')
    assert problem.endswith('is missing: give it as "env:NAME" or "file:/path" (given: "")')
