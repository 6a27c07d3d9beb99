"""Answers become text in a process of their own, which a hostile page cannot keep."""

import asyncio
import codecs
import os
import sys
import time
from pathlib import Path

import pytest

from session_runtime.config.web import WebSettings
from session_runtime.errors import ConfigError, ToolError
from session_runtime.services import Fetched, WebPage
from session_runtime.toolbox.web import reading
from session_runtime.toolbox.web.charset import decoded
from session_runtime.toolbox.web.client import open_web
from session_runtime.toolbox.web.page_text import visible
from session_runtime.toolbox.web.reading import open_page_reader, read_page
from tests.toolbox.sites import client, page, routes, says, site
from tests.toolbox.turns import turns

URL = "https://example.org/a"


def fetched(
    body: bytes, media_type: str, charset: str | None = None, *, cut: bool = False
) -> Fetched:
    return Fetched(URL, 200, media_type, charset, body, cut)


async def read(answer: Fetched, *, links: bool = False, max_chars: int = 100_000) -> WebPage:
    return await read_page(answer, open_page_reader(), links=links, max_chars=max_chars)


async def test_html_is_read_without_its_markup() -> None:
    html = "<title>Ünïcode</title><p>One <a href=/b>two</a>.<script>evil()</script>"
    answer = fetched(html.encode("latin-1"), "text/html", "latin-1")
    assert await read(answer) == WebPage(
        URL, "text/html", "Ünïcode", "One two.", len(answer.body), truncated=False
    )
    assert (await read(answer, links=True)).text == "One [two](https://example.org/b)."


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "text/csv", "application/json", "application/ld+json", "application/rss+xml"],
)
async def test_other_texts_are_shown_as_they_are(media_type: str) -> None:
    shown = await read(fetched(b'{"a": "<b>"}', media_type, cut=True))
    assert shown == WebPage(URL, media_type, "", '{"a": "<b>"}', 12, truncated=True)


@pytest.mark.parametrize("media_type", ["application/pdf", "image/svg", "application/octet-stream"])
async def test_what_is_no_text_is_told_by_its_type_and_size(media_type: str) -> None:
    assert await read(fetched(b"%PDF", media_type)) == WebPage(
        URL, media_type, "", None, 4, truncated=False
    )


async def test_characters_that_hide_text_are_left_out() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    body = f"<title>a\u202eb</title>x{hidden}y\u2066z \U0001f469\u200d\U0001f52c"
    shown = await read(fetched(body.encode(), "text/html"))
    assert (shown.title, shown.text) == ("ab", "xyz \U0001f469\u200d\U0001f52c")
    selectors = "".join(chr(0xE0100 + byte) for byte in b"obey")
    assert (await read(fetched(f"a{selectors}".encode(), "text/plain"))).text == "a"
    assert (await read(fetched(b"a\x1b[2J\tb\r\nc", "text/plain"))).text == "a[2J\tb\nc"


async def test_a_text_that_links_made_too_long_is_marked_as_cut() -> None:
    answer = fetched(b"<a href=/long>x</a> " * 50, "text/html")
    shown = await read(answer, links=True, max_chars=len(answer.body))
    assert shown.truncated
    assert len(shown.text or "") <= len(answer.body)


async def test_a_text_without_markup_is_cut_at_the_limit_and_says_so() -> None:
    answer = fetched(b"hello", "text/plain")
    assert await read(answer, max_chars=5) == WebPage(
        URL, "text/plain", "", "hello", 5, truncated=False
    )
    assert await read(answer, max_chars=4) == WebPage(
        URL, "text/plain", "", "hell", 5, truncated=True
    )


