"""From HTML to text that reads well; it takes place in the process of ``page_text`` alone."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_TITLE_CHARS: Final = 300

_UNSEEN: Final = frozenset(
    "script style noscript template iframe frameset object embed svg math canvas audio video head button "
    "select datalist input textarea dialog".split()
)
_FURNITURE: Final = frozenset("nav aside footer menu".split())
_BLOCKS: Final = frozenset(
    "address article body center dd details div dl dt fieldset figcaption figure footer form header html "
    "li main nav section summary tr".split()
)
_PARAGRAPHS: Final = frozenset("p blockquote h1 h2 h3 h4 h5 h6 hr ol pre table ul".split())
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_MAIN: Final = ("main, [role=main]", "article")
_LITTLE_CHARS: Final = 200
_MAX_INDENT: Final = 8


class Writer:
    """Puts pieces of text together, up to ``limit`` characters: blanks fold, blocks begin on new lines.

    A prefix is written with the first text after it; if there is none, it leaves no trace.
    """

    def __init__(self, limit: int) -> None:
        self._pieces: list[str] = []
        self._left = limit
        self._prefixes: list[str] = []
        self._breaks = 0
        self._blank = False

    @property
    def full(self) -> bool:
        """Whether nothing more can be written."""
        return self._left <= 0

    def text(self) -> str:
        """All that was written."""
        return "".join(self._pieces).strip()

    def break_lines(self, count: int) -> None:
        """Have ``count`` line breaks before the next text, unless more are due."""
        if not self._prefixes:
            self._breaks = max(self._breaks, count)

    def begin(self, prefix: str) -> None:
        """Have ``prefix`` before the next text."""
        self._prefixes.append(prefix)

    def end(self, suffix: str = "") -> None:
        """Put ``suffix`` right behind what was written since the last ``begin``, or forget that one."""
        if self._prefixes:
            self._prefixes.pop()
        else:
            self.attach(suffix)

    def end_cell(self) -> None:
        """End a cell that was begun with an empty prefix: also an empty one has its place in a row."""
        if self._prefixes:
            self._prefixes.pop()
            self._blank = True
            self.write("|")
        else:
            self.attach(" |")
        self._breaks, self._blank = 0, True

    def attach(self, text: str) -> None:
        """Put text right behind what was written last."""
        self._pieces.append(text[: max(self._left, 0)])
        self._left -= len(text)

    def flow(self, text: str) -> None:
        """Write running text, in which all blanks are the same."""
        words = " ".join(text.split())
        self._blank |= text[:1].isspace()
        if words:
            self.write(words)
            self._blank = text[-1:].isspace()

    def write(self, text: str) -> None:
        """Write text as it is, after whatever is due before it."""
        if self._pieces:
            self.attach("\n" * self._breaks or " " * self._blank)
        self.attach("".join(self._prefixes))
        self.attach(text)
        self._prefixes.clear()
        self._breaks, self._blank = 0, False


class Page:
    """A page as a tree; ``base`` is the address that links count from, None to leave links out."""

    def __init__(self, html: str, base: str | None, limit: int) -> None:
        self._tree = LexborHTMLParser(html)
        self._base = base
        self._limit = limit

    def title(self) -> str:
        """The title on one line, cut to size."""
        title = self._tree.css_first("title")
        return " ".join(title.text().split())[:MAX_TITLE_CHARS] if title is not None else ""

    def text(self) -> str:
        """The page's main text, headings, lists, tables and code shaped as in Markdown.

        That is what stands in the one <main> or <article>, if there is one with something in it, else the
        body without navigation. What a browser would not show as text is left out.
        """
        for selector in _MAIN:
            found = self._tree.css(selector)
            text = self._rendered(found[0], _UNSEEN | _FURNITURE) if len(found) == 1 else ""
            if len(text) > _LITTLE_CHARS:
                return text
        body = self._tree.body
        if body is None:
            return ""
        return self._rendered(body, _UNSEEN | _FURNITURE) or self._rendered(body, _UNSEEN)

    def _rendered(self, root: LexborNode, skipped: frozenset[str]) -> str:
        writer = Writer(self._limit)
        renderer = _Renderer(writer, self._base)
        for node, entered in walk(root, skipped):
            if writer.full:
                break
            if node.is_text_node:
                renderer.text(node)
            elif entered:
                renderer.enter(node)
            else:
                renderer.leave(node)
        return writer.text()


class _Renderer:
    """Turns the nodes of a page into calls of a writer; counts the lists and <pre> that it is in."""

    def __init__(self, writer: Writer, base: str | None) -> None:
        self._writer = writer
        self._base = base
        self._lists = 0
        self._verbatim = 0

    def text(self, node: LexborNode) -> None:
        write = self._writer.write if self._verbatim else self._writer.flow
        write(node.text_content or "")

    def enter(self, node: LexborNode) -> None:
        tag = node.tag or ""
        self._break_around(tag)
        match tag:
            case "ul" | "ol":
                self._lists += 1
            case "li":
                self._writer.begin("  " * min(self._lists - 1, _MAX_INDENT) + "- ")
            case "pre":
                self._verbatim += 1
                self._writer.begin("```\n")
            case "td" | "th":
                self._writer.begin("")
            case "a" if self._link(node) is not None:
                self._writer.begin("[")
            case "br":
                self._writer.break_lines(1)
            case _ if tag in _HEADINGS:
                self._writer.begin(_HEADINGS[tag])

    def leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        match tag:
            case "ul" | "ol":
                self._lists -= 1
            case "pre":
                self._verbatim -= 1
                self._writer.end("\n```")
            case "td" | "th":
                self._writer.end_cell()
            case "a" if (link := self._link(node)) is not None:
                self._writer.end(f"]({link})")
            case _ if tag == "li" or tag in _HEADINGS:
                self._writer.end()
        self._break_around(tag)

    def _break_around(self, tag: str) -> None:
        if tag in _PARAGRAPHS:
            self._writer.break_lines(1 if self._lists else 2)
        elif tag in _BLOCKS:
            self._writer.break_lines(1)

    def _link(self, node: LexborNode) -> str | None:
        """Where a link leads; None if links are left out, or it leads nowhere or within the page."""
        reference = (node.attrs.get("href") or "").strip()
        if self._base is None or not reference or reference.startswith("#"):
            return None
        try:
            link = urljoin(self._base, reference)
        except ValueError:
            return None
        return link if link.startswith(("http://", "https://")) else None


def walk(root: LexborNode, skipped: frozenset[str]) -> Iterator[tuple[LexborNode, bool]]:
    """All that can be seen: texts once, elements when they are entered (True) and left (False).

    Without recursion, since a page may nest as deep as it likes.
    """
    node, depth = root, 0
    while True:
        is_element = node.is_element_node
        seen = node.is_text_node or (is_element and not is_hidden(node, skipped))
        if seen:
            yield node, True
        inner = node.child if seen and is_element else None
        if inner is not None:
            node, depth = inner, depth + 1
            continue
        if seen and is_element:
            yield node, False
        while depth and node.next is None and node.parent is not None:
            node, depth = node.parent, depth - 1
            yield node, False
        if not depth or node.next is None:
            return
        node = node.next


def is_hidden(node: LexborNode, skipped: frozenset[str]) -> bool:
    """Whether a browser shows nothing of an element, as far as the element itself tells."""
    if node.tag in skipped:
        return True
    attributes = node.attrs
    if "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return True
    style = "".join((attributes.get("style") or "").lower().split())
    return "display:none" in style or "visibility:hidden" in style
