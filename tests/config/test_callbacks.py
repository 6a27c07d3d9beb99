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
