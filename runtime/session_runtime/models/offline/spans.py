"""Finds the pieces of a question that can be the value of something: quotes, numbers, dates, names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from session_runtime.models.offline.words import STOP_WORDS

MAX_CHARS: Final = 2_000

Kind = Literal[
    "quoted",
    "url",
    "email",
    "datetime",
    "date",
    "clock",
    "zone",
    "path",
    "math",
    "number",
    "code",
    "proper",
]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the question between ``start`` and ``end``; ``text`` is its value as text.

    ``number`` is set for numbers; of "15%" it is 15, and ``percent`` is true.
    """

    kind: Kind
    start: int
    end: int
    text: str
    number: float | int | None = None
    percent: bool = False

    def overlaps(self, start: int, end: int) -> bool:
        """Whether it shares a character with the piece between ``start`` and ``end``."""
        return self.start < end and start < self.end


@dataclass(frozen=True, slots=True)
class Question:
    """A question on one line, with its spans from left to right; ``raw`` is how it was asked."""

    raw: str
    text: str
    spans: tuple[Span, ...]

    def of(self, *kinds: Kind) -> Iterator[Span]:
        """The spans of some kinds, from left to right."""
        return (span for span in self.spans if span.kind in kinds)

    def at(self, start: int, *kinds: Kind) -> Span | None:
        """The first span of some kinds that begins exactly at ``start``."""
        return next((span for span in self.of(*kinds) if span.start == start), None)


_NUMBER_WORDS: Final = tuple(
    "zero one two three four five six seven eight nine ten eleven twelve".split()
)
_QUOTED: Final = re.compile(
    r'"([^"]+)"|“([^”]+)”|「([^」]+)」|『([^』]+)』|《([^》]+)》|‘([^’]+)’|`([^`]+)`'
    r"|(?<![A-Za-z0-9])'([^ '](?:[^']|'(?=[A-Za-z0-9]))*)'(?![A-Za-z0-9])"
)
_EXACT: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("url", re.compile(r"https?://[^\s'\"<>]*[^\s'\"<>.,;:?!)]", re.ASCII)),
    ("email", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)),
    (
        "datetime",
        re.compile(
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?", re.ASCII
        ),
    ),
    ("date", re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)", re.ASCII)),
    (
        "clock",
        re.compile(r"(?<![\d:])\d{1,2}(?::\d\d){1,2}(?: ?[ap]m\b)?|\b\d{1,2} ?[ap]m\b", re.ASCII),
    ),
    ("zone", re.compile(r"\b[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_]+)+\b", re.ASCII)),
    (
        "path",
        re.compile(
            r"(?<![\w./~-])(?=[\w./~-]*[A-Za-z])[\w.~-]*/[\w./~-]*\w|\b\w[\w-]*\.[A-Za-z]\w{1,4}\b",
            re.ASCII,
        ),
    ),
)
_CALL: Final = r"(?:sqrt|sin|cos|tan|log|ln|exp|abs)\([^()]{1,60}\)"
_TERM: Final = rf"\({{0,5}}-?(?:\d[\d,]{{0,20}}(?:\.\d+)?(?: ?%)?|{_CALL})\){{0,5}}"
_SIGNS: Final = tuple(
    (sign, re.compile(rf" ?(?:{spelled}) ?", re.IGNORECASE))
    for sign, spelled in {
        " + ": r"\bplus\b|加上?",
        " - ": r"\bminus\b|减去?",
        " * ": r"\b(?:times|x|multiplied by)\b|乘以?|×|的",
        " / ": r"\b(?:divided by)\b|除以|÷",
    }.items()
)
_OPERATOR: Final = (
    r"(?: ?(?:\*\*|//|[-+*/^%×÷]|加上?|减去?|乘以?|除以|的(?=\d[\d.]*%)) ?"
    r"| (?:of|plus|minus|times|x|divided by|multiplied by) )"
)
_PHONE: Final = r"(?:\d+-)+\d{4}\b"
_MATH: Final = re.compile(
    rf"(?<![\w.])(?!{_PHONE}){_TERM}(?:{_OPERATOR}{_TERM})+(?![\w.]?\d)|\b{_CALL}", re.IGNORECASE
)
_ROOT: Final = re.compile(r"square root of (\d[\d,]*(?:\.\d+)?)", re.IGNORECASE)
_CODE: Final = re.compile(
    r"#\w+|(?<![\w-])(?=[A-Za-z0-9._-]*\d)(?=[A-Za-z0-9._-]*[A-Za-z])[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*",
    re.ASCII,
)
_NUMBER: Final = re.compile(
    r"(?<![A-Za-z0-9_.])(?:(?<![^\s(])[-+])?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![A-Za-z]*\d)( ?%)?"
    rf"|\b(?:{'|'.join(_NUMBER_WORDS)})\b",
    re.ASCII | re.IGNORECASE,
)
_PROPER: Final = re.compile(r"[A-Z][\w'’&-]*(?: (?:(?:of|de|la|van|von) )?[A-Z][\w'’&-]*)*")


