"""What servers list now is news only if it is something else than what a generation was made of."""

from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime.mcp.naming import Listed
from session_runtime.mcp.pool import ServerPool
from session_runtime.mcp.servers import Servers, lists_of
from tests.mcp.links import Switchboard, listing
from tests.mcp.test_pool import hold, server


@pytest.mark.requirement("RTE-4")
async def test_the_same_list_made_once_more_is_no_news_and_another_one_is(tmp_path: Path) -> None:
    board = Switchboard({"a": listing("one")})
    pool = ServerPool(board)
    held = await hold(pool, tmp_path, server("a"))
    session = held.sessions["a", ""]
    lists = {"": lists_of(held.sessions)["a", ""]}
    made = Servers((Listed("a", session.wanted.settings, lists),), held.sessions)
    board.opened[0].lists(replace(listing("one"), at=5.0))
    assert not made.outdated
    board.opened[0].lists(listing("one", "two"))
    assert made.outdated
    await pool.release(held.keys)
