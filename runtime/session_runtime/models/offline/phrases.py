"""Weighs which words of a question may be the value of a text parameter (see ``evidence`` for strengths).

Quotes come first; then what stands behind the parameter's own name or behind the preposition that
goes with such a parameter (``to`` before a recipient, ``in`` before a place); then names; at last,
for a query or a message, the question itself.
"""

import re
import zoneinfo
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from session_runtime.models.offline.leaves import Leaf
from session_runtime.models.offline.spans import Kind, Question, Span
from session_runtime.models.offline.words import STOP_WORDS, stem, words


@dataclass(frozen=True, slots=True)
class Phrase:
    """A text, how strongly it is suggested, and where in the question it stands."""

    text: str
    strength: int
    start: int
    end: int


def _table(rows: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType(
        {stem(word): tuple(row.split("|")) for row, line in rows.items() for word in line.split()}
    )


def _kinds_by_word(rows: Mapping[str, tuple[Kind, ...]]) -> Mapping[str, tuple[Kind, ...]]:
    return MappingProxyType(
        {stem(word): kinds for line, kinds in rows.items() for word in line.split()}
    )


# Prepositions, and the words in parameter names that they go with; the first that fits counts.
_PREPOSITIONS: Final = _table(
    {
        "from|从": "from origin source sender departure",
        "to|for|给|到|去": "to recipient receiver destination dest target assignee email contact person"
        " user channel",
        "in|at|near|around|of|for|on|to|在|到|去": "city location place town country region area address"
        " restaurant venue hotel store shop site room district folder directory",
        "called|named|titled|叫|名为": "title name label nickname",
        "by": "author artist creator writer composer",
        "about|on|关于": "topic subject theme",
        "into|in|to|成|为": "language lang locale currency unit format",
        "on|for|by": "date day deadline",
        "at|by": "time hour",
        "with|和": "participant attendee guest companion",
    }
)
_FREE_TEXT: Final = frozenset(
    stem(word)
    for word in "text message body content note comment query question prompt input description q"
    " search keyword term sentence phrase task request instruction statement".split()
)
_FORMULA: Final = frozenset(
    stem(word) for word in "expression formula equation calculation".split()
)
_EXACT_KINDS: Final[Mapping[str, tuple[Kind, ...]]] = MappingProxyType(
    {
        "date": ("date",),
        "date-time": ("datetime",),
        "time": ("clock",),
        "email": ("email",),
        "uri": ("url",),
        "url": ("url",),
    }
)
_NAMED_KINDS: Final = _kinds_by_word(
    {
        "date day when start end": ("datetime", "date"),
        "time clock hour": ("datetime", "clock"),
        "timezone zone tz": ("zone",),
        "email mail recipient to": ("email",),
        "url uri link website": ("url",),
        "id code sku reference order ticket flight": ("code",),
        "path file filename folder host domain": ("path",),
        "phone": ("number",),
    }
)
_VALUE_KINDS: Final[tuple[Kind, ...]] = (
    "quoted", "email", "url", "zone", "datetime", "date", "clock", "path", "proper", "code"
)  # fmt: skip
_RELATIVE_DAY: Final = re.compile(
    r"\b(?:today|tomorrow|tonight|yesterday"
    r"|(?:(?:next|this|on) )?(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b|[今明后昨]天",
    re.IGNORECASE,
)
_ARTICLE: Final = re.compile(r"(?:(?:the|a|an|my|our)\b ?)?(?:city of |town of )?", re.IGNORECASE)
_PLAIN_RUN: Final = re.compile(r"[a-z][a-z'-]*(?: [a-z][a-z'-]*){0,3}")
_HAN_RUN: Final = re.compile(r"[\u4e00-\u9fff]{1,8}?(?=[的，。？！、：,?!:]|[发说有到去]|$)")
_BEHIND_NUMBER: Final = re.compile(r" ?([A-Za-z°]+)")
_JOINT: Final = re.compile(r" ?[:=：] ?| (?:(?:is|named|called|number|no\.?) )?#?")
_CLAUSE: Final = re.compile(r"[^,;，；]+")
_HAN_OWNER: Final = re.compile(
    r"(?:^|[，。！？ ]|查一下|请问|告诉我|看看|知道)([\u4e00-\u9fff]{2,4}?)的"
)
_REST: Final = re.compile(r"[^.?!。？！]+")
_SAYING: Final = re.compile(r"(?:\b(?:saying|says|that says|say)\b[:,]?|[:：]) ?", re.IGNORECASE)
_ABOUT: Final = re.compile(r"\b(?:for|about|on|up|regarding)\b |关于|搜索|查找|搜一下|查一下", re.I)


def phrases_for(question: Question, leaf: Leaf) -> Iterator[Phrase]:
    """All texts that the question may state for a leaf, in no particular order."""
    exact = _EXACT_KINDS.get(str(leaf.schema.get("format", "")))
    if exact is not None:
        yield from (_phrase(span, 85) for span in question.of(*exact))
        return
    for phrase in _all_phrases(question, leaf):
        if fits_length(phrase.text, leaf):
            yield phrase


def _all_phrases(question: Question, leaf: Leaf) -> Iterator[Phrase]:
    yield from _behind_own_name(question, leaf)
    yield from _of_named_kind(question, leaf)
    yield from _behind_preposition(question, leaf)
    if _has(leaf, _FORMULA):
        yield from (_phrase(span, 78) for span in question.of("math"))
    if _has(leaf, _FREE_TEXT):
        yield from _free_text(question, leaf)
    else:
        yield from (_phrase(span, 60) for span in question.of("quoted"))
        yield from (_phrase(span, 42) for span in question.of("proper"))
        yield from (_phrase(span, 40) for span in question.of("code", "math"))
        yield from (Phrase(m[1], 41, *m.span(1)) for m in _HAN_OWNER.finditer(question.text))


def _has(leaf: Leaf, vocabulary: frozenset[str]) -> bool:
    """Whether a parameter is of some sort, by its own name or else by the first words about it."""
    return bool(vocabulary & {*leaf.name, *leaf.hints[:4]})


def _phrase(span: Span, strength: int) -> Phrase:
    return Phrase(span.text, strength, span.start, span.end)


def fits_length(text: str, leaf: Leaf) -> bool:
    """Whether a schema takes a text of this length; empty text is no value."""
    low, high = leaf.schema.get("minLength", 0), leaf.schema.get("maxLength", len(text))
    return bool(text) and low <= len(text) <= high


def _behind_own_name(question: Question, leaf: Leaf) -> Iterator[Phrase]:
    """``city Paris``, ``restaurant 'Blue Lagoon'``, ``title: anything up to a comma``."""
    text = question.text
    for match in re.finditer(r"[A-Za-z_]+", text):
        if not set(words(match[0])) & set(leaf.name):
            continue
        joint = _JOINT.match(text, match.end())
        if joint is None:
            continue
        explicit = joint[0].strip().startswith((":", "=", "："))
        span = question.at(joint.end(), *_VALUE_KINDS, "number")
        if span and not (explicit and span.kind == "proper"):
            yield _phrase(span, 92 if explicit else 82)
        elif explicit and (rest := _CLAUSE.match(text, joint.end())):
            yield Phrase(rest[0].strip().rstrip(".?!"), 88, *rest.span())
        elif run := _plain_run(text, joint.end()):
            yield Phrase(run, 46, joint.end(), joint.end() + len(run))


def _of_named_kind(question: Question, leaf: Leaf) -> Iterator[Phrase]:
    """Exact forms that the parameter's name asks for: dates, addresses, time zones, codes."""
    for word in leaf.name:
        yield from (_phrase(span, 84) for span in question.of(*_NAMED_KINDS.get(word, ())))
    if {"dat", "day", "date", "when"} & set(leaf.name):
        for match in _RELATIVE_DAY.finditer(question.text):
            yield Phrase(match[0].removeprefix("on "), 62, *match.span())
    if {"unit", "currency", "measur"} & set(leaf.name):
        for span in question.of("number"):
            if run := _BEHIND_NUMBER.match(question.text, span.end):
                yield Phrase(run[1], 58, *run.span(1))
    if {"timezon", "tz", "zon"} & set(leaf.name):
        yield from _zones_by_city(question)


def _zones_by_city(question: Question) -> Iterator[Phrase]:
    """``in New York`` names the time zone ``America/New_York``."""
    cities = {span.text.replace(" ", "_"): span for span in question.of("proper")}
    for zone in sorted(zoneinfo.available_timezones()) if cities else ():
        if span := cities.get(zone.rpartition("/")[2]):
            yield Phrase(zone, 80, span.start, span.end)


def _behind_preposition(question: Question, leaf: Leaf) -> Iterator[Phrase]:
    for strength, vocabulary in ((74, leaf.name), (66, leaf.hints[:6])):
        prepositions = [one for word in vocabulary for one in _PREPOSITIONS.get(word, ())]
        for rank, preposition in enumerate(dict.fromkeys(prepositions)):
            for start in _behind(question.text, preposition):
                if phrase := _value_at(question, start, strength - min(rank, 8)):
                    yield phrase


def _behind(text: str, preposition: str) -> Iterator[int]:
    """Where a value begins behind each occurrence of a preposition."""
    pattern = rf"\b{preposition} " if preposition.isascii() else preposition
    for match in re.finditer(pattern, text, re.IGNORECASE):
        article = _ARTICLE.match(text, match.end())
        yield article.end() if article else match.end()


def _value_at(question: Question, start: int, strength: int) -> Phrase | None:
    """The value that begins at a place: a span, else a run of small words or of Han characters."""
    if span := question.at(start, *_VALUE_KINDS):
        return _phrase(span, strength)
    if run := _HAN_RUN.match(question.text, start):
        return Phrase(run[0], strength - 8, *run.span())
    kept = _plain_run(question.text, start)
    return Phrase(kept, strength - 14, start, start + len(kept)) if kept else None


def _plain_run(text: str, start: int) -> str:
    """Up to four small words from ``start`` on, up to a word that cannot belong to a value."""
    run = _PLAIN_RUN.match(text, start)
    kept: list[str] = []
    for word in run[0].split() if run else ():
        if word in STOP_WORDS or _RELATIVE_DAY.fullmatch(word):
            break
        kept.append(word)
    return " ".join(kept)


def _free_text(question: Question, leaf: Leaf) -> Iterator[Phrase]:
    yield from (_phrase(span, 70) for span in question.of("quoted"))
    for pattern, strength in ((_SAYING, 61), (_ABOUT, 48)):
        if match := pattern.search(question.text):
            if rest := _REST.match(question.text, match.end()):
                yield Phrase(rest[0].strip(), strength, *rest.span())
    if leaf.required:
        beyond = len(question.text)  # the whole question is given once, whatever else it gives
        yield Phrase(question.raw.strip(), 20, beyond, beyond + 1)
