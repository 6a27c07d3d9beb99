"""From the bytes of a page to text: a program, so that a hostile page has a process of its own.

Who starts it and how long it may take is decided in ``reading``. On standard input it takes one line of
JSON and the page after it; on standard output it gives one line of JSON and the text after it.
"""

import json
import re
import resource
import sys
from typing import Final

from session_runtime.toolbox.web.charset import decoded
from session_runtime.toolbox.web.html_text import Page

_CPU_S: Final = 30
_MEMORY_BYTES: Final = 1024**3

# Characters that show nothing but can hold a text, or turn the order of what is shown around.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """The text without invisible characters."""
    return _INVISIBLE.sub("", text)


def html(content: str, base: str | None, limit: int) -> tuple[str, str, bool]:
    """Title and text of a page, the text cut at ``limit`` characters, and whether it may be cut."""
    page = Page(content, base, limit)
    text = page.text()
    return visible(page.title()), visible(text), len(text) >= limit


def plain(content: str, limit: int) -> tuple[str, str, bool]:
    """What ``html`` gives, of a text without markup."""
    text = visible(content)
    return "", text[:limit], len(text) > limit


def _limit_process() -> None:
    """Bound time and memory from within, in case that whoever started this cannot."""
    for which, most in ((resource.RLIMIT_CPU, _CPU_S), (resource.RLIMIT_AS, _MEMORY_BYTES)):
        _, hard = resource.getrlimit(which)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (most, most))


def main() -> None:
    """Read one page."""
    _limit_process()
    asked = json.loads(sys.stdin.buffer.readline())
    content = decoded(sys.stdin.buffer.read(), asked["charset"])
    limit = asked["limit"]
    title, text, cut = (
        html(content, asked["base"], limit) if asked["html"] else plain(content, limit)
    )
    head = json.dumps({"title": title, "cut": cut})
    sys.stdout.buffer.write(f"{head}\n{text}".encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