def children() -> list[str]:
    """The processes that this one has started and not waited for."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [pid for path in tasks for pid in path.read_text().split()]


def pipes() -> int:
    """How many ends of pipes this process holds."""
    opened = (path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return sum(str(target).startswith("pipe:") for target in opened)


@pytest.mark.requirement("SEC-2")
@pytest.mark.parametrize(
    ("body", "media_type", "charset"),
    [
        (b"\x81" * 2_000_000, "text/plain", "cp1252"),
        (b"\x81" * 2_000_000, "text/html", "cp1252"),
        (codecs.BOM_UTF16_LE + b"\0\xd8" * 1_000_000, "application/json", None),
        (b"a\1" * 1_000_000, "text/plain", None),
    ],
)
async def test_the_loop_has_its_turns_while_a_hostile_page_is_read(
    body: bytes, media_type: str, charset: str | None
) -> None:
    began = time.thread_time()
    visible(decoded(body, charset))
    needed = time.thread_time() - began
    async with turns() as seen:
        shown = await read(fetched(body, media_type, charset), max_chars=2_000_000)
    assert shown.text
    assert seen.longest_s < needed / 4


@pytest.mark.requirement("SEC-2")
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
async def test_a_page_that_would_take_minutes_is_given_up_and_its_process_ended() -> None:
    html = "<p " + " ".join(f"a{number}" for number in range(200_000)) + ">x"
    async with site(says(html, "text/html")) as served:
        web = client(served, timeout_s=1.0)
        with pytest.raises(ToolError, match="within 1 s") as caught:
            await web.read(served.url())
    assert caught.value.code == "web.timeout"
    assert children() == []


async def test_the_process_sees_no_variable_of_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, os\nprint(json.dumps({'title': '', 'cut': False}))\nprint(sorted(os.environ))"
    )
    monkeypatch.setattr(reading, "_PROGRAM", program)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    text = (await read(fetched(b"", "text/html"))).text or ""
    assert "API_KEY" not in text
    assert "PYTHONPATH" in text


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
async def test_a_process_that_writes_without_end_is_ended_and_its_pipes_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text("while True:\n    print('x' * 10_000)")
    monkeypatch.setattr(reading, "_PROGRAM", program)
    before = pipes()
    with pytest.raises(ToolError, match="too large or too tangled"):
        await read(fetched(b"<p>a", "text/html"), max_chars=1_000_000)
    with pytest.raises(
        TimeoutError
    ):  # this one is never taken in by the program, nor its words by us
        async with asyncio.timeout(0.5):
            await read(fetched(b"<p>a" * 1_000_000, "text/html"))
    assert children() == []
    assert pipes() == before


async def test_a_process_that_crashes_costs_that_page_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    async with site(routes({"/a": page("<p>a" * 100_000, "text/html"), "/b": page("b")})) as served:
        web = client(served, max_concurrent=1)
        with monkeypatch.context() as patched:
            patched.setattr(reading, "_PROGRAM", program)
            with pytest.raises(ToolError, match="too tangled") as caught:
                await web.read(served.url("/a"))
        assert (await web.read(served.url("/b"))).text == "b"
    assert caught.value.code == "web.unreadable"
    assert "reading a page failed (exit code -11)" in caplog.text


async def test_a_process_that_cannot_be_started_is_told_without_its_path(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ToolError, match=r"^Pages cannot be read here for now\.$"):
        await read(fetched(b"<p>a", "text/html"))
    assert "/nowhere/python" in caplog.text


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("404 Nope", "answered 404 Not Found."),
        ("500 x", "500 Internal"),
        ("799 x", "answered 799."),
    ],
)
async def test_an_answer_that_is_no_success_is_told(status: str, told: str) -> None:
    async with site(routes({"/": page("<p>secret", "text/html", status)})) as served:
        with pytest.raises(ToolError, match=told) as caught:
            await client(served).read(served.url())
        assert caught.value.code == "web.status"
        assert (await client(served).fetch(served.url())).body == b"<p>secret"


@pytest.mark.parametrize("content_type", [None, "nonsense", "text/html\x7f", "; charset=utf-8"])
async def test_a_page_without_a_type_is_no_text(content_type: str | None) -> None:
    async with site(routes({"/": page("hello", content_type)})) as served:
        shown = await client(served).read(served.url())
    assert (shown.media_type, shown.text) == ("application/octet-stream", None)


def test_without_the_parser_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        open_web(WebSettings(enabled=True))
    assert str(caught.value) == (
        "web.enabled: needs the package selectolax: pip install '.[web]' in the source tree of"
        " session-runtime"
    )
