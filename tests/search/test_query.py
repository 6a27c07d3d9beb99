import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.search.query import Empty, Keywords, Select, Word, parse


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("select:a.b,c", ("a.b", "c")),
        ("  SELECT : a.b , c  ", ("a.b", "c")),
        ("Select：a，b、c", ("a", "b", "c")),
        ('select:"a","b"', ("a", "b")),
        ("select:'a'", ("a",)),
        ("`select:a`", ("a",)),
        ("select:`a`, `b`", ("a", "b")),
        ('select:["a", "b"]', ("a", "b")),
        ("select:a,,a,\nb,", ("a", "b")),
        ("select:a.", ("a.",)),
    ],
)
def test_select_is_read_whatever_stands_around_its_names(
    query: str, names: tuple[str, ...]
) -> None:
    found = parse(query)
    assert isinstance(found, Select)
    assert found.names == names


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize("query", ["", "  ", "''", '" "', "select:", "select: , ''", "\u3000"])
def test_a_query_without_content_is_empty(query: str) -> None:
    assert parse(query) == Empty()


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("member +user", (Word("member"), Word("user", required=True))),
        ("get_user GitHub", (Word("get_user", compound=True), Word("GitHub", compound=True))),
        ("on 2024-05-01 at +49123", (Word("on"), Word("2024-05-01"), Word("at"), Word("49123"))),
        ("news news", (Word("news"),)),
        ("执行Python代码", (Word("执行"), Word("Python"), Word("代码"))),
        ("C++ or a+b", (Word("C"), Word("or"), Word("a"), Word("b"))),
        ("selection:x", (Word("selection"), Word("x"))),
    ],
)
def test_keywords_become_words(query: str, words: tuple[Word, ...]) -> None:
    assert parse(query) == Keywords(query, words)


@pytest.mark.requirement("TS-8")
def test_a_word_that_stands_in_quotes_only_is_a_literal() -> None:
    found = parse("write 'hello world' to world.txt")
    assert isinstance(found, Keywords)
    assert [word.text for word in found.words if word.literal] == ["hello", "world"]


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "sentences"),
    [
        ("the weather, please", [["the", "weather", "please"]]),
        ("What is v1.2? Show it.", [["What", "is", "v1.2"], ["Show", "it"]]),
        ("查天气；订票。谢谢", [["查天气"], ["订票"], ["谢谢"]]),
    ],
)
def test_keywords_know_their_sentences(query: str, sentences: list[list[str]]) -> None:
    found = parse(query)
    assert isinstance(found, Keywords)
    assert [[word.text for word in words] for words in found.sentences] == sentences


@pytest.mark.requirement("TS-7")
@given(st.text())
def test_any_text_is_a_query(query: str) -> None:
    assert isinstance(parse(query), Empty | Select | Keywords)


@pytest.mark.requirement("TS-7")
@given(
    st.lists(
        st.from_regex(r"[a-z]{1,5}(\.[a-zA-Z_]{1,5})?", fullmatch=True), min_size=1, unique=True
    )
)
def test_selected_names_come_back_as_they_were_given(names: list[str]) -> None:
    assert parse("select:" + ",".join(names)) == Select(",".join(names), tuple(names))