def analyse(question: str) -> Question:
    """Find the spans of a question; what lies within a quote or a date is no number or name."""
    text = " ".join(question[:MAX_CHARS].split())
    solid = list(_solid(text))
    spans = [*solid, *_math(text, solid)]
    spans += _outside(solid, [*_numbers(text), *_codes(text), *_proper_names(text)])
    return Question(question, text, tuple(sorted(spans, key=lambda span: span.start)))


def _solid(text: str) -> Iterator[Span]:
    """Spans that nothing else may be found in: quotes first, then exact forms by precedence."""
    taken: list[Span] = []
    for match in _QUOTED.finditer(text):
        inner = next(group for group in match.groups() if group is not None)
        taken.append(Span("quoted", *match.span(), inner.strip()))
    for kind, pattern in _EXACT:
        found = (Span(kind, *m.span(), m[0]) for m in pattern.finditer(text) if _real(kind, m[0]))
        taken += _outside(taken, found)
    return iter(taken)


def _real(kind: Kind, text: str) -> bool:
    if kind not in {"date", "datetime"}:
        return True
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


def _outside(taken: Sequence[Span], spans: Iterable[Span]) -> list[Span]:
    return [s for s in spans if not any(other.overlaps(s.start, s.end) for other in taken)]


def _math(text: str, taken: Sequence[Span]) -> list[Span]:
    found = [Span("math", *m.span(), _formula(m[0])) for m in _MATH.finditer(text)]
    found += [Span("math", *m.span(), f"sqrt({m[1]})") for m in _ROOT.finditer(text)]
    return _outside(taken, found)


def _formula(text: str) -> str:
    """The formula with signs where the question has words."""
    for sign, pattern in _SIGNS:
        text = pattern.sub(sign, text)
    return text


def _numbers(text: str) -> Iterator[Span]:
    for match in _NUMBER.finditer(text):
        word = match[0].casefold()
        if word in _NUMBER_WORDS:
            yield Span("number", *match.span(), word, _NUMBER_WORDS.index(word))
            continue
        digits = match[0].rstrip("% ").replace(",", "").lstrip("+")
        number = float(digits) if "." in digits else int(digits)
        yield Span("number", *match.span(), match[0], number, match[0].endswith("%"))


def _codes(text: str) -> Iterator[Span]:
    return (Span("code", *match.span(), match[0].lstrip("#")) for match in _CODE.finditer(text))


def _proper_names(text: str) -> Iterator[Span]:
    """Runs of capitalised words; a capital at the start of a sentence says nothing."""
    for match in _PROPER.finditer(text):
        start, name = match.start(), match[0]
        first, _, rest = name.partition(" ")
        if _starts_sentence(text, start) or first.casefold() in STOP_WORDS:
            start, name = start + len(first) + 1, rest
        name = name.removesuffix("'s").removesuffix("’s")
        if name:
            yield Span("proper", start, start + len(name), name)


def _starts_sentence(text: str, start: int) -> bool:
    before = text[:start].rstrip("\"'“‘ ")
    return not before or before[-1] in ".?!。？！"
