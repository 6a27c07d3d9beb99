"""Where the thinking that a model wrote into its text ends; the rest is its answer."""

from dataclasses import dataclass
from typing import Final

from session_runtime.models.recovery.blanks import without_before

TAGS: Final = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
)
CLOSING: Final = "</think>"
"""What may close a thinking that the server has opened in the prompt."""


@dataclass(frozen=True, slots=True)
class Split:
    """A text in two; ``open`` if the thinking never came to its end."""

    thinking: str
    answer: str
    open: bool = False


def split_tagged(text: str) -> Split:
    """Split a text that begins with a tag of thinking; else all of it is the answer."""
    begun = without_before(text)
    for opening, closing in TAGS:
        if begun.startswith(opening):
            thinking, closed, answer = begun[len(opening) :].partition(closing)
            return Split(thinking.strip(), without_before(answer), open=not closed)
    return Split("", text)


def may_open(begun: str) -> bool:
    """Whether a text is the beginning of a tag of thinking."""
    return any(opening.startswith(begun) for opening, _ in TAGS)


def split_begun(text: str) -> Split:
    """Split a text that began inside of the thinking, at what closes it; else all of it is the answer."""
    thinking, closed, answer = text.partition(CLOSING)
    if not closed:
        return Split("", text)
    return Split(thinking.lstrip().removeprefix(TAGS[0][0]).strip(), without_before(answer))
