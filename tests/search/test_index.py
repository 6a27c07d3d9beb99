import tracemalloc

import pytest

from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import (
    FieldWeights,
    SearchIndex,
    build_index,
    index_tools,
    open_session,
)
from tests.search.catalogues import MUSIC, index_of, tool


def names_of(specs: tuple[ToolSpec, ...]) -> list[str]:
    return [spec.name for spec in specs]


@pytest.mark.requirement("INT-6")
def test_plain_definitions_are_indexed_and_ranked_under_the_names_given() -> None:
    index = index_tools(
        [
            {"name": "Get Weather!", "description": "forecast for a city", "parameters": None},
            {"name": "b", "description": "news", "parameters": {"type": "object"}},
        ]
    )
    assert [name for name, _ in index.rank("weather", 5)] == ["Get Weather!"]
    assert open_session(index).search("forecast")["loaded"] == ["Get Weather!"]


@pytest.mark.requirement("INT-6")
def test_no_definition_is_rejected_however_odd() -> None:
    index = index_tools(
        [
            {"name": "a", "description": "first"},
            {"name": "a", "description": "second"},
            {},
            None,  # type: ignore[list-item]
            {"name": None, "description": None},
            {"name": 7, "description": ["x"], "parameters": "no"},
            {
                "name": "x" * 300,
                "parameters": {"properties": {"p": None, "q": 3}, "anyOf": {}, "enum": 1},
            },
            {"name": "line\nbreak", "parameters": {"properties": [], "items": [1, None]}},
            {
                "name": "\ud800",
                "description": "\udfff broken",
                "aliases": "no",
                "examples": [1, "yes"],
            },
        ]
    )
    assert index.names == (
        "a",
        "unnamed_2",
        "unnamed_3",
        "unnamed_4",
        "unnamed_5",
        "x" * 300,
        "line\nbreak",
        "\ud800",
    )
    assert index.rank("first", 5)[0][0] == "a"
    assert index.rank("second", 5) == []
    assert open_session(index).directory.count("\n") == len(index.names) + 1


@pytest.mark.requirement("INT-6")
def test_an_empty_catalogue_can_be_searched() -> None:
    index = index_tools([])
    assert index.rank("anything", 5) == []
    assert open_session(index).search("anything")["not_found"] == ["anything"]


@pytest.mark.requirement("TS-8")
def test_nested_parameters_are_searched_and_malformed_schemas_do_no_harm() -> None:
    nested = {
        "type": "object",
        "properties": {
            "outer": {
                "type": "array",
                "items": {"anyOf": [{"properties": {"zebra": {"enum": ["okapi"]}}}]},
            },
            "broken": None,
        },
        "$defs": {"D": {"properties": {"gnu": {"description": "like a buffalo"}}}},
    }
    index = index_tools(
        [{"name": "a", "parameters": nested}, {"name": "b", "description": "cattle"}]
    )
    for word in ("zebra", "okapi", "gnu", "buffalo"):
        assert [name for name, _ in index.rank(word, 5)] == ["a"]


@pytest.mark.requirement("TS-8")
def test_a_deeply_nested_schema_is_read_to_a_bound() -> None:
    schema: dict[str, object] = {"description": "bottom"}
    for _ in range(5_000):
        schema = {"type": "array", "items": schema}
    index = index_tools([{"name": "deep", "parameters": {"properties": {"top": schema}}}])
    assert index.rank("top", 1)[0][0] == "deep"
    assert index.rank("bottom", 1) == []


@pytest.mark.requirement("TS-14")
def test_a_changed_tool_is_read_anew_and_the_old_index_stays_as_it_was() -> None:
    old = index_of(MUSIC)
    changed = (
        tool("web.search", "Looks for volcanoes"),
        *(s for s in MUSIC if s.name != "web.search"),
    )
    names = build_wire_names(names_of(changed), "__")
    new = build_index(changed, names, FieldWeights(), previous=old)
    assert new.rank("volcano", 5) == index_of(changed).rank("volcano", 5) != []
    assert old.rank("volcano", 5) == []
    assert old.rank("web", 1)[0][0] == "web.search"


@pytest.mark.requirement("TS-14")
def test_words_of_tools_that_are_gone_do_not_pile_up() -> None:
    index = index_of(MUSIC)
    for generation in range(30):
        specs = tuple(
            tool(f"t{generation}.tool_{n}", f"only{generation}word{n}") for n in range(30)
        )
        index = build_index(
            specs, build_wire_names(names_of(specs), "__"), FieldWeights(), previous=index
        )
    fresh = index_of(specs)
    assert len(index.corpus.lexicon) < 3 * len(fresh.corpus.lexicon)
    assert index.rank("tool", 5) == fresh.rank("tool", 5)


@pytest.mark.requirement("TS-8")
def test_a_field_with_weight_zero_is_left_out_of_the_score() -> None:
    specs = (tool("a.one", "volcano"), tool("b.two", "", {"volcano": ""}))
    weights = FieldWeights(description=0)
    index = build_index(specs, build_wire_names(names_of(specs), "__"), weights)
    assert [name for name, _ in index.rank("volcano", 5)] == ["b.two"]


@pytest.mark.requirement("REG-3")
def test_hints_and_examples_of_an_author_are_searched() -> None:
    specs = (
        tool("a.one", "", search_hints=("volcano",)),
        tool("b.two", "", examples=("when does it erupt",)),
        tool("c.three", "something else"),
    )
    index = index_of(specs)
    assert [index.rank(word, 1)[0][0] for word in ("volcano", "erupt")] == ["a.one", "b.two"]


@pytest.mark.requirement("TS-14")
def test_views_are_kept_up_to_so_much_memory_but_always_the_last_two() -> None:
    corpus = index_of(MUSIC).corpus
    roomy, narrow = SearchIndex(corpus), SearchIndex(corpus, views_bytes=0)
    for index, kept in ((roomy, 4), (narrow, 2)):
        masks = [index.full_mask & ~(1 << at) for at in range(4)]
        views = [index.view(mask) for mask in masks]
        again = [index.view(mask) for mask in reversed(masks)][::-1]
        assert [one is other for one, other in zip(views, again, strict=True)].count(True) == kept


@pytest.mark.requirement("TS-14")
def test_a_view_takes_no_more_memory_than_it_is_counted_with() -> None:
    specs = [tool(f"g.do_{n}_thing", f"does thing {n} for word{n} and {n % 7}") for n in range(400)]
    index = index_of(specs)
    view, few = index.view(index.full_mask), index.view(0b111)
    view.rank("warm up", 5)
    tracemalloc.start()
    try:
        fresh = SearchIndex(index.corpus).own_view()
        for n in range(400):
            fresh.rank(f"do thing {n} word{n} and things", 5)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0 < taken < fresh.most_bytes == view.most_bytes
    assert few.most_bytes < view.most_bytes
