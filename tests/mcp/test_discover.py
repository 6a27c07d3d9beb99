"""All pages of a list are fetched, whatever a server makes of that."""

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import PermanentError
from session_runtime.mcp import discover as module
from session_runtime.mcp.base import Listing
from session_runtime.mcp.discover import discover
from session_runtime.registry.catalog import Quarantined
from tests.mcp.peer import tool
from tests.mcp.test_listed import JSON, nested


async def listed(*pages: dict[str, Any]) -> Listing:
    """What comes of these pages, each of which names the next by its number."""

    async def page(cursor: str | None) -> dict[str, Any]:
        number = int(cursor or "0")
        more = {"nextCursor": str(number + 1)} if number + 1 < len(pages) else {}
        return {**more, **pages[number]}

    return (await discover("srv", page)).listing


def names(listing: Listing) -> list[str]:
    return [each.name for each in listing.tools]


@pytest.mark.requirement("RTE-1")
async def test_all_pages_make_one_list() -> None:
    pages = [{"tools": [tool("a"), tool("b")]}, {"tools": []}, {"tools": [tool("c")]}]
    assert names(await listed(*pages)) == ["a", "b", "c"]


@pytest.mark.requirement("RTE-5")
async def test_one_bad_tool_among_many_is_left_out_alone() -> None:
    tools = [tool(f"t{number}") for number in range(312)]
    tools[7] = tool("bad", inputSchema={"type": "string"})
    listing = await listed({"tools": tools[:200]}, {"tools": tools[200:]})
    assert len(listing.tools) == 311
    reason = 'inputSchema: must have "type": "object", got "string"'
    assert listing.refused == (Quarantined("bad", "srv", reason),)


@pytest.mark.requirement("RTE-5")
async def test_a_schema_of_two_thousand_levels_costs_only_its_tool() -> None:
    listing = await listed({"tools": [tool("deep", inputSchema=nested(1_000)), tool("good")]})
    assert names(listing) == ["good"]
    assert listing.refused[0].reason == "inputSchema: nested more than 64 levels deep"


@pytest.mark.requirement("RTE-5")
async def test_of_two_tools_with_one_name_the_first_stays() -> None:
    first, second = tool("same", description="First."), tool("same", description="Second.")
    listing = await listed({"tools": [first]}, {"tools": [second, tool("other")]})
    assert [each.description for each in listing.tools] == ["First.", "Does other."]
    reason = "the server lists another tool of this name before it"
    assert listing.refused == (Quarantined("same", "srv", reason),)


@pytest.mark.requirement("RTE-5")
async def test_tools_without_a_description_are_kept_and_flagged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listing = await listed({"tools": [tool("bare", description=None), tool("told")]})
    assert (names(listing), listing.undescribed) == (["bare", "told"], ("bare",))
    assert "1 tools have no description, such as bare" in caplog.text


@pytest.mark.requirement("RTE-1")
async def test_a_page_that_names_itself_as_the_next_is_not_added(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked: list[str | None] = []

    async def page(cursor: str | None) -> dict[str, Any]:
        asked.append(cursor)
        return {"tools": [tool(f"t{number}") for number in range(8)], "nextCursor": "x"}

    with caplog.at_level(logging.WARNING):
        listing = (await discover("srv", page)).listing
    assert (asked, len(listing.tools)) == ([None, "x"], 8)
    reason = "the server gave the cursor 'x' twice: no more pages are read"
    assert listing.refused == (Quarantined("(further pages)", "srv", reason),)
    assert reason in caplog.text


@pytest.mark.requirement("RTE-1")
async def test_pages_that_go_round_in_a_circle_are_read_once() -> None:
    following = {None: "a", "a": "b", "b": "a"}

    async def page(cursor: str | None) -> dict[str, Any]:
        return {"tools": [tool(f"of_{cursor}")], "nextCursor": following[cursor]}

    listing = (await discover("srv", page)).listing
    assert names(listing) == ["of_None", "of_a", "of_b"]


@pytest.mark.parametrize("cursor", [None, ""])
async def test_an_empty_cursor_is_the_end(cursor: str | None) -> None:
    assert names(await listed({"tools": [tool("a")], "nextCursor": cursor})) == ["a"]


@pytest.mark.requirement("RTE-1")
@pytest.mark.parametrize(
    ("page", "limit", "most", "fault"),
    [
        ({"tools": []}, "MAX_PAGES", 3, "more than 3 pages"),
        ({"tools": [None] * 4}, "MAX_TOOLS", 10, "more than 10 tools"),
        ({"tools": [tool("t")]}, "MAX_WEIGHT", 1_000, "more than 1000 characters"),
    ],
)
async def test_an_endless_list_is_given_up_as_a_whole(
    page: dict[str, Any], limit: str, most: int, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, most)
    cursors = iter(range(1_000))

    async def endless(_: str | None) -> dict[str, Any]:
        return {**page, "nextCursor": str(next(cursors))}

    with pytest.raises(PermanentError, match=fault) as caught:
        await discover("srv", endless)
    assert caught.value.code == "mcp.bad_result"


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ({}, "a page with nothing instead of tools"),
        ({"tools": {}}, "a page with a dict instead of tools"),
        ({"tools": [], "nextCursor": 7}, "a cursor that is no text of at most 16384 characters"),
    ],
)
async def test_what_is_no_page_is_told(page: dict[str, Any], fault: str) -> None:
    with pytest.raises(PermanentError, match=fault):
        await listed(page)


async def test_the_shortest_time_that_a_page_is_good_for_counts() -> None:
    ages = iter([5_000, 2_000, -3])

    async def page(cursor: str | None) -> dict[str, Any]:
        more = {"nextCursor": "b"} if cursor is None else {}
        return {"tools": [], "ttlMs": next(ages), **more}

    assert (await discover("srv", page)).ttl_s == 2.0


async def test_others_have_a_turn_while_a_long_list_is_read() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await listed({"tools": [tool(f"t{number}") for number in range(2_000)]})
    counting.cancel()
    assert turns > 20


@pytest.mark.requirement("RTE-5")
@given(st.lists(JSON | st.builds(tool, JSON, inputSchema=JSON, annotations=JSON), max_size=4))
async def test_no_definition_breaks_the_others(strange: list[Any]) -> None:
    listing = await listed({"tools": [*strange, tool("good one"), *strange]})
    assert "good one" in names(listing)
    assert len(listing.tools) + len(listing.refused) == 2 * len(strange) + 1
