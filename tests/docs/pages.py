"""The project's Markdown pages as the tests of the examples see them: fenced blocks and links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: ``info`` is what follows the fence (``sh run``), ``line`` its first line.

    ``output`` is the block after it if that shows what this one prints (``text output``).
    """

    page: str
    line: int
    info: str
    text: str
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}:{self.info}"


def pages() -> tuple[Path, ...]:
    """README and every page below ``docs``."""
    return (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page in order; blocks of output belong to the one before them."""
    text = page.read_text("utf-8")
    found = list(_FENCE.finditer(text))
    for match, following in zip(found, [*found[1:], None], strict=False):
        if match["info"] == "text output":
            continue
        shown = following is not None and following["info"] == "text output"
        yield Block(
            str(page.relative_to(ROOT)),
            text.count("\n", 0, match.start()) + 1,
            match["info"].strip(),
            match["text"],
            following["text"] if following is not None and shown else None,
        )


def links(page: Path) -> Iterator[str]:
    """Targets of the links of a page that lead to other files of the project."""
    text = _FENCE.sub("", page.read_text("utf-8"))
    for match in _LINK.finditer(text):
        if not re.match(r"[a-z]+:|#", match["target"]):
            yield match["target"].partition("#")[0]


def prints(expected: str, actual: str) -> bool:
    """Whether ``actual`` contains ``expected``, in which ``...`` stands for anything.

    ``...`` as a line of its own stands for any number of lines, none included.
    """
    pattern = re.escape(expected.strip())
    pattern = pattern.replace(re.escape("\n...\n"), "\n(?:.*\n)?")
    pattern = pattern.replace(re.escape("..."), ".*")
    return re.search(pattern, actual, re.DOTALL) is not None
