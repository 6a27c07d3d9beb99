"""What the words of a query say together: in sentences, side by side, for a group of tools."""

import pytest
from hypothesis import given

from session_runtime.registry.spec import ToolSpec
from session_runtime.search.deeds import NO_DEED, deed_of
from tests.search.catalogues import (
    builds_indexes,
    catalogues,
    queries,
    ranked,
    tool,
    view_of,
)


@pytest.mark.requirement("TS-8")
def test_a_tool_that_fits_one_sentence_comes_before_one_with_a_bit_of_each() -> None:
    view = view_of(
        tool("a.some", "weather and trains"),
        tool("b.other", "coast and city"),
        tool("c.first", "weather at the coast"),
        tool("d.second", "trains to the city"),
    )
    request = "Tell me the weather at the coast. Also look for trains to the city."
    assert ranked(view, request) == ["c.first", "d.second", "a.some", "b.other"]


@pytest.mark.requirement("TS-8")
def test_words_side_by_side_in_a_description_count_more_than_the_same_words_apart() -> None:
    together = tool("z.one", "Shows the exchange rate between two places")
    apart = tool("a.two", "Shows the rate between two exchange places")
    assert ranked(view_of(apart, together), "exchange rate") == ["z.one", "a.two"]


@pytest.mark.requirement("TS-8")
def test_two_words_find_a_name_that_writes_them_as_one() -> None:
    view = view_of(tool("keyvault.dump", "all there is"), *(tool(f"other.{at}") for at in "abc"))
    assert ranked(view, "key vault") == ["keyvault.dump"]


@pytest.mark.requirement("TS-8")
def test_a_tool_rises_with_the_best_match_of_its_group() -> None:
    best = tool("cinema.by_title", "films with that title")
    beside = tool("cinema.details", "details of one")
    stranger = tool("a.details", "details of one")
    assert ranked(view_of(stranger, beside, best), "films by title, with details") == [
        "cinema.by_title",
        "cinema.details",
        "a.details",
    ]


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize("quoted", ['"weather report"', "“weather report”", "<weather report>"])
def test_words_in_quotes_are_more_likely_a_value_than_what_is_asked_for(quoted: str) -> None:
    view = view_of(tool("a.weather_report", "weather report"), tool("z.write", "text"))
    assert ranked(view, f"write text {quoted[1:-1]}")[0] == "a.weather_report"
    assert ranked(view, f"write text {quoted}")[0] == "z.write"
    assert ranked(view, quoted)[0] == "a.weather_report"


@pytest.mark.requirement("TS-8")
def test_words_of_politeness_count_less_than_others_but_find_a_tool_of_that_name() -> None:
    view = view_of(tool("a.hope", "hope"), tool("z.shop", "shop"))
    assert ranked(view, "I hope to shop") == ["z.shop", "a.hope"]
    assert ranked(view, "hope") == ["a.hope"]


@pytest.mark.requirement("TS-8")
def test_a_tool_with_the_word_and_its_translation_comes_before_one_with_the_word_alone() -> None:
    both = tool("z.weather", "天气查询")
    alone = tool("a.lookup", "天气查询")
    assert ranked(view_of(alone, both), "天气查询") == ["z.weather", "a.lookup"]


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("show a page of my notebook", "notes.read"),
        ("please delete the page of my notebook", "notes.remove"),
        ("add a page to my notebook", "notes.append"),
        ("删除笔记", "notes.remove"),
    ],
)
def test_a_short_request_is_for_the_tool_that_does_such_a_deed(request_: str, name: str) -> None:
    specs: list[ToolSpec] = [
        tool(f"notes.{verb}", "A page of the notebook 笔记")
        for verb in ("read", "append", "remove", "update")
    ]
    assert ranked(view_of(*specs), request_)[0] == name


@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("get_user", "list all"),
        ("deleteMessage", "please remove it"),
        ("create", "新建文件"),
        ("set-title", "修改标题"),
    ],
)
def test_deeds_are_told_by_the_first_word_that_tells_one(text: str, same: str) -> None:
    assert deed_of((text,)) == deed_of((same,)) != NO_DEED
    assert deed_of(("nothing", "of", "it")) == NO_DEED


@pytest.mark.requirement("INT-5")
@pytest.mark.parametrize(
    "query",
    [
        "show page of notebook",
        "show 'a page'. delete the notebook",
        "note book",
        "read 'pages' of the notebook. page",
    ],
)
def test_the_parts_of_an_explanation_add_up_whatever_came_together(query: str) -> None:
    specs = [tool(f"notes.{verb}", "A page of the notebook") for verb in ("read", "remove")]
    for item in view_of(*specs, tool("a.page", "page of a book")).explain(query, 3):
        parts = item["parts"]
        assert isinstance(parts, list)
        assert sum(part["score"] for part in parts) == pytest.approx(item["score"])


@pytest.mark.requirement("INT-5")
@builds_indexes
@given(catalogues(), queries)
def test_the_parts_of_any_explanation_add_up_to_the_score(
    specs: tuple[ToolSpec, ...], query: str
) -> None:
    for item in view_of(*specs).explain(query, 12):
        parts = item["parts"]
        assert isinstance(parts, list)
        assert sum(part["score"] for part in parts) == pytest.approx(item["score"])
