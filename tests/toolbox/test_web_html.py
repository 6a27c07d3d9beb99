"""HTML becomes text that reads well, and what a browser would not show is not in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.toolbox.web.html_text import Page

BASE = "https://example.org/news/"


def text(html: str, base: str | None = None, limit: int = 100_000) -> str:
    return Page(html, base, limit).text()


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("plain &amp; simple", "plain & simple"),
        ("<p>one <b>two</b>\n three</p><p>four</p>five", "one two three\n\nfour\n\nfive"),
        ("<b>a</b><i>b</i> <u> c </u>d", "ab c d"),
        ("a<br>b<div>c</div><div><div>d</div></div>", "a\nb\nc\nd"),
        ("<h1>A <em>b</em></h1>c<h3>d</h3><h2></h2>", "# A b\n\nc\n\n### d"),
        ("<ul><li>a<li><p>b</p><ol><li>c</ol><li></ul>d", "- a\n- b\n  - c\n\nd"),
        ("<li>alone", "- alone"),
        (
            "<pre><code>if x:\n    <b>y</b>\n\tz</code></pre>end",
            "```\nif x:\n    y\n\tz\n```\n\nend",
        ),
        ("<table><tr><th>a<th>b<tr><td><td>2 <td><p>3</p></table>", "a | b |\n| 2 | 3 |"),
        ("a<blockquote>b</blockquote>", "a\n\nb"),
        ("<dl><dt>a<dd>b</dl>", "a\nb"),
        ("中文<b>字</b>\u00a0好", "中文字 好"),
        ("", ""),
    ],
)
def test_shapes_stay(html: str, expected: str) -> None:
    assert text(html) == expected


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>evil()</script>",
        "<script><!-- <script>evil()</script> --></script>",
        "<style>p { evil: 1 }</style>",
        "<!-- evil -->",
        "<!evil>",
        "<?evil?>",
        "<noscript>evil</noscript>",
        "<template>evil</template>",
        "<textarea>evil</textarea>",
        "<select><option>evil</select>",
        "<button>evil</button>",
        "<iframe>evil</iframe>",
        "<svg><title>evil</title><text>evil</text></svg>",
        "<object>evil</object>",
        "<p hidden>evil",
        "<p aria-hidden=true>evil",
        '<p style="color: red; DISPLAY : none">evil',
        '<p style="visibility:hidden"><b>evil</b>',
        '<img alt="evil" onerror="evil()">',
        '<p title="evil">',
        "<input value=evil>",
        "<nav>evil</nav>",
        "<footer>evil</footer>",
        "<aside>evil</aside>",
    ],
)
def test_what_a_browser_does_not_show_as_text_is_left_out(hidden: str) -> None:
    assert text(f"<body><p>before</p>{hidden}</p><div>after</div>", BASE) in (
        "before\n\nafter",
        "before",
    )


def test_an_unclosed_script_swallows_the_rest() -> None:
    assert text("<p>before<script>evil() <p>after") == "before"


def test_the_main_part_stands_for_the_page() -> None:
    story = "<p>" + "word " * 100 + "</p>"
    expected = ("word " * 100).strip()
    for tag in ("main", "article", "div role=main"):
        part = f"<{tag}>{story}<nav>evil</nav></{tag.split()[0]}>"
        page = f"<p>around</p><section>{part}</section><p>below</p>"
        assert text(page) == expected
        assert text(page + page).startswith("around")
    assert text("<p>around</p><main>little</main>") == "around\n\nlittle"


def test_a_page_of_navigation_alone_is_shown() -> None:
    assert text("<nav><a href=/a>a</a> <a href=/b>b</a></nav>") == "a b"


def test_links_are_shown_when_asked_for() -> None:
    html = (
        '<a href="a?x=1&amp;y=2">one</a>, <a href="/b"><div>two</div></a> <a href="#c">three</a> '
        '<a href="javascript:evil()">four</a> <a href="//[">five</a> <a href="/d"><img></a>'
        '<a href="http://other.example/">six</a>'
    )
    assert text(html, BASE) == (
        "[one](https://example.org/news/a?x=1&y=2), [two](https://example.org/b)\n"
        "three four five [six](http://other.example/)"
    )
    assert text(html) == "one,\ntwo\nthree four five six"


def test_the_title_is_one_line_of_bounded_length() -> None:
    assert Page("<title> a\n <b>b</b>&amp;</title>", None, 10).title() == "a <b>b</b>&"
    assert Page("<p>a", None, 10).title() == ""
    assert Page(f"<title>{'a' * 1000}</title>", None, 10).title() == "a" * 300


def test_the_text_is_cut_at_the_limit_even_where_links_are_long() -> None:
    html = "<a href=/>x</a> " * 1000
    assert len(text(html, f"https://example.org/{'y' * 2000}", 5000)) <= 5000


@pytest.mark.parametrize(
    ("html", "begins"),
    [
        ("<div>" * 10_000 + "deep", "deep"),
        ("<b>" * 100_000 + "deep", "deep"),
        ("<table><tr><td>" * 30_000 + "deep", "deep"),
        ("<ul><li>" * 3000 + "deep", "- "),
        ("<svg><foreignObject>" * 30_000 + "x", ""),
        ("<template>" * 100_000 + "x", ""),
        (f'<p title="{"y" * 1_000_000}">x', "x"),
        ("<" * 1_000_000, "<<<"),
        ("&" * 1_000_000, "&&&"),
        ("&lt;" * 300_000, "<<<"),
        ("<!--" * 300_000, ""),
        ("<![CDATA[" * 100_000, ""),
        ("<script>" * 100_000, ""),
        ("<a><b><div>" * 5000 + "x", "x"),
        ("\0" * 1000 + "x", ""),
    ],
)
def test_hostile_pages_are_read(html: str, begins: str) -> None:
    assert text(html, BASE, 1_000_000).startswith(begins)


TAGS = st.sampled_from(
    ["p", "li", "ul", "pre", "td", "table", "a href=x", "h1", "b", "br", "script"]
)
PIECES = st.one_of(
    TAGS.map(lambda tag: f"<{tag}>"),
    TAGS.map(lambda tag: f"</{tag.split()[0]}>"),
    st.text(max_size=5),
)


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(1, 60))
def test_any_markup_gives_a_text_within_the_limit(html: str, limit: int) -> None:
    assert len(text(html, BASE, limit)) <= limit
