"""Holds back of a streamed text what the caller must not see: thinking, and what may be calls (ASK-6)."""

from collections.abc import Callable

from session_runtime.models.base import OnText
from session_runtime.models.recovery.beginning import HEAD_CHARS, Beginning, Known, beginning
from session_runtime.models.recovery.blanks import without_before
from session_runtime.models.recovery.reading import MAX_TEXT_CHARS
from session_runtime.models.recovery.thinking import CLOSING, TAGS, may_open


class HeldText:
    """Passes pieces of a text on as soon as it is clear that they are neither thinking nor an envelope.

    Held back are blanks at the beginning; at most ``HEAD_CHARS`` of a text of which it is not clear yet
    what it becomes; the whole of one that begins like an envelope, up to ``MAX_TEXT_CHARS``; elsewhere
    only a piece of ``</think>`` at the very end. Thinking between tags is dropped. With ``begun`` the text
    begins inside of the thinking, and nothing is told before its end. Without ``known``, which tells
    the names of tools, nothing is an envelope.
    """

    def __init__(self, on_text: OnText, known: Known | None, *, begun: bool = False) -> None:
        self._on_text = on_text
        self._known = known
        self._kept = ""
        self._pieces: list[str] = []
        self._chars = 0
        self._closing = CLOSING
        self._thought = False
        self._said_nothing = False
        self._step: Callable[[str], str | None] = self._begun if begun else self._opening

    def add(self, piece: str) -> None:
        """Take the next piece of the text."""
        rest: str | None = piece
        while rest:
            rest = self._step(rest)

    def release(self) -> None:
        """The text ended and is no envelope: tell what was held back, thinking aside."""
        if self._step != self._thinking:
            self._tell("".join(self._pieces) + self._kept)
        self._pieces, self._kept = [], ""

    def _tell(self, text: str) -> None:
        if text:
            self._on_text(text)

    def _opening(self, piece: str) -> str | None:
        """Until it is clear what the text is; what stood before it is in ``_pieces``."""
        self._kept += piece
        head = without_before(self._kept)
        if not head:
            self._pieces.append(self._kept)
            self._kept = ""
            return None
        if not self._thought and (closing := _closing_of(head)):
            self._thought, self._closing, self._said_nothing = True, closing[1], True
            self._pieces, self._kept, self._step = [], "", self._thinking
            return head[len(closing[0]) :]
        match self._beginning(head):
            case "envelope":
                self._pieces.append(self._kept)
                self._chars = len(self._kept)
                self._kept, self._step = "", self._envelope
                return None
            case "undecided" if len(head) < HEAD_CHARS:
                return None
            case "text" if not self._thought and may_open(head):
                return None
        text = "".join(self._pieces) + self._kept
        self._pieces, self._kept = [], ""
        answers = self._known is None or (self._thought and not self._said_nothing)
        self._step = self._answer if answers else self._plain
        return text

    def _beginning(self, head: str) -> Beginning:
        return "text" if self._known is None else beginning(head[:HEAD_CHARS], self._known)

    def _thinking(self, piece: str) -> str | None:
        """Drop all up to what closes it, of which a piece may have come."""
        self._kept += piece
        thought, closed, rest = self._kept.partition(self._closing)
        if closed:
            self._said_nothing = self._said_nothing and not thought.strip()
            self._kept, self._step = "", self._behind
            return rest
        passed, self._kept = (
            self._kept[: 1 - len(self._closing)],
            self._kept[1 - len(self._closing) :],
        )
        self._said_nothing = self._said_nothing and not passed.strip()
        return None

    def _begun(self, piece: str) -> str | None:
        """Hold all up to what closes the thinking: without it the text has none."""
        self._kept += piece
        _, closed, rest = self._kept.partition(CLOSING)
        if not closed:
            kept = len(CLOSING) - 1
            self._pieces.append(self._kept[:-kept])
            self._kept = self._kept[-kept:]
            return None
        self._pieces, self._kept = [], ""
        self._thought, self._step = True, self._behind
        return rest

    def _behind(self, piece: str) -> str | None:
        """Drop the blanks between thinking and answer."""
        text = without_before(piece)
        if text:
            self._step = self._opening
        return text

    def _envelope(self, piece: str) -> str | None:
        self._pieces.append(piece)
        self._chars += len(piece)
        if self._chars <= MAX_TEXT_CHARS:
            return None
        text, self._pieces = "".join(self._pieces), []
        self._step = self._answer
        return text

    def _plain(self, piece: str) -> str | None:
        """Tell it, and look for the end of thinking that the server had opened: calls may stand behind it."""
        if CLOSING[0] not in piece and not self._kept:
            self._on_text(piece)
            return None
        text = self._kept + piece
        before, closed, rest = text.partition(CLOSING)
        if closed:
            self._tell(before)
            self._thought, self._said_nothing, self._step = True, False, self._opening
            self._pieces, self._kept = [CLOSING], ""
            return rest
        kept = _end_like(text, CLOSING)
        self._tell(text[: len(text) - kept])
        self._kept = text[len(text) - kept :]
        return None

    def _answer(self, piece: str) -> str | None:
        self._tell(piece)
        return None


def _closing_of(head: str) -> tuple[str, str] | None:
    return next((pair for pair in TAGS if head.startswith(pair[0])), None)


def _end_like(text: str, mark: str) -> int:
    """How many characters at the end of ``text`` may begin ``mark``, whose first one comes in it once."""
    begin = text.rfind(mark[0], max(0, len(text) - len(mark) + 1))
    return len(text) - begin if begin >= 0 and mark.startswith(text[begin:]) else 0
