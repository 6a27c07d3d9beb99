"""Queries as a hurried person types them: one letter wrong, the same one in every run."""

import random
import re
import string
from collections.abc import Callable

WORD = re.compile(r"[A-Za-z]{4,}")


def with_typo(query: str) -> str:
    """The query with one letter left out, added, changed or swapped in one word of four or more.

    Queries without such a word (Chinese ones, as a rule) stay as they are.
    """
    words = list(WORD.finditer(query))
    if not words:
        return query
    chance = random.Random(query)  # seeded by the text itself
    word = chance.choice(words)
    mistake = chance.choice(MISTAKES)
    at = chance.randrange(len(word[0]) - 1)
    return query[: word.start()] + mistake(word[0], at, chance) + query[word.end() :]


def _left_out(word: str, at: int, chance: random.Random) -> str:
    del chance
    return word[:at] + word[at + 1 :]


def _added(word: str, at: int, chance: random.Random) -> str:
    return word[:at] + chance.choice(string.ascii_lowercase) + word[at:]


def _changed(word: str, at: int, chance: random.Random) -> str:
    others = string.ascii_lowercase.replace(word[at].lower(), "")
    return word[:at] + chance.choice(others) + word[at + 1 :]


def _swapped(word: str, at: int, chance: random.Random) -> str:
    del chance
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


MISTAKES: tuple[Callable[[str, int, random.Random], str], ...] = (
    _left_out,
    _added,
    _changed,
    _swapped,
)
