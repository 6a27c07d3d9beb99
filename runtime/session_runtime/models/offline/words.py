"""Which words a text consists of, brought to one form so that questions and tools can be compared."""

import re
from collections.abc import Iterable
from typing import Final

from session_runtime.normal_form import normal

_TOKEN: Final = re.compile(r"[a-z]+|\d+|[\u4e00-\u9fff]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]")

# Words that say nothing about the subject of a question.
STOP_WORDS: Final = frozenset(
    """a an and any are as at be been by can could did do does for from had has have he her his how i
    if in into is it its just let like may me my no not now of on or our out over please shall she
    should so some than that the their them then there these they this those to under up us was we
    were what when where which who whom whose why will with would you your
    什么 怎么 么样 怎样 多少 可以 请问 一下 帮我 我的 你的 是什 是多 我想 需要 现在 这个 那个
    有没 没有""".split()
)
# Words that many tools share: they count, but a tool does not fit because of one of them.
_GENERAL_WORDS: Final = (
    "add ask call change check create delete do fetch find get give list look make name number open "
    "put read remove run search see send set show start stop take tell tool update use value want "
    "write"
).split()


def words(text: str) -> list[str]:
    """Words in order: stems of Latin words, numbers, pairs of Han characters."""
    found: list[str] = []
    for token in _TOKEN.findall(_plain(text)):
        found.extend(_pairs(token) if _HAN.match(token) else [stem(token)])
    return found


def meaningful(found: Iterable[str]) -> list[str]:
    """The words that say something about the subject, in order."""
    return [word for word in found if word not in _STOP_STEMS]


def keywords(text: str) -> str:
    """The meaningful words of a text as they were written, joined by blanks."""
    tokens = _TOKEN.findall(_plain(text))
    return " ".join(token for token in tokens if stem(token) not in _STOP_STEMS)


def is_general(word: str) -> bool:
    """Whether many tools have this word."""
    return word in _GENERAL_STEMS or word.isdigit()


def is_han(text: str) -> bool:
    """Whether a text holds Chinese characters."""
    return _HAN.search(text) is not None


def stem(word: str) -> str:
    """A rough English stem: plural, -ed, -ing and a final e are cut off."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            word = _single(word.removesuffix(ending))
            break
    return word.removesuffix("e") if len(word) > 3 else word


def _single(word: str) -> str:
    """``runn`` -> ``run``: English doubles a consonant before an ending."""
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


def _plain(text: str) -> str:
    return _HUMP.sub(" ", normal("NFKC", text)).casefold()


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


_STOP_STEMS: Final = frozenset(stem(word) for word in STOP_WORDS)
_GENERAL_STEMS: Final = frozenset(stem(word) for word in _GENERAL_WORDS)
