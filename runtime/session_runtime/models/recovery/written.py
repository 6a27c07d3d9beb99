"""What the grammars of all envelopes share: the calls that they find, and the place in the text."""

import json
import re
from dataclasses import dataclass
from typing import Final

from session_runtime.wire.strict import strict_json_at

MAX_CALLS: Final = 1_000
MAX_NAME_CHARS: Final = 1_000
MAX_SECOND_LOOKS: Final = 16
_BLANKS: Final = re.compile(r"\s*+")
_WORD: Final = re.compile(r"[\w.:/-]++")
_CUT_VALUE: Final = re.compile(
    r"(?:-|\.|[eE][+-]?|t|tr|tru|f|fa|fal|fals|n|nu|nul|\\(?:u[0-9a-fA-F]{0,3})?)?\s*"
)
"""What the place of an error in JSON is followed by where the text ends in the middle of a value."""

Parameters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it stands in a text, by the name that the model knows.

    ``arguments`` are JSON text, or names with the raw texts of their values, whose types are the schema's.
    """

    name: str
    arguments: str | Parameters


class NoEnvelopeError(Exception):
    """The text is not what the grammar describes: it stays text."""


class Cursor:
    """A place in a text that moves forward, so that reading takes time in proportion to the text.

    With ``unclosed`` marks that close may be missing at the very end, or where the next call opens;
    ``lacks_end`` if one was.
    ``ran_out`` if more was looked for where the text ended, so that more of it might have been an envelope.
    """

    def __init__(self, text: str, *, unclosed: bool = False) -> None:
        self.ran_out = False
        self.lacks_end = False
        self._text = text
        self._at = 0
        self._second_looks = 0
        self._unclosed = unclosed

    @property
    def done(self) -> bool:
        """Whether only blanks are left; they are passed."""
        self.blanks()
        return self._at == len(self._text)

    def blanks(self) -> None:
        """Pass blanks, if there are any."""
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def sees(self, mark: str) -> bool:
        """Whether ``mark`` stands behind any blanks, which are passed."""
        self.blanks()
        if self._text.startswith(mark, self._at):
            return True
        self.ran_out = self.ran_out or self._ends_in(mark)
        return False

    def takes(self, mark: str) -> bool:
        """Pass ``mark`` and the blanks before it, if it is there."""
        if not self.sees(mark):
            return False
        self._at += len(mark)
        return True

    def expect(self, mark: str) -> None:
        """Pass ``mark`` and the blanks before it; NoEnvelopeError if it is not there."""
        if not self.takes(mark):
            raise NoEnvelopeError

    def close(self, mark: str, again: str = "") -> None:
        """Pass the mark that ends what is whole without it; ``again`` is what may begin the next."""
        if self.takes(mark):
            return
        if self._unclosed and again and self.sees(again):
            self.lacks_end = True
            return
        if not self._unclosed or not self._ends_in(mark):
            raise NoEnvelopeError
        self.lacks_end, self._at = True, len(self._text)

    def before(self, mark: str) -> str:
        """Pass ``mark`` wherever it comes next, NoEnvelopeError if nowhere; returns what stood before it."""
        end = self._text.find(mark, self._at)
        if end < 0:
            self.ran_out = True
            raise NoEnvelopeError
        found = self._text[self._at : end]
        self._at = end + len(mark)
        return found

    def json_before(self, mark: str) -> str:
        """What stands before ``mark``; the rest of the text where that is JSON without its mark.

        What begins like an object and ends like one counts as JSON too, unless it broke off.
        """
        if self._text.find(mark, self._at) >= 0:
            return self.before(mark)
        begin = self._at
        try:
            self.json()
        except NoEnvelopeError:
            if self.ran_out or not self._text.endswith("}"):
                raise
            self._at = len(self._text)
        found = self._text[begin : self._at]
        self.close(mark)
        return found

    def name(self, mark: str) -> str:
        """A name that ends at ``mark``."""
        if self._text.find(mark, self._at) < 0 and " " in self.rest.strip():
            raise NoEnvelopeError
        return checked_name(self.before(mark))

    def word(self) -> str:
        """Pass letters, digits and what joins them to names, behind any blanks."""
        self.blanks()
        found = _WORD.match(self._text, self._at)
        if found is None:
            self.ran_out = self.ran_out or self._at == len(self._text)
            raise NoEnvelopeError
        self._at = found.end()
        return checked_name(found[0])

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Pass what a pattern finds behind any blanks; None if it does not fit here."""
        self.blanks()
        found = pattern.match(self._text, self._at)
        if found is None:
            self.ran_out = self.ran_out or self._at == len(self._text)
            return None
        self._at = found.end()
        return found[0]

    def look_again(self, place: int) -> None:
        """Go back to a ``place`` before, which only a few calls of a text may need."""
        self._second_looks += 1
        if self._second_looks > MAX_SECOND_LOOKS:
            raise NoEnvelopeError
        self._at, self.ran_out = place, False

    @property
    def place(self) -> int:
        """How many characters were passed."""
        return self._at

    @property
    def rest(self) -> str:
        """All that was not passed."""
        return self._text[self._at :]

    def json(self) -> object:
        """Pass a strict JSON value; NoEnvelopeError if none stands here."""
        self.blanks()
        try:
            value, self._at = strict_json_at(self._text, self._at)
        except ValueError as error:
            self.ran_out = self.ran_out or _is_cut(error)
            raise NoEnvelopeError from None
        return value

    def _ends_in(self, mark: str) -> bool:
        """Whether nothing but the beginning of ``mark`` is left, or nothing at all."""
        left = len(self._text) - self._at
        return left < len(mark) and mark.startswith(self._text[self._at :])


def _is_cut(error: ValueError) -> bool:
    """Whether JSON is none because the text ended in the middle of it."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    unterminated = error.msg.startswith("Unterminated string")
    return unterminated or _CUT_VALUE.fullmatch(error.doc, error.pos) is not None


def checked_name(name: str) -> str:
    """The name of a tool or parameter without blanks around it: one line, not too long."""
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise NoEnvelopeError
    return name


def laid_out(value: str) -> str:
    """The raw text of a value without the line breaks that set it off from its tags."""
    if value.startswith("\n") and value.endswith("\n") and len(value) > 1:
        return value[1:-1]
    return value
