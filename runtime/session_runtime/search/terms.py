"""Turns text into search terms, by one rule for names, descriptions and queries (TS-8).

A *run* is text between blanks and punctuation; its *parts* are what camelCase and letter/digit
borders leave; a *term* is a part as it is indexed: case-folded and stemmed. Which terms count how
much is decided in ``fields`` and ``rank``.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from threading import Lock
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from Stemmer import Stemmer

from session_runtime.normal_form import normal
from session_runtime.search.han import simplify

CJK = (
    "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Han, kana and Hangul, as a range of a pattern."""

_RUN = re.compile(f"[{CJK}]+|[^\\W_{CJK}]+")
_CJK_START = re.compile(f"[{CJK}]")
_SCRIPT = re.compile(f"[{CJK}]+|[^{CJK}]+")
_LETTERS_OR_DIGITS = re.compile(r"\d+|\D+")
_CAMEL = re.compile(r"[A-Z]{2,}(?=s(?![a-z]))|[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAME_BORDER = re.compile(r"[./:\n]|__")
_STEMMED = (3, 40)
Hashes = TypeVar("Hashes", int, npt.NDArray[np.int64])
PHRASE_NUMBERS = (1 << 27) - 1

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing during each few for from further had has have
    having he her here hers him his how i if in into is it its itself just me more most my myself no
    nor not now of off on once only or other our ours over own please same she should so some such
    than that the their theirs them then there these they this those through to too under until very
    was we were what when where which while who whom why will with would you your yours
    get give help know let like looking need want
    的 了 我 请 帮 要 想 你 您 把 是 在 给 这 那 和 与 一 个 下 有 吗 呢 吧 也 都 能 可 以 需 并
    为 从 到 将 对 于 由 就 还 又 它 他 她 们 此 其 该 之 而 或 但 如 果 所 被 让 里 着 呀 啊 嘛 么
    先 再 最 很 更 已 会 用 来 去 几
    我想 我要 我需 需要 请帮 帮我 一下 请把 帮忙 可以 能否 并且 然后 以及
    """.split()
)
"""Words of a request that say nothing about the tool; kept if a query has no others."""

SMALL_WORDS = frozenset(
    """
    above after again all at before below between by from get here in into more most no not now
    off on once only over same through to under until with
    """.split()
)
"""Stop words that may be all that tells two tools apart; they count where a name has them."""

LIGHT_WORDS = frozenset(
    """
    appreciate appreciated excuse grateful greetings hello hey hi kindly sorry thank thanks
    able assist assistance may maybe might must ought perhaps possible possibly shall
    eager glad hope hoping intend interested interesting keen love wish wonder wondering curious
    accordingly additionally besides finally firstly furthermore hence however lastly meanwhile
    moreover secondly therefore thirdly thus
    provide provided provides providing tell telling
    us use used uses using
    """.split()
)
"""Words of requests that hardly ever mean a tool; they count less.

By line: polite, modest, wishing, linking sentences, handing over, using.
"""


def normalise(text: str) -> str:
    """NFKC and simplified Han, with lone surrogates replaced, so that every text can be searched."""
    if text.isascii():
        return text
    valid = text.encode("utf-8", "replace").decode("utf-8")
    return simplify(normal("NFKC", valid))


def runs(text: str) -> list[str]:
    """The runs of normalised ``text``: Han (and kana, Hangul) apart from other letters and digits."""
    return _RUN.findall(text)


def by_script(text: str) -> list[str]:
    """``text`` cut only where Han (or kana, Hangul) and anything else meet."""
    return _SCRIPT.findall(text)


def is_cjk(run: str) -> bool:
    """Whether a run is written without blanks between its words."""
    return _CJK_START.match(run) is not None


def is_plain(word: str) -> bool:
    """Whether a word is of ASCII letters and no camelCase: one part, whose case-folded form is lower case."""
    return word.isascii() and word.isalpha() and (word.islower() or word[1:].islower())


def parts(run: str) -> list[str]:
    """A run cut at camelCase and letter/digit borders, case-folded: ``getURLs2`` → get, url, 2."""
    if run.islower() and run.isalpha():
        return [run.casefold()]
    found: list[str] = []
    for piece in _pieces(run):
        found += _camel(piece) if piece.isascii() else [piece]
    return [part.casefold() for part in found]


def is_camel(run: str) -> bool:
    """Whether upper case inside a run parts it: ``getUser``, ``MySQL``, but not ``PDFs``."""
    return any(piece.isascii() and len(_camel(piece)) > 1 for piece in _pieces(run))


def may_be_a_product(word: str) -> bool:
    """Whether a word in camel case may be a product's name: *GitHub*, *iCloud*, but not *pageUrl*."""
    return not word[0].islower() or len(parts(word)[0]) < 2


def cut_up(name: str) -> list[str]:
    """The words of a name as it is written, none of them joined."""
    return [part for run in runs(normalise(name)) for part in parts(run)]


def _pieces(run: str) -> list[str]:
    return _LETTERS_OR_DIGITS.findall(run)


def _camel(piece: str) -> list[str]:
    return [part for part in _CAMEL.findall(piece) if part != "s"] or [piece]


@dataclass(frozen=True, slots=True)
class Analysed:
    """What a run is searched by: its parts and, if there are several, the joined form (``mysql``)."""

    parts: tuple[str, ...]
    joined: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Parts in the order of the text, the joined form last."""
        return self.parts if self.joined is None else (*self.parts, self.joined)


def analyse(run: str) -> Analysed:
    """Cut one run; text without blanks becomes its characters and their pairs."""
    if is_cjk(run):
        return Analysed((*run, *map("".join, pairwise(run))))
    cut = tuple(parts(run))
    return Analysed(cut, run.casefold() if len(cut) > 1 else None)


def names_in(text: str) -> list[str]:
    """The names of a text that holds one a line, and their segments: words of two are never joined."""
    return _NAME_BORDER.split(text)


def joined_neighbours(name: str) -> list[str]:
    """Each two neighbouring words of a name as one: ``keyvault`` and ``vaultlist`` of ``key_vault_list``.

    Digits, and text without blanks, keep words apart.
    """
    if name.isalpha() and name.islower():
        return []
    words = [part if _joins(part) else "" for run in runs(name) for part in parts(run)]
    return [left + right for left, right in pairwise(words) if left and right]


def _joins(part: str) -> bool:
    return part.isalpha() and not is_cjk(part)


def pieces_of(word: str) -> Iterator[str]:
    """The words that texts hold instead of one: 文件 and 件夹 for 文件夹, both of ``virtual_machine``."""
    for run in runs(word):
        if is_cjk(run) and len(run) > 2:
            yield from map("".join, pairwise(run))
        else:
            yield run


def phrase_number(left: Hashes, right: Hashes) -> Hashes:
    """The number of a phrase of two terms with these hashes, or of many: the same in every process."""
    return left * 31 + right & PHRASE_NUMBERS


class Others(NamedTuple):
    """The terms that mean the same as one: those in its own script, and its translations."""

    synonyms: tuple[str, ...]
    translations: tuple[str, ...]

    def with_more(self, others: "Others") -> "Others":
        """These and some others, each once."""
        pairs = zip(self, others, strict=True)
        return Others(*(tuple(dict.fromkeys((*these, *those))) for these, those in pairs))


class Lexicon:
    """Every word that a catalogue has used, stemmed once, and the numbers of words and terms.

    ``words`` are as written, case-folded; ``terms`` holds the term number of each word. It only
    grows, so the indexes of following generations share one; a word unknown to an older index is
    simply a number beyond its own. Threads may learn into it at once. ``hashes`` hold for each term
    what its phrases are known by, 0 for one that makes no phrase: stop words, and text without blanks.
    ``others`` are, by term, those that mean the same, ``compounds`` such of these as texts hold as
    several: those of 文件夹, or of *virtual machine*; ``long_sizes`` are the lengths of the former.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.terms: list[int] = []
        self.hashes: list[int] = []
        self.stop_numbers: set[int] = set()
        self.others: dict[str, Others] = {}
        self.compounds: dict[str, tuple[str, ...]] = {}
        self.long_sizes: set[int] = set()
        self._stems: dict[str, str] = {}
        self._run_words = _RunWords(self._learn_run)
        self._stemmer = Stemmer("english", 0)  # words are kept here
        self._learning = Lock()

    def __len__(self) -> int:
        return len(self.numbers)

    def learn(self, found: Iterable[str]) -> list[int]:
        """The word numbers of some runs, in their order; new words are remembered."""
        return list(chain.from_iterable(map(self._run_words.__getitem__, found)))

    def learn_stop_word(self, word: str) -> None:
        """Give a word that says nothing its number before any catalogue is read."""
        number = self.terms[self.learn([word])[-1]]
        self.stop_numbers.add(number)
        self.hashes[number] = 0

    def learn_synonyms(self, group: str) -> None:
        """Make each word of a blank-separated group, normalised, mean the others and all behind ``>``."""
        same, _, more = group.partition(" > ")
        terms, meant = ([self._term_of(word) for word in part.split()] for part in (same, more))
        for term in dict.fromkeys(terms):
            others = [word for word in dict.fromkeys((*terms, *meant)) if word != term]
            script = is_cjk(term)
            found = Others(
                tuple([word for word in others if is_cjk(word) == script]),
                tuple([word for word in others if is_cjk(word) != script]),
            )
            before = self.others.get(term)
            self.others[term] = found if before is None else before.with_more(found)

    def _term_of(self, word: str) -> str:
        """The term of a synonym; one that texts hold as several terms is remembered with these."""
        if not word.isascii() and len(word) < 3:
            return word
        if word.isalnum() and word.isascii():
            return self.stem(word)
        pieces = tuple(map(self.stem, pieces_of(word)))
        term = self.stem("".join(runs(word)))
        if len(pieces) > 1:
            self.compounds[term] = pieces
            self.long_sizes |= {len(term)} if is_cjk(term) else set()
        return term

    def stem(self, word: str) -> str:
        """The term that a word is indexed as."""
        known = self._stems.get(word)
        if known is not None:
            return known
        if not (_STEMMED[0] <= len(word) <= _STEMMED[1] and word.isascii() and word.isalpha()):
            return word
        term: str = self._stemmer.stemWord(word)
        return word if term == word else term

    def _learn_run(self, run: str) -> tuple[int, ...]:
        """The word numbers of one run that was not read before."""
        words = (run,) if run.islower() and is_plain(run) else analyse(run).words
        with self._learning:
            return tuple(map(self._learn_word, words))

    def _learn_word(self, word: str) -> int:
        number = self.words.setdefault(word, len(self.words))
        if number == len(self.terms):
            cjk = not word.isascii() and is_cjk(word)
            term = word if cjk else self.stem(word)
            if not cjk:
                self._stems[word] = term
            if term not in self.numbers:  # its hash comes first: others read what numbers tell of
                self.hashes.append(0 if cjk else zlib.crc32(term.encode()))
            self.terms.append(self.numbers.setdefault(term, len(self.numbers)))
        return number


class _RunWords(dict[str, tuple[int, ...]]):
    """Word numbers by run; runs without blanks are mostly sentences, and not worth keeping."""

    def __init__(self, learn: Callable[[str], tuple[int, ...]]) -> None:
        self._learn = learn

    def __missing__(self, run: str) -> tuple[int, ...]:
        numbers = self._learn(run)
        if not is_cjk(run):
            self[run] = numbers
        return numbers
