"""Decides which tool fits a question, by the words they share; how it is called is ``arguments``'s."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from session_runtime.models.offline.arguments import Filled, fill
from session_runtime.models.offline.spans import Question, analyse
from session_runtime.models.offline.words import is_general, meaningful, words
from session_runtime.registry.spec import ToolSpec
from session_runtime.types import JsonObject

CALCULATION_WORDS: Final = "calculate math evaluate expression"
_TIME_WORDS: Final = "current time date"
_ASKS_FOR_TIME: Final = re.compile("几点|几号|时间|日期|星期几")
_NAME_WEIGHT: Final = 3.0
_OTHER_WEIGHT: Final = 1.0
_GENERAL_SHARE: Final = 0.3
_WHOLE_NAME: Final = 1.0
_JOINT: Final = re.compile(r"[.?!;。？！；]+\s*|,?\s+(?:and|then|also)\s+|，\s*(?:然后|再|并且)?")
_MAX_PARTS: Final = 5


@dataclass(frozen=True, slots=True)
class Terms:
    """The words a tool goes by: those of its name, and those of its description, hints, parameters."""

    name: frozenset[str]
    other: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool that fits, how well, and its arguments as far as the question gives them."""

    spec: ToolSpec
    score: float
    filled: Filled


def terms_of(spec: ToolSpec, name: str) -> Terms:
    """The words of one tool that is known by ``name``."""
    texts = [spec.description, *spec.search_hints, *spec.aliases, *_property_names(spec.parameters)]
    return Terms(
        frozenset(words(name)), frozenset(meaningful(word for t in texts for word in words(t)))
    )


def asked_words(question: Question) -> frozenset[str]:
    """The words that a tool for this question may have.

    A formula asks for something that calculates, and Chinese words for the time find an English name.
    """
    text = question.text
    for span in reversed(list(question.of("quoted"))):
        text = f"{text[: span.start]} {text[span.end :]}"
    found = set(meaningful(words(text)))
    if any(question.of("math")):
        found.update(words(CALCULATION_WORDS))
    if _ASKS_FOR_TIME.search(text):
        found.update(words(_TIME_WORDS))
    return frozenset(found)


def score(asked: frozenset[str], terms: Terms) -> float:
    """How much a tool shares with a question; 0 if it does not fit.

    It fits if a word of its name is asked for, or two words of its other texts, not counting words
    that many tools have.
    """
    in_name, elsewhere = asked & terms.name, (asked & terms.other) - terms.name
    telling = [word for word in elsewhere if not is_general(word)]
    if all(is_general(word) for word in in_name) and len(telling) < 2:
        return 0.0
    total = _NAME_WEIGHT * _count(in_name) + _OTHER_WEIGHT * _count(elsewhere)
    return total + (_WHOLE_NAME if terms.name and terms.name <= asked else 0.0)


def best(question: Question, tools: Iterable[tuple[ToolSpec, Terms]]) -> Choice | None:
    """The tool that fits best; among equals one whose arguments are complete, else the first."""
    asked = asked_words(question)
    scored = [(score(asked, terms), spec) for spec, terms in tools]
    highest = max((points for points, _ in scored), default=0.0)
    if highest == 0.0:
        return None
    choices = [
        Choice(spec, points, fill(question, spec.parameters))
        for points, spec in scored
        if points == highest
    ]
    return min(choices, key=lambda choice: len(choice.filled.missing) > 0)


def best_names(question: Question, names: Iterable[str]) -> tuple[float, list[str]]:
    """The highest score that a bare name reaches, and all names that reach it; 0 and none if none."""
    asked = asked_words(question)
    scored = [(score(asked, Terms(frozenset(words(name)))), name) for name in names]
    highest = max((points for points, _ in scored), default=0.0)
    return highest, [name for points, name in scored if points == highest and points > 0.0]


def parts_of(question: Question) -> Sequence[Question]:
    """The questions that one text may consist of, cut at sentence ends and at "and"."""
    cuts = [
        match.span()
        for match in _JOINT.finditer(question.text)
        if not any(span.overlaps(*match.span()) for span in question.spans)
    ]
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(question.text)]
    parts = [question.text[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return [analyse(part) for part in parts if part][:_MAX_PARTS]


def _count(found: Iterable[str]) -> float:
    return sum(_GENERAL_SHARE if is_general(word) else 1.0 for word in found)


def _property_names(schema: JsonObject) -> list[str]:
    properties = schema.get("properties")
    return [str(name) for name in properties] if properties else []
