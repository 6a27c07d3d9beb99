"""Weighs what in a question may be the value of a parameter that is no free text; ``phrases`` does text.

Strengths go from 0 to 100; above 55 the question states the value, below it is only the best guess.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from session_runtime.models.offline.leaves import Leaf
from session_runtime.models.offline.phrases import Phrase, fits_length, phrases_for
from session_runtime.models.offline.spans import Question, Span
from session_runtime.models.offline.words import is_general, is_han, stem, words

_NEGATION: Final = re.compile(
    r"\b(?:no|not|without|never|don't|dont|do not|exclude|excluding|skip|disable|off)\W+(?:\w+\W+)?$",
    re.IGNORECASE,
)
_SWITCH_WORDS: Final = frozenset(
    stem(word) for word in "include is has have enable use with only allow should show".split()
)
_WORD: Final = re.compile(r"[A-Za-z]+|[\u4e00-\u9fff]+")
_AND: Final = re.compile(r"[,;、]\s*(?:and\s+|&\s*)?|\s+(?:and|&|or)\s+|\s*[和与]\s*")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A value, how strongly the question suggests it, and the piece of the question that does."""

    value: Any
    strength: int
    start: int
    end: int

    def overlaps(self, other: "Evidence") -> bool:
        """Whether both rest on the same words."""
        return self.start < other.end and other.start < self.end


def evidence_for(question: Question, leaf: Leaf) -> Iterator[Evidence]:
    """All values that the question may state for a leaf, in no particular order."""
    match leaf.kind:
        case "choice":
            return _choices(question, leaf)
        case "number" | "integer":
            return _numbers(question, leaf)
        case "boolean":
            return _switches(question, leaf)
        case "string":
            return map(_of_phrase, phrases_for(question, leaf))
        case "array":
            return _lists(question, leaf)
        case "object" | "frame":
            return iter(())
        case _:
            assert_never(leaf.kind)


def _of_phrase(phrase: Phrase) -> Evidence:
    return Evidence(phrase.text, phrase.strength, phrase.start, phrase.end)


def _choices(question: Question, leaf: Leaf) -> Iterator[Evidence]:
    """Values that are mentioned, in any case and number; the longest mention is the strongest."""
    if len(leaf.choices) == 1 and leaf.required:
        yield Evidence(leaf.choices[0], 100, 0, 0)
    for value in leaf.choices:
        for start, end in _mentions(question.text, str(value)):
            yield Evidence(value, 80 + min(end - start, 15), start, end)


def _mentions(text: str, value: str) -> Iterator[tuple[int, int]]:
    if is_han(value):
        yield from (match.span() for match in re.finditer(re.escape(value), text))
        return
    wanted = words(value)
    tokens = [
        (m.start(), m.end(), stem(m[0].casefold())) for m in re.finditer(r"[A-Za-z]+|\d+", text)
    ]
    for at in range(len(tokens) - len(wanted) + 1):
        if wanted and [token[2] for token in tokens[at : at + len(wanted)]] == wanted:
            yield tokens[at][0], tokens[at + len(wanted) - 1][1]


def _switches(question: Question, leaf: Leaf) -> Iterator[Evidence]:
    """A boolean whose distinctive words are mentioned is true, or false behind a negation."""
    wanted = [word for word in leaf.name if word not in _SWITCH_WORDS]
    for start, end in _mentions(question.text, " ".join(wanted)):
        said = re.match(
            r"\W{0,3}(?:is |to )?(true|false|yes|no|on|off)\b", question.text[end:], re.I
        )
        if said:
            value = said[1].casefold() in {"true", "yes", "on"}
            yield Evidence(value, 95, start, end + said.end())
        else:
            yield Evidence(not _NEGATION.search(question.text[:start]), 75, start, end)


def _numbers(question: Question, leaf: Leaf) -> Iterator[Evidence]:
    for span in question.of("number"):
        value = _number(span, leaf)
        if value is not None:
            yield Evidence(value, _nearness(question, span, leaf), span.start, span.end)


def _number(span: Span, leaf: Leaf) -> int | float | None:
    """The number in the form that the schema takes; None if it does not take it."""
    value = span.number
    if value is None:
        return None
    if span.percent and leaf.schema.get("maximum") == 1:
        value = value / 100
    if leaf.kind == "integer":
        if value != int(value):
            return None
        value = int(value)
    return value if _within(value, leaf) else None


def _within(value: int | float, leaf: Leaf) -> bool:
    schema = leaf.schema
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")
    return (
        low <= value <= high
        and (above is None or value > above)
        and (below is None or value < below)
        and (step is None or value % step == 0)
    )


def _nearness(question: Question, span: Span, leaf: Leaf) -> int:
    """How near the number stands to a word of the parameter's name, else of its description."""
    if span.percent and {"percent", "percentag", "rat"} & set(leaf.name):
        return 85
    name = [word for word in leaf.name if not is_general(word)] or list(leaf.name)
    before, after = _around(question.text, span)
    for strength, wanted in ((84, name), (68, [w for w in leaf.hints if not is_general(w)])):
        near = [at for at, word in enumerate(after) if word in wanted]
        near += [at for at, word in enumerate(before) if word in wanted]
        if near:
            return strength - 2 * min(near)
    return 50


def _around(text: str, span: Span) -> tuple[list[str], list[str]]:
    """The two words before and the three behind a number, the nearest first."""
    before = [word for piece in _WORD.findall(text[: span.start])[-2:] for word in words(piece)]
    after = [word for piece in _WORD.findall(text[span.end :])[:3] for word in words(piece)]
    return before[::-1], after


def _lists(question: Question, leaf: Leaf) -> Iterator[Evidence]:
    """An array takes all its items from one stretch of the question."""
    item = leaf.item
    if item is None or item.kind in {"array", "object"}:
        return
    if item.kind == "string":
        for phrase in phrases_for(question, leaf):
            for stretch in _split(question, phrase):
                if all(fits_length(value, item) for value in stretch.value):
                    yield stretch
        return
    found = sorted(evidence_for(question, item), key=lambda one: one.start)
    if found:
        values = _distinct(one.value for one in found)
        strength = max(one.strength for one in found)
        yield Evidence(values, max(strength, 56), found[0].start, found[-1].end)


def _split(question: Question, phrase: Phrase) -> Iterator[Evidence]:
    """One phrase and what is joined to it by commas or "and": quotes after quotes, names after names."""
    kinds = [span.kind for span in question.spans if span.start == phrase.start]
    values, end = [phrase.text], phrase.end
    while kinds and (joint := _AND.match(question.text, end)):
        following = question.at(joint.end(), kinds[0])
        if following is None:
            break
        values.append(following.text)
        end = following.end
    yield Evidence(_distinct(values), phrase.strength + len(values) - 1, phrase.start, end)


def _distinct(values: Iterable[Any]) -> Sequence[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
