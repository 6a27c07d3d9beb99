"""From an answer to text that a model can read, in a process that can be stopped.

A page can keep any parser of HTML busy for minutes (a hundred thousand attributes are enough), and the
fastest ones are written in C; even to decode hostile bytes takes a second. None of that may hold up or
end the daemon, so whatever grows with the page is done in the program ``page_text``.
"""

import asyncio
import codecs
import importlib.util
import json
import logging
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from session_runtime.errors import ConfigError, Problem, ToolError
from session_runtime.services import Fetched, WebPage

MOST_CHARS: Final = 2 * 1024 * 1024

_PROGRAM: Final = Path(__file__).with_name("page_text.py")
_SOURCES: Final = Path(__file__).resolve().parents[3]
_PARSER: Final = "selectolax"
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES: Final = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/yaml"}
)
_TEXT_SUFFIXES: Final = ("+json", "+xml", "+yaml")

_PIECE: Final = 64 * 1024
_MOST_HEAD_BYTES: Final = 4096
_MOST_ERROR_BYTES: Final = 64 * 1024
_SHOWN_ERROR_CHARS: Final = 1000
_END_S: Final = 1.0

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Text:
    """What a page says, without invisible characters; ``cut`` tells that there may be more."""

    title: str
    text: str
    cut: bool


@dataclass(frozen=True, slots=True)
class PageReader:
    """Starts the program that reads pages; ``libraries`` is the folder that holds its HTML parser."""

    libraries: str

    async def read(
        self, content: bytes, limit: int, *, html: bool, charset: str | None, base: str | None
    ) -> Text:
        """The text of a page, cut at ``limit`` characters, with the links of HTML if there is a ``base``.

        ToolError ``web.unreadable`` if the program failed; it is killed when the caller is cancelled.
        """
        asked = {"html": html, "charset": charset, "base": base, "limit": limit}
        process = await self._start()
        try:
            await _send(_pipe(process.stdin), json.dumps(asked).encode() + b"\n", content)
            answer = await _receive(_pipe(process.stdout), _MOST_HEAD_BYTES + 4 * limit)
            errors = await _receive(_pipe(process.stderr), _MOST_ERROR_BYTES)
            code = await process.wait()
        finally:
            await _end(process)
        if code != 0:
            words = errors[-_SHOWN_ERROR_CHARS:]
            _log.warning("reading a page failed (exit code %s): %s", code, words)
            raise _unreadable()
        head, _, text = answer.partition("\n")
        return Text(text=text, **json.loads(head))

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-S", "-P", str(_PROGRAM)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                # no secret of the daemon's environment
                env={"PYTHONPATH": os.pathsep.join((self.libraries, str(_SOURCES)))},
            )
        except OSError as error:
            _log.error("the program that reads pages cannot be started: %s", error)
            raise ToolError("Pages cannot be read here for now.", code="web.unreadable") from error


async def _send(stream: asyncio.StreamWriter, head: bytes, content: bytes) -> None:
    """Write all and close; a program that ended early is told by its exit code."""
    with suppress(ConnectionError):
        stream.write(head)
        for start in range(0, len(content), _PIECE):
            stream.write(content[start : start + _PIECE])
            await stream.drain()
    stream.close()


async def _receive(stream: asyncio.StreamReader, most: int) -> str:
    """Read to the end; ToolError ``web.unreadable`` above ``most`` bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces: list[str] = []
    while data := await stream.read(_PIECE):
        most -= len(data)
        if most < 0:
            raise _unreadable()
        pieces.append(decoder.decode(data))
        await asyncio.sleep(0)
    return "".join(pieces)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the program if it runs; its end is not noticed before everything it wrote is read."""
    if process.returncode is None:
        process.kill()
    with suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            for stream in (_pipe(process.stdout), _pipe(process.stderr)):
                while await stream.read(_PIECE):
                    pass
            await process.wait()


def _pipe(stream: T | None) -> T:
    """A pipe of the program, which was started with all three."""
    assert stream is not None
    return stream


def _unreadable() -> ToolError:
    return ToolError(
        "The page is too large or too tangled to be read as text.", code="web.unreadable"
    )


def open_page_reader() -> PageReader:
    """Find the HTML parser; ConfigError says how to install it."""
    found = importlib.util.find_spec(_PARSER)
    if found is None or found.origin is None:
        problem = "needs the package selectolax: pip install '.[web]' in the source tree of session-runtime"
        raise ConfigError([Problem(problem, key="web.enabled")])
    return PageReader(str(Path(found.origin).parents[1]))


async def read_page(
    fetched: Fetched, reader: PageReader, *, links: bool, max_chars: int
) -> WebPage:
    """What a successful answer says, as text without invisible characters; see ``Web.read``.

    The text is cut at ``max_chars``: links can make it longer than the page was.
    """
    is_html = fetched.media_type in _HTML
    read = None
    if is_html or _is_text(fetched.media_type):
        base = fetched.url if links else None
        read = await reader.read(
            fetched.body, max_chars, html=is_html, charset=fetched.charset, base=base
        )
    return WebPage(
        url=fetched.url,
        media_type=fetched.media_type,
        title=read.title if read is not None else "",
        text=read.text if read is not None else None,
        size=len(fetched.body),
        truncated=fetched.truncated or (read is not None and read.cut),
    )


def _is_text(media_type: str) -> bool:
    return (
        media_type.startswith("text/")
        or media_type in _TEXT_TYPES
        or media_type.endswith(_TEXT_SUFFIXES)
    )
