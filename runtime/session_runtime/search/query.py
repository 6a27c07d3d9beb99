"""Reads a query (TS-7): pure, total, knowing no tools. What a name or word finds is decided in ``view``."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import NamedTuple

from session_runtime.search.items import (
    CIRCLED,
    circled_in,
    glued_in,
    unmarked,
    without_circled,
    without_marks,
)
from session_runtime.search.terms import (
    CJK,
    STOP_WORDS,
    analyse,
    by_script,
    is_camel,
    is_cjk,
    is_plain,
    normalise,
    runs,
)

MAX_QUERY_CHARS, MAX_NAMES_CHARS = 4_000, 100_000
"""Keywords, and names, beyond these are not looked at."""

MAX_NAMES = 400
"""So many names of a list are looked up; that there are more is told as truncated."""

MAX_SENTENCES = MAX_QUOTED = 20
MAX_TERMS = 500
"""Words beyond those that are searched by so many terms are not looked at: text without blanks has two
a character."""

LONGEST_UNBROKEN = 200
"""Text without blanks is taken in pieces of so many characters."""

_SELECT = re.compile(r"(?:select|ｓｅｌｅｃｔ)\s*[:：]", re.IGNORECASE)
_BETWEEN_NAMES = re.compile(r"[,，、；\r\n]|;(?<!&amp;)(?<!&lt;)(?<!&gt;)(?<!&quot;)")
_BETWEEN_WORDS = re.compile(r"[\s,，、;；]+")
_AND = re.compile(r"\s+|(?<=[^\W_])[和与與及](?=[^\W_])")
_LIKE_A_NAME = re.compile(r"\w[._:/-]+\w")
_CALL_PREFIX = re.compile(
    r"^(?:functions?|default_api|tools?|mcp)(?:[.:/]|__)(?=\w)", re.IGNORECASE
)
AROUND_NAMES = " \t\r\n\v\f\u3000'\"`“”‘’«»「」『』()[]{}<>（）【】"
AFTER_NAMES = ".。…"
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), ("（", "）"), ("【", "】"))
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[;。！？；\n]+")
_ONE_QUOTE = r"""(["'`])[^"'`\n]{1,80}\1"""
_TWO_QUOTES = "“[^”]{1,80}”|‘[^’]{1,80}’|「[^」]{1,80}」|<[^<>]{1,80}>"
_QUOTED = re.compile(rf"(?<!\w){_ONE_QUOTE}(?!\w)|{_TWO_QUOTES}")
_NAME_IN_QUOTES = re.compile(rf"(?<![^\W{CJK}]){_ONE_QUOTE}(?![^\W{CJK}])|{_TWO_QUOTES}")
_QUOTE = re.compile("""["'`“‘「<]""")
_BEFORE_TOOL = re.compile(r"\s*(?:tool\b|工具)", re.IGNORECASE)
_AFTER_TOOL = re.compile(r"(?:\btool|工具)\s*[:：]?\s*$", re.IGNORECASE)
_WIDE_CHARS = "\uff0d\uff0e\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a"
_WIDE = re.compile(f"[{_WIDE_CHARS}]+")
_UNUSUAL = re.compile(f"[{_WIDE_CHARS}{CIRCLED}]")
_NEAR = 12
_WORD = re.compile(r"((?<![^\s,，、;；])\+)?([^\W_]+(?:[._-]+[^\W_]+)*)")


class Word(NamedTuple):
    """One word of keywords as written; ``required`` after ``+``, ``compound`` like an identifier.

    ``literal`` is one that stands in quotes only: more likely a value than what is asked for.
    """

    text: str
    required: bool = False
    compound: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing was asked for."""


@dataclass(frozen=True, slots=True)
class Select:
    """Tools asked for by name, in order, in the caller's spelling; ``whole`` is all after the colon.

    ``truncated`` says that there are more names than are looked up. ``items`` are the names without what
    marks the items of a list, if there are such marks: names may hold the same.
    """

    whole: str
    names: tuple[str, ...]
    truncated: bool = False
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Keywords:
    """Anything else: the whole ``text``, its words, each once, and those of each of its sentences.

    ``quoted`` is what stands in quotes and may be a name, with blanks perhaps; a single word only is one
    beside the word *tool*. ``mixed`` are runs of words that were cut where their script changes, ``glued``
    those in which a name may stand within text without blanks. ``wide`` is what is written in full width.
    """

    text: str
    words: tuple[Word, ...]
    sentences: tuple[tuple[Word, ...], ...] = field(default=(), compare=False)
    quoted: tuple[str, ...] = field(default=(), compare=False)
    mixed: tuple[str, ...] = field(default=(), compare=False)
    glued: tuple[str, ...] = field(default=(), compare=False)
    wide: tuple[str, ...] = field(default=(), compare=False)

    @property
    def listed(self) -> bool:
        """Whether something else than blanks parts its pieces, as in a list of names."""
        return _BETWEEN_NAMES.search(self.text, 0, MAX_QUERY_CHARS) is not None

    @property
    def compound(self) -> bool:
        """Whether a word of it is put together from several, as names are."""
        if any(word.compound for word in self.words):
            return True
        return _LIKE_A_NAME.search(self.text, 0, MAX_QUERY_CHARS) is not None

    def names(self) -> Select:
        """The pieces between blanks and commas, which may be names."""
        return _select(self.text, _BETWEEN_WORDS)

    def spellings(self) -> tuple[list[str], list[str]]:
        """What of the text, apart from quotes, may be a name or a form of one: no plain words.

        The words in camel case of a sentence come apart: names, or what the request is about (*GitHub*).
        """
        texts = [word.text for word in self.words if word.compound or not word.text.isalnum()]
        rests = [rest for text in texts if (rest := unmarked(text)) != text]
        texts += (rest for rest in rests if not is_plain(rest))
        if not texts or sum(map(_is_telling, self.words)) < 2:
            return [*texts, *self.mixed], []
        camel = [text for text in texts if text.isalnum()][:MAX_QUOTED]
        return [*(text for text in texts if not text.isalnum()), *self.mixed], camel


Query = Empty | Select | Keywords


def parse(query: str) -> Query:
    """Read any text whatever as a query; never raises."""
    text = _bare(query[:MAX_NAMES_CHARS])
    if found := _SELECT.match(text):
        selected = _select(text[found.end() :], _BETWEEN_NAMES)
        return selected if selected.names else Empty()
    if not text:
        return Empty()
    return _keywords(text, query)


def called(name: str) -> str:
    """A name without what models put before it when they call a tool: ``functions.music.play``."""
    return _CALL_PREFIX.sub("", name, count=1)


def parted(name: str) -> list[str]:
    """What a name nobody has may be several of: with blanks between them, or the Chinese *and*."""
    return list(dict.fromkeys(filter(None, _AND.split(name))))


def spellings(name: str) -> tuple[str, ...]:
    """What a name may stand for, best first: as written, without final dots, unescaped."""
    bare = _bare(name.rstrip(AFTER_NAMES))
    if bare == name and "&" not in name:
        return (name,)
    return tuple(dict.fromkeys((name, bare, html.unescape(name))))


def _select(text: str, between: re.Pattern[str]) -> Select:
    names, more = _names(text, between)
    listed = without_marks(text)
    if listed == text:
        return Select(_bare(text), names, more)
    items, more = _names(listed, between)
    return Select(_bare(text), names, more, items)


def _names(text: str, between: re.Pattern[str]) -> tuple[tuple[str, ...], bool]:
    """The names between some marks, each once, and whether there are more."""
    pieces = between.split(text, MAX_NAMES)
    names = dict.fromkeys(filter(None, map(_bare, pieces[:MAX_NAMES])))
    return tuple(names), len(pieces) > MAX_NAMES


def _bare(text: str) -> str:
    """A name without what people put around it, but with the bracket that ends it: ``Delete Feed(s)``."""
    bare = text.strip(AROUND_NAMES)
    if len(bare) == len(text):
        return text
    behind = text[text.find(bare) + len(bare) :]
    for opening, closing in _BRACKETS:
        if closing in behind and bare.count(opening) > bare.count(closing):
            bare += closing
    return bare


def _keywords(text: str, query: str) -> Keywords:
    """The words of the query, with the quotes that stand around ``text`` in it."""
    asked = query.strip()[:MAX_QUERY_CHARS]
    wide: Sequence[str] = ()
    if not asked.isascii() and _UNUSUAL.search(asked):
        wide = [*_WIDE.findall(asked), *circled_in(asked)][:MAX_QUOTED]
        asked = without_circled(asked)
    pieces = _SENTENCE_END.split(asked, MAX_SENTENCES)
    normal = [normalise(piece) for piece in pieces]
    sentences = tuple([tuple(_words(piece)) for piece in normal])
    words = sentences[0] if len(sentences) == 1 else _all(sentences)
    return Keywords(
        text,
        _affordable(words),
        sentences,
        _in_quotes(query),
        _mixed(normal),
        tuple([run for piece in normal for run in glued_in(piece)]),
        tuple(wide),
    )


def _is_telling(word: Word) -> bool:
    return word.text.casefold() not in STOP_WORDS


def _in_quotes(query: str) -> tuple[str, ...]:
    if _QUOTE.search(query, 0, MAX_QUERY_CHARS) is None:
        return ()
    found = islice(_NAME_IN_QUOTES.finditer(query[:MAX_QUERY_CHARS]), MAX_QUOTED)
    names = ((quoted.group()[1:-1], quoted) for quoted in found)
    return tuple(
        dict.fromkeys(
            name for name, quoted in names if not name.isalnum() or _is_called_tool(quoted)
        )
    )


def _is_called_tool(quoted: re.Match[str]) -> bool:
    """Whether what stands in quotes is said to be a tool: ``the tool 'end'``, ``“end”工具``."""
    start, end = quoted.span()
    before = quoted.string[max(0, start - _NEAR) : start]
    return bool(_BEFORE_TOOL.match(quoted.string, end) or _AFTER_TOOL.search(before))


def _mixed(sentences: Sequence[str]) -> tuple[str, ...]:
    """The runs of words of some sentences that ``_split`` cuts, each once and whole."""
    return tuple(
        dict.fromkeys(
            found
            for sentence in sentences
            if not sentence.isascii()
            for _, found in _WORD.findall(sentence)
            if not found.isascii() and len(by_script(found)) > 1
        )
    )


def _affordable(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The first words, as long as they do not have too many terms."""
    if sum(map(len, (word.text for word in words))) * 2 <= MAX_TERMS:
        return words
    costs = accumulate(1 if is_plain(word.text) else _terms_in(word.text) for word in words)
    return tuple(word for word, cost in zip(words, costs, strict=True) if cost <= MAX_TERMS)


def _terms_in(text: str) -> int:
    return sum(len(analyse(run).words) for run in runs(text))


def _all(sentences: Sequence[Sequence[Word]]) -> tuple[Word, ...]:
    """The words of some sentences, each once; a literal is one that is so in all of them."""
    words: dict[tuple[str, bool], Word] = {}
    for word in chain.from_iterable(sentences):
        key = word.text, word.required
        if key not in words or words[key].literal:
            words[key] = word
    return tuple(words.values())


def _words(whole: str) -> list[Word]:
    """Each word of a sentence once, those in quotes last."""
    words: dict[tuple[str, bool], Word] = {}
    quoted_too = _QUOTE.search(whole) is not None
    plain = _QUOTED.sub(" ", whole) if quoted_too else whole
    for plus, found in _WORD.findall(plain):
        required = bool(plus) and not found.isdigit()
        if (found, required) in words:
            continue
        if is_plain(found):
            words[found, required] = Word(found, required)
        else:
            words |= {(word.text, required): word for word in _split(found, required)}
    for quoted in _QUOTED.finditer(whole) if quoted_too else ():
        for plus, found in _WORD.findall(quoted.group()[1:-1]):
            required = bool(plus) and not found.isdigit()
            for word in _split(found, required):
                words.setdefault((word.text, required), word._replace(literal=not required))
    return list(words.values())


def _split(text: str, required: bool) -> list[Word]:
    """One word, or several where text without blanks meets anything else: ``执行Python代码``."""
    pieces = by_script(text)
    if len(pieces) > 1:
        told = (piece.strip("._-") for piece in pieces)
        return [word for piece in told if piece for word in _split(piece, required)]
    if is_cjk(text):
        starts = range(0, len(text), LONGEST_UNBROKEN)
        return [Word(text[at : at + LONGEST_UNBROKEN], required) for at in starts]
    found = runs(text)
    separated = len(found) > 1 and not all(map(str.isdigit, found))
    return [Word(text, required, separated or any(map(is_camel, found)))]
