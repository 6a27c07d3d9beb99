"""Where a passage occurs in a text, and what differs between two texts, in bounded time."""

import difflib
from itertools import takewhile

CONTEXT_LINES = 3
MAX_COMPARED_LINES = 1_000
MAX_DIFF_CHARS = 8_000


def places(text: str, passage: str) -> list[int]:
    """The lines, from 1, in which ``passage`` begins; occurrences do not overlap."""
    found: list[int] = []
    at, line, counted = text.find(passage), 1, 0
    while at >= 0:
        line += text.count("\n", counted, at)
        counted = at
        found.append(line)
        at = text.find(passage, at + len(passage))
    return found


def diff(path: str, before: str, after: str) -> str:
    """A unified diff, cut where it is long; only a summary where too many lines would be compared."""
    old, new = _lines(before), _lines(after)
    start = _same(old, new)
    end = _same(old[start:][::-1], new[start:][::-1])
    changed = (len(old) - start - end, len(new) - start - end)
    if max(changed) > MAX_COMPARED_LINES:
        return (
            f"{path} was changed from line {start + 1} on: {changed[0]} lines became {changed[1]}."
        )
    first = max(0, start - CONTEXT_LINES)
    lines = difflib.unified_diff(
        old[first : len(old) - max(0, end - CONTEXT_LINES)],
        new[first : len(new) - max(0, end - CONTEXT_LINES)],
        lineterm="",
        n=CONTEXT_LINES,
    )
    text = "\n".join(_moved(line, first) for line in list(lines)[2:])
    if not text:
        return f"{path} was changed in its line ends only."
    cut = (
        f"\n[the diff has {len(text)} characters and is cut]" if len(text) > MAX_DIFF_CHARS else ""
    )
    return f"--- {path}\n+++ {path}\n{text[:MAX_DIFF_CHARS]}{cut}"


def _lines(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _same(one: list[str], other: list[str]) -> int:
    """How many lines are equal from the beginning on."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _moved(line: str, by: int) -> str:
    """A line of the diff; the numbers in its heading count from the beginning of the whole file."""
    if not line.startswith("@@"):
        return line
    marks = (_shifted(mark, by) if mark[0] in "-+" else mark for mark in line.split(" "))
    return " ".join(marks)


def _shifted(mark: str, by: int) -> str:
    start, comma, length = mark[1:].partition(",")
    return f"{mark[0]}{int(start) + by}{comma}{length}"
