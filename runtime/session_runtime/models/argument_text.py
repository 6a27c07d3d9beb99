"""The text of a call's arguments as it arrives; what it means is decided in ``ask``."""

import re
from typing import Final

_TOKEN: Final = re.compile(r"""\\(?s:.)?|["{}\[\]]""")
_DEEPER: Final = frozenset("{[")
_NO_VALUES: Final = re.compile(r"\s*+(?:\{\s*+\}|null)?+\s*+")


class ArgumentText:
    """Text in pieces, and whether its brackets are closed already.

    ``closed`` looks at each character once however often it is asked, and only if it is asked: most
    services mark well enough what belongs to which call.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._brackets = _Brackets()
        self._counted = 0

    def add(self, piece: str) -> None:
        """Append a piece; some servers begin with an empty object in place of nothing."""
        if self._pieces == ["{}"] and piece.lstrip().startswith("{"):
            self.replace(piece)
        elif piece:
            self._pieces.append(piece)

    def replace(self, text: str) -> None:
        """Take this in place of what has come."""
        self._pieces = [text] if text else []
        self._brackets = _Brackets()
        self._counted = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __str__(self) -> str:
        return "".join(self._pieces)

    @property
    def closed(self) -> bool:
        """Whether an object has come to its end, so that more text cannot belong to it."""
        return self._count().closed

    @property
    def none(self) -> bool:
        """Whether it gives no value: nothing came, or what stands for nothing."""
        return _NO_VALUES.fullmatch(str(self)) is not None

    @property
    def sound(self) -> bool:
        """Whether it can be a call's own: the rest of another's, or what came of two, is not.

        An object that is not closed can, it may have been cut.
        """
        brackets = self._count()
        return brackets.of_one and (brackets.even or str(self).lstrip().startswith("{"))

    @property
    def wants_value(self) -> bool:
        """Whether it ends where a value must follow, which may be an object."""
        return bool(self._pieces) and self._pieces[-1].rstrip().endswith((":", "[", ","))

    def _count(self) -> "_Brackets":
        for piece in self._pieces[self._counted :]:
            self._brackets.count(piece)
        self._counted = len(self._pieces)
        return self._brackets


class _Brackets:
    """Counts brackets, those inside of strings aside."""

    def __init__(self) -> None:
        self._depth = 0
        self._ended = 0
        self._seen = False
        self._in_string = False
        self._in_escape = False

    @property
    def closed(self) -> bool:
        return self._seen and self._depth == 0

    @property
    def of_one(self) -> bool:
        """Whether at most one object ended, and none that did not begin."""
        return self._depth >= 0 and self._ended <= 1

    @property
    def even(self) -> bool:
        """Whether all that began has ended."""
        return self._depth == 0 and not self._in_string

    def count(self, text: str) -> None:
        token = ""
        for found in _TOKEN.finditer(text, int(self._in_escape)):
            token = found[0]
            if token == '"':
                self._in_string = not self._in_string
            elif not self._in_string and token[0] != "\\":
                self._seen = True
                self._depth += 1 if token in _DEEPER else -1
                self._ended += self._depth == 0
        self._in_escape = token == "\\"
