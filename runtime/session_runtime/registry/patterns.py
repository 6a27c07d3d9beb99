"""Patterns of names, as operators write them in lists; what a list means is its reader's business."""

import re
from collections.abc import Iterable
from fnmatch import translate

_WILDCARD = re.compile(r"[*?\[]")


def is_name(pattern: str) -> bool:
    """Whether a pattern stands for no other name than itself."""
    return not _WILDCARD.search(pattern)


class Patterns:
    """Names and patterns: ``*`` stands for any characters, ``?`` for one, ``[ab]`` for a or b.

    Capitals count, and ``*`` reaches over dots: ``files.*`` is everything in that group.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        given = tuple(patterns)
        self._exact = frozenset(given)
        wild = "|".join(translate(each) for each in given if not is_name(each))
        self._wild = re.compile(wild) if wild else None

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return name in self._exact or bool(self._wild and self._wild.match(name))
