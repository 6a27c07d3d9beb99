"""From an answer to text that a model can read; HTML is read in a process that can be stopped.

A page can keep any parser of HTML busy for minutes (a hundred thousand attributes are enough), and the
fastest ones are written in C. Neither may hold up or end the daemon.
"""

import asyncio
import importlib.util
import json
import logging
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.errors import ConfigError, Problem, ToolError
from session_runtime.services import Fetched, WebPage
from session_runtime.toolbox.web.charset import decoded

_PROGRAM: Final = Path(__file__).with_name("html_text.py")
_PARSER: Final = "selectolax"
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/yaml"}
)
_TEXT_SUFFIXES: Final = ("+json", "+xml", "+yaml")

# Characters that show nothing but can hold a text, or turn the order of what is shown around.
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HtmlReader:
    """Starts the program that reads HTML; ``libraries`` is the folder that holds its parser."""

    libraries: str

    async def read(self, html: str, base: str | None, limit: int) -> tuple[str, str]:
        """Title and text of a page, the text cut at ``limit`` characters; links if there is a ``base``.

        ToolError ``web.unreadable`` if the program failed; it is killed when the caller is cancelled.
        """
        asked = json.dumps({"base": base, "limit": limit}).encode() + b"\n"
        process = await self._start()
        try:
            answer, errors = await process.communicate(asked + html.encode("utf-8", "replace"))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            words = errors[-1000:].decode("utf-8", "replace")
            _log.warning("reading a page failed (exit code %s): %s", process.returncode, words)
            raise ToolError(
                "The page is too large or too tangled to be read as text.", code="web.unreadable"
            )
        read = json.loads(answer)
        return read["title"], read["text"]

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-S", "-P", str(_PROGRAM)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={"PYTHONPATH": self.libraries},  # no secret of the daemon's environment
            )
        except OSError as error:
            _log.error("the program that reads pages cannot be started: %s", error)
            raise ToolError("HTML cannot be read here for now.", code="web.unreadable") from error


def open_html_reader() -> HtmlReader:
    """Find the HTML parser; ConfigError says how to install it."""
    found = importlib.util.find_spec(_PARSER)
    if found is None or found.origin is None:
        problem = "needs the package selectolax: pip install 'session-runtime[web]'"
        raise ConfigError([Problem(problem, key="web.enabled")])
    return HtmlReader(str(Path(found.origin).parents[1]))


async def read_page(
    fetched: Fetched, reader: HtmlReader, *, links: bool, max_chars: int
) -> WebPage:
    """What a successful answer says, as text without invisible characters; see ``Web.read``.

    The text of HTML is cut at ``max_chars``: links can make it longer than the page was.
    """
    title, text = "", None
    if fetched.media_type in _HTML:
        html = decoded(fetched.body, fetched.charset)
        title, text = await reader.read(html, fetched.url if links else None, max_chars)
    elif _is_text(fetched.media_type):
        text = decoded(fetched.body, fetched.charset)
    return WebPage(
        url=fetched.url,
        media_type=fetched.media_type,
        title=_visible(title),
        text=None if text is None else _visible(text),
        size=len(fetched.body),
        truncated=fetched.truncated or (text is not None and len(text) >= max_chars),
    )


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", text)


def _is_text(media_type: str) -> bool:
    return (
        media_type.startswith("text/")
        or media_type in _TEXT_TYPES
        or media_type.endswith(_TEXT_SUFFIXES)
    )
