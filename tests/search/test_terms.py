import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.search.terms import Lexicon, analyse, is_camel, normalise, runs


def cut(text: str) -> list[str]:
    return [word for run in runs(normalise(text)) for word in analyse(run).words]


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("group.get_member-info", ["group", "get", "member", "info"]),
        ("getUserAvatar", ["get", "user", "avatar", "getuseravatar"]),
        ("MySQL", ["my", "sql", "mysql"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("base64", ["base", "64", "base64"]),
        ("OAuth2Token", ["o", "auth", "2", "token", "oauth2token"]),
        ("PDFs and URLs", ["pdf", "and", "url"]),
        ("WEATHER", ["weather"]),
        ("ＡＢＣ", ["abc"]),
        ("Straße", ["strasse"]),
        ("naïve", ["naïve"]),
        ("天气预报", ["天", "气", "预", "报", "天气", "气预", "预报"]),
        ("执行Python代码", ["执", "行", "执行", "python", "代", "码", "代码"]),
        ("", []),
        ("?! -_.", []),
    ],
)
def test_text_is_cut_by_one_rule(text: str, words: list[str]) -> None:
    assert cut(text) == words


@pytest.mark.requirement("TS-8")
@given(st.text())
def test_any_text_is_cut_into_case_folded_words_that_can_be_encoded(text: str) -> None:
    for word in cut(text):
        assert word == word.casefold()
        assert word.encode("utf-8")


@pytest.mark.requirement("TS-8")
@given(st.text())
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@pytest.mark.requirement("TS-8")
def test_upper_case_inside_a_word_is_camel_case_and_a_plural_acronym_is_not() -> None:
    words = ["getUser", "MySQL", "iPhone", "PDFs", "URL", "Weather", "base64", "天气"]
    assert [word for word in words if is_camel(word)] == ["getUser", "MySQL", "iPhone"]


def test_whoever_reads_while_another_thread_learns_finds_all_that_a_number_stands_for() -> None:
    class Numbers(dict[str, int]):
        def setdefault(self, key: str, default: int = 0) -> int:  # type: ignore[override]
            assert key in self or len(lexicon.hashes) > default
            return super().setdefault(key, default)

    lexicon = Lexicon()
    lexicon.numbers = Numbers()
    lexicon.learn(["river", "rivers", "天气", "level"])
    assert len(lexicon.hashes) == len(lexicon.numbers)


def test_threads_that_learn_at_once_give_each_word_a_number_of_its_own() -> None:
    lexicon = Lexicon()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    texts = [
        [f"{stem}{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)] for stem in "pqrs"
    ]
    try:
        with ThreadPoolExecutor(len(texts)) as threads:
            found = list(threads.map(lexicon.learn, texts))
    finally:
        sys.setswitchinterval(interval)
    numbers = [number for learned in found for number in learned]
    assert sorted(numbers) == list(range(4 * 600)) == sorted(lexicon.words.values())
    assert len(lexicon.terms) == len(lexicon.words)
    assert len(lexicon.hashes) == len(lexicon.numbers) == len(set(lexicon.numbers.values()))
