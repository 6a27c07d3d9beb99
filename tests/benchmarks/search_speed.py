"""How long tool search takes beside other libraries, in the same run; prints one Markdown table.

Medians in milliseconds, and in brackets how many times as long the other library takes. Opening
covers what an ask needs before its first answer: for the others the first search is part of it,
as they index then. The tools come from real catalogues, repeated under new prefixes.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

from catalogue_files import folder_or_exit, grown, read_lines, read_tools
from peers import PeerLibrary, missing_note, present_libraries
from report import options, show

from session_runtime.search import SearchIndex, ToolSearchSession, index_tools

SETS = ("mcp_all",)
ALWAYS = ("send_message", "end")
LIMIT = 5
SEED = 7
Figures = dict[str, float]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 5_000])
    parser.add_argument("--queries", type=int, default=60, help="queries of the mix")
    parser.add_argument("--peer-opens", type=int, default=5)
    given = parser.parse_args()
    folder = folder_or_exit()
    tools = [tool for name in SETS for tool in read_tools(folder, name)]
    queries = mixed_queries(folder, given.queries)
    present = present_libraries()
    rows: list[list[str]] = []
    for size in given.sizes:
        catalogue = grown(tools, size)
        ours = measure_ours(catalogue, queries)
        theirs = {
            library.package: measure_peer(library, catalogue, queries, given.peer_opens)
            for library in present
        }
        rows += [row(size, action, ours, theirs) for action in ours]
    head = ["tools", "action", "session-runtime", *(library.package for library in present)]
    show(given, head, rows, missing_note())


def mixed_queries(folder: Any, count: int) -> list[str]:
    """Equal parts of two words, nine words and whole sentences, as people and models write them."""
    steps = [item["query"] for item in read_lines(folder / "mcp_all" / "dev.jsonl")]
    requests = [item["query"] for item in read_lines(folder / "stabletoolbench" / "dev.jsonl")]
    choose = random.Random(SEED).sample
    third = count // 3
    two = [" ".join(query.split()[:2]) for query in choose(steps, third)]
    nine = choose([query for query in steps if len(query.split()) == 9], third)
    return two + nine + choose(requests, third)


def measure_ours(catalogue: list[dict[str, Any]], queries: list[str]) -> Figures:
    index = index_tools(catalogue)
    seen = index.full_mask & ~0b1010
    open_on(index, seen).search(queries[0])
    masks = [index.full_mask & ~(1 << at) for at in range(40)]
    other_masks = [mask & ~(1 << 50) for mask in masks]
    session = open_on(index, seen)
    selects = [f"select:{tool['name']}" for tool in catalogue[:: max(1, len(catalogue) // 40)]]
    view = index.view(seen)
    for query in queries:
        view.rank(query, LIMIT)
    gc.collect()
    return {
        "open, mask seen before": median(lambda _: open_on(index, seen), range(200)),
        "open, new mask": median(lambda mask: open_on(index, mask), masks),
        "open, new mask, first query": median(
            lambda mask: open_on(index, mask).search(queries[0]), other_masks
        ),
        "tools of the first turn": median(lambda _: session.next_turn(), range(200)),
        "keyword query": median(lambda query: open_on(index, seen).search(query), queries * 3),
        "keyword query, asked for the first time": first_time(index, queries),
        "select: query": median(lambda query: open_on(index, seen).search(query), selects * 3),
    }


def open_on(index: SearchIndex, mask: int) -> ToolSearchSession:
    """A session as an ask opens it, with its directory."""
    session = ToolSearchSession(
        index.view(mask), base=ALWAYS, max_results=LIMIT, directory_max_tokens=8_000
    )
    assert session.directory
    return session


def first_time(index: SearchIndex, queries: list[str]) -> float:
    """Each query once, in a view that answered nothing but one other query before."""
    view = SearchIndex(index.corpus).view(index.full_mask)
    view.rank("something else", LIMIT)
    return median(lambda query: view.rank(query, LIMIT), queries)


def measure_peer(
    library: PeerLibrary, catalogue: list[dict[str, Any]], queries: list[str], opens: int
) -> Figures:
    peer = library.load(catalogue, LIMIT)

    def open_and_index(_: object) -> None:
        peer.open_request()
        peer.search(queries[0], LIMIT)

    opening = median(open_and_index, range(opens))
    figures = {
        "open, mask seen before": opening,
        "open, new mask": opening,
        "open, new mask, first query": opening,
        "keyword query": median(lambda query: peer.search(query, LIMIT), queries),
    }
    if peer.first_turn():
        figures["tools of the first turn"] = median(lambda _: peer.first_turn(), range(opens))
    return figures


def median(action: Callable[[Any], object], arguments: Iterable[Any]) -> float:
    """The median time of an action over its arguments, in milliseconds."""
    times: list[float] = []
    for argument in arguments:
        start = time.perf_counter()
        action(argument)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1_000


def row(size: int, action: str, ours: Figures, theirs: dict[str, Figures]) -> list[str]:
    cells = [
        f"{figures[action]:.3g} ({ratio(figures[action] / ours[action])})"
        if action in figures
        else "-"
        for figures in theirs.values()
    ]
    return [f"{size:,}", action, f"{ours[action]:.3g}", *cells]


def ratio(value: float) -> str:
    return f"{value:,.0f}x" if value >= 10 else f"{value:.1f}x"


if __name__ == "__main__":
    main()
