"""Reads a query (TS-7): pure, total, knowing no tools. What a name or word finds is decided in ``view``."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, islice
from typing import NamedTuple

from session_runtime.search.terms import analyse, is_camel, is_cjk, is_plain, normalise, runs

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

_SELECT = re.compile(r"select\s*[:：]", re.IGNORECASE)
_BETWEEN_NAMES = re.compile(r"[,，、；\r\n]|;(?<!&amp;)(?<!&lt;)(?<!&gt;)(?<!&quot;)")
_BETWEEN_WORDS = re.compile(r"[\s,，、;；]+")
_LIKE_A_NAME = re.compile(r"\w[._:/-]+\w")
_CALL_PREFIX = re.compile(
    r"^(?:functions?|default_api|tools?|mcp)(?:[.:/]|__)(?=\w)", re.IGNORECASE
)
AROUND_NAMES = " \t\r\n\v\f\u3000'\"`“”‘’«»「」『』()[]{}<>（）【】"
AFTER_NAMES = ".。…"
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), ("（", "）"), ("【", "】"))
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|[;。！？；\n]+")
_QUOTED = re.compile(
    r"""(?<!\w)(["'`])[^"'`\n]{1,80}\1(?!\w)|“[^”]{1,80}”|‘[^’]{1,80}’|「[^」]{1,80}」|<[^<>]{1,80}>"""
)
_QUOTE = re.compile("""["'`“‘「<]""")
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

    ``truncated`` says that there are more names than are looked up.
    """

    whole: str
    names: tuple[str, ...]
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Keywords:
    """Anything else: the whole ``text``, its words, each once, and those of each of its sentences.

    ``quoted`` is what stands in quotes, which may be names with blanks.
    """

    text: str
    words: tuple[Word, ...]
    sentences: tuple[tuple[Word, ...], ...] = field(default=(), compare=False)
    quoted: tuple[str, ...] = field(default=(), compare=False)

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


def spellings(name: str) -> tuple[str, ...]:
    """What a name may stand for, best first: as written, without final dots, unescaped."""
    bare = _bare(name.rstrip(AFTER_NAMES))
    if bare == name and "&" not in name:
        return (name,)
    return tuple(dict.fromkeys((name, bare, html.unescape(name))))


def _select(text: str, between: re.Pattern[str]) -> Select:
    pieces = between.split(text, MAX_NAMES)
    names = dict.fromkeys(filter(None, map(_bare, pieces[:MAX_NAMES])))
    return Select(_bare(text), tuple(names), len(pieces) > MAX_NAMES)


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
    pieces = _SENTENCE_END.split(query.strip()[:MAX_QUERY_CHARS], MAX_SENTENCES)
    sentences = tuple(tuple(_words(normalise(piece))) for piece in pieces)
    words = sentences[0] if len(sentences) == 1 else _all(sentences)
    return Keywords(text, _affordable(words), sentences, _in_quotes(query))


def _in_quotes(query: str) -> tuple[str, ...]:
    if _QUOTE.search(query, 0, MAX_QUERY_CHARS) is None:
        return ()
    found = islice(_QUOTED.finditer(query[:MAX_QUERY_CHARS]), MAX_QUOTED)
    return tuple(dict.fromkeys(quoted.group()[1:-1] for quoted in found))


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
    """One word, or several where text without blanks meets other letters: ``执行Python代码``."""
    pieces = runs(text)
    if any(map(is_cjk, pieces)):
        return [
            Word(piece[at : at + LONGEST_UNBROKEN], required, is_camel(piece))
            for piece in pieces
            for at in range(0, len(piece), LONGEST_UNBROKEN)
        ]
    separated = len(pieces) > 1 and not all(map(str.isdigit, pieces))
    return [Word(text, required, separated or any(map(is_camel, pieces)))]
