"""Answers become text in a process of their own, which a hostile page cannot keep."""

import os
import sys
from pathlib import Path

import pytest

from session_runtime.config.web import WebSettings
from session_runtime.errors import ConfigError, ToolError
from session_runtime.services import Fetched, WebPage
from session_runtime.toolbox.web import reading
from session_runtime.toolbox.web.client import open_web
from session_runtime.toolbox.web.reading import HtmlReader, open_html_reader, read_page
from tests.toolbox.sites import client, page, routes, says, site

URL = "https://example.org/a"


def fetched(
    body: bytes, media_type: str, charset: str | None = None, *, cut: bool = False
) -> Fetched:
    return Fetched(URL, 200, media_type, charset, body, cut)


async def read(answer: Fetched, *, links: bool = False, max_chars: int = 100_000) -> WebPage:
    return await read_page(answer, open_html_reader(), links=links, max_chars=max_chars)


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
    assert (await read(fetched(b"a\x1b[2J\tb\r\nc", "text/plain"))).text == "a[2J\tb\nc"


async def test_a_text_that_links_made_too_long_is_marked_as_cut() -> None:
    answer = fetched(b"<a href=/long>x</a> " * 50, "text/html")
    shown = await read(answer, links=True, max_chars=len(answer.body))
    assert shown.truncated
    assert len(shown.text or "") <= len(answer.body)


def children() -> list[str]:
    """The processes that this one has started and not waited for."""
    tasks = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [pid for path in tasks for pid in path.read_text().split()]


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
        "import json, os\nprint(json.dumps({'title': '', 'text': str(sorted(os.environ))}))"
    )
    monkeypatch.setattr(reading, "_PROGRAM", program)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    _, text = await HtmlReader(str(tmp_path)).read("", None, 10)
    assert "API_KEY" not in text
    assert "PYTHONPATH" in text


async def test_a_process_that_crashes_costs_that_page_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(reading, "_PROGRAM", program)
    async with site(routes({"/a": page("<p>a", "text/html"), "/b": page("b")})) as served:
        web = client(served, max_concurrent=1)
        with pytest.raises(ToolError, match="too tangled") as caught:
            await web.read(served.url("/a"))
        assert (await web.read(served.url("/b"))).text == "b"
    assert caught.value.code == "web.unreadable"
    assert "reading a page failed (exit code -11)" in caplog.text


async def test_a_process_that_cannot_be_started_is_told_without_its_path(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ToolError, match=r"^HTML cannot be read here for now\.$"):
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
    assert open_web(WebSettings()) is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        open_web(WebSettings(enabled=True))
    assert str(caught.value) == (
        "web.enabled: needs the package selectolax: pip install 'session-runtime[web]'"
    )
