"""A tool that may not be seen leaves no trace."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import (
    FieldWeights,
    SearchIndex,
    SearchView,
    ToolSearchSession,
    build_index,
    open_session,
    resolve_names,
)
from tests.search.catalogues import (
    MUSIC,
    builds_indexes,
    catalogues,
    index_of,
    inflected_catalogues,
    near_queries,
    queries,
    ranked,
    tool,
    view_of,
)

any_queries = st.one_of(queries, near_queries)


@st.composite
def filtered(draw: st.DrawFn) -> tuple[SearchView, SearchIndex, tuple[ToolSpec, ...]]:
    """A view on some of the tools of a catalogue, and an index that never saw the others.

    The index has the visible tools in another order, and may have taken them from one before it.
    """
    specs = draw(st.one_of(catalogues(), inflected_catalogues()))
    kept = draw(st.lists(st.booleans(), min_size=len(specs), max_size=len(specs)))
    visible = [spec for spec, keep in zip(specs, kept, strict=True) if keep]
    mask = sum(1 << at for at, keep in enumerate(kept) if keep)
    whole = index_of(specs)
    shuffled = draw(st.permutations(visible))
    names = build_wire_names([spec.name for spec in visible], "__")
    previous = draw(st.sampled_from((None, whole)))
    alone = build_index(shuffled, names, FieldWeights(), previous)
    return whole.view(mask), alone, specs


def session_on(view: SearchView, base: tuple[str, ...] = ()) -> ToolSearchSession:
    return ToolSearchSession(view, base=base, max_results=3, directory_max_tokens=60, explain=True)


@pytest.mark.requirement("TS-2")
@builds_indexes
@given(filtered(), st.lists(any_queries, min_size=1, max_size=6))
def test_a_view_ranks_and_explains_as_if_other_tools_did_not_exist(
    case: tuple[SearchView, SearchIndex, tuple[ToolSpec, ...]], asked: list[str]
) -> None:
    view, alone, specs = case
    for query in (*asked, *(spec.name for spec in specs), *(spec.description for spec in specs)):
        assert view.rank(query, 99) == alone.rank(query, 99)
        assert view.explain(query, 99) == alone.view(alone.full_mask).explain(query, 99)


@pytest.mark.requirement("TS-2")
@builds_indexes
@given(filtered(), st.lists(any_queries, min_size=1, max_size=6))
def test_a_session_answers_as_if_other_tools_did_not_exist(
    case: tuple[SearchView, SearchIndex, tuple[ToolSpec, ...]], asked: list[str]
) -> None:
    view, alone, specs = case
    base = tuple(spec.name for spec in specs[:2])
    here, there = session_on(view, base), session_on(alone.view(alone.full_mask), base)
    assert here.directory == there.directory
    assert (here.exposed, here.deferred) == (there.exposed, there.deferred)
    for query in asked + [f"select:{spec.name}" for spec in specs]:
        assert _answer(here, query) == _answer(there, query)
    assert here.next_turn() == there.next_turn()


def _answer(session: ToolSearchSession, query: str) -> object:
    try:
        return session.search(query)
    except ToolError as error:
        return str(error)


@pytest.mark.requirement("TS-2")
@builds_indexes
@given(filtered(), st.lists(any_queries, max_size=4))
def test_suggestions_know_visible_tools_only(
    case: tuple[SearchView, SearchIndex, tuple[ToolSpec, ...]], asked: list[str]
) -> None:
    view, alone, specs = case
    wanted = [*(spec.name + "x" for spec in specs), *asked]
    visible = alone.view(alone.full_mask)
    assert resolve_names(view, wanted) == resolve_names(visible, wanted)
    assert list(map(view.nearest, wanted)) == list(map(visible.nearest, wanted))


@pytest.mark.requirement("TS-2")
def test_a_forbidden_name_is_answered_like_one_that_does_not_exist() -> None:
    index = index_of(
        (*MUSIC, tool("secret.vault", "search songs in the vault", aliases=("vault",)))
    )
    permitted = [spec.name for spec in MUSIC]
    for query in ("select:{}", "{}", "+{}", "find {} now"):
        answers = []
        for name in ("secret.vault", "absent.thing"):
            found = open_session(index, permitted=permitted).search(query.format(name))
            answers.append(
                [[text.replace(name, "NAME") for text in found["not_found"]], found["loaded"]]
            )
        assert answers[0] == answers[1]


@pytest.mark.requirement("TS-2")
def test_filler_in_a_hidden_tool_does_not_change_how_long_a_description_counts() -> None:
    visible = (tool("b.one", "needs doing songs"), tool("c.two", "songs of many kinds and colours"))
    hidden = tool("a.zero", "need do songs")
    view = index_of((hidden, *visible)).view(0b110)
    assert view.rank("songs", 5) == index_of(visible).rank("songs", 5)


@pytest.mark.requirement("TS-2")
@pytest.mark.requirement("TS-8")
@pytest.mark.parametrize(
    ("query", "hidden"),
    [("repoxts", "Dumps reports of salaries."), ("reportsopens", "Both reports and opens.")],
)
def test_words_are_corrected_and_parted_by_what_visible_tools_say(query: str, hidden: str) -> None:
    visible = tool("doc.open", "Opens a report.")
    view = index_of((visible, tool("hr.dump", hidden))).view(0b01)
    assert ranked(view, query) == ranked(view_of(visible), query) == []


@pytest.mark.requirement("TS-2")
@pytest.mark.requirement("TS-8")
def test_a_stop_word_in_a_hidden_tool_and_the_order_of_tools_change_no_score() -> None:
    visible = (tool("zebra", "getURL apple"), tool("aleph", "river stone cloud apple"))
    specs = (*visible, tool("secret", "get"))
    expected = index_of(visible).rank("apple", 2)
    for order in (specs, specs[::-1]):
        index = index_of(order)
        assert index.view(index.mask(["zebra", "aleph"])).rank("apple", 2) == expected


@pytest.mark.requirement("TS-2")
@pytest.mark.requirement("TS-7")
def test_a_hidden_tool_does_not_change_the_wire_name_that_a_search_understands() -> None:
    visible, hidden = tool("a.b", "first"), tool("a__b", "second")
    view = index_of((visible, hidden)).view(0b01)
    assert view.rank("select:a__b", 5) == view_of(visible).rank("select:a__b", 5) == [("a.b", 3.0)]


@pytest.mark.requirement("TS-7")
@pytest.mark.requirement("TS-8")
def test_tools_that_share_a_spelling_are_named_in_one_order() -> None:
    specs = (tool("b", aliases=("both",)), tool("a", aliases=("both",)))
    assert ranked(view_of(*specs), "both") == ranked(view_of(*specs[::-1]), "both") == ["a", "b"]


@pytest.mark.requirement("PRE-1")
@builds_indexes
@given(filtered(), any_queries)
def test_a_hidden_prefetched_tool_is_as_good_as_filtered(
    case: tuple[SearchView, SearchIndex, tuple[ToolSpec, ...]], query: str
) -> None:
    view, alone, specs = case
    whole = index_of(specs)
    hidden = {spec.name for spec in specs} - set(alone.names)
    session = ToolSearchSession(
        whole.view(whole.full_mask), base=(), hidden=hidden, max_results=3, directory_max_tokens=60
    )
    there = ToolSearchSession(view, base=(), max_results=3, directory_max_tokens=60)
    assert session.directory == there.directory
    assert session.total_deferred == len(alone.names)
    assert _answer(session, query) == _answer(there, query)


@pytest.mark.requirement("TS-14")
def test_views_of_one_mask_are_one_object_and_old_ones_are_forgotten() -> None:
    index = index_of([tool(f"tool_{n}") for n in range(60)])
    first = index.view(0b11)
    assert index.view(0b11) is first
    for mask in range(100, 200):
        index.view(mask)
    assert index.view(0b11) is not first
    assert index.view(1 << 60 | 0b11) is index.view(0b11)


@pytest.mark.requirement("TS-14")
def test_sessions_share_the_texts_of_their_view() -> None:
    index = index_of(MUSIC)
    sessions = [open_session(index, always_loaded=["end"]) for _ in range(2)]
    assert sessions[0].directory is sessions[1].directory
    assert sessions[0].prompt is sessions[1].prompt
    assert sessions[0].prompt.endswith(f"\n\n{sessions[0].directory}")


@pytest.mark.requirement("TS-8")
def test_the_order_in_which_tools_are_registered_does_not_matter() -> None:
    specs = [tool(f"s{n % 3}.do_{n}", "the same words in all") for n in range(12)]
    orders = [index_of(random.Random(seed).sample(specs, len(specs))) for seed in range(3)]
    ranks = [index.rank("same words do", 12) for index in orders]
    assert ranks[0] == ranks[1] == ranks[2]
