"""What tool search costs beside others, in the same run; prints one Markdown table.

Times are medians of processor time in milliseconds, and in brackets how many times as long another
one takes. Opening covers what an ask needs before its first answer: for the others the first search
is part of it, as they index then. The memory of an index is what a process of its own grows by. The
tools come from real catalogues, repeated under new prefixes.
"""

import gc
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from catalogue_files import folder_or_exit, grown, read_lines, read_tools
from daemon import memory_bytes
from peers import PeerLibrary, missing_note, present_libraries
from report import options, show

from session_runtime.registry.names import build_wire_names
from session_runtime.registry.spec import ToolSpec
from session_runtime.search import (
    FieldWeights,
    SearchIndex,
    ToolSearchSession,
    build_index,
    index_tools,
)

SETS = ("mcp_all",)
ALWAYS = ("send_message", "end")
LIMIT = 5
SEED = 7
FEW = 10_000
SEEN, NEW = "open, mask seen before", "open, new mask"
NEW_QUERY, FIRST_TIME = f"{NEW}, first query", "keyword query, asked for the first time"
QUERY, BUILD, CHANGE = "keyword query", "index all tools", "index after a change of one"
MEMORY = "memory of the index, MB"
AT_MOST: Mapping[tuple[int, str], float] = MappingProxyType(
    {
        (1_000, QUERY): 0.3,
        (5_000, QUERY): 1,
        (50_000, QUERY): 8,
        (1_000, FIRST_TIME): 0.3,
        (5_000, FIRST_TIME): 1,
        (50_000, FIRST_TIME): 8,
        (5_000, SEEN): 0.2,
        (5_000, NEW_QUERY): 10,
        (5_000, BUILD): 1_500,
        (5_000, CHANGE): 20,
        (5_000, MEMORY): 40,
    }
)
Tools = list[dict[str, Any]]
Figures = dict[str, float]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 5_000, 50_000])
    parser.add_argument("--queries", type=int, default=60, help="queries of the mix")
    parser.add_argument("--peer-opens", type=int, default=5)
    parser.add_argument("--peers-up-to", type=int, default=FEW, help="tools that others are given")
    given = parser.parse_args()
    folder = folder_or_exit()
    tools = [tool for name in SETS for tool in read_tools(folder, name)]
    queries = mixed_queries(folder, given.queries)
    present = present_libraries()
    rows: list[list[str]] = []
    for size in given.sizes:
        catalogue = grown(tools, size)
        ours = measure_ours(catalogue, queries) | measure_index(catalogue)
        theirs = {
            library.package: measure_peer(library, catalogue, queries, given.peer_opens)
            if size <= given.peers_up_to
            else {}
            for library in present
        }
        rows += [row(size, action, ours, theirs) for action in ours]
    names = [library.package for library in present]
    show(given, ["tools", "action", "at most", "session-runtime", *names], rows, missing_note())


def mixed_queries(folder: Any, count: int) -> list[str]:
    """Equal parts of two words, nine words and whole sentences, as people and models write them."""
    steps = [item["query"] for item in read_lines(folder / "mcp_all" / "dev.jsonl")]
    requests = [item["query"] for item in read_lines(folder / "stabletoolbench" / "dev.jsonl")]
    choose = random.Random(SEED).sample
    third = count // 3
    two = [" ".join(query.split()[:2]) for query in choose(steps, third)]
    nine = choose([query for query in steps if len(query.split()) == 9], third)
    return two + nine + choose(requests, third)


def measure_ours(catalogue: Tools, queries: list[str]) -> Figures:
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
        SEEN: median(lambda _: open_on(index, seen), range(200)),
        NEW: median(lambda mask: open_on(index, mask), masks),
        NEW_QUERY: median(lambda mask: open_on(index, mask).search(queries[0]), other_masks),
        "tools of the first turn": median(lambda _: session.next_turn(), range(200)),
        QUERY: median(lambda query: open_on(index, seen).search(query), queries * 3),
        FIRST_TIME: first_time(index, queries),
        "select: query": median(lambda query: open_on(index, seen).search(query), selects * 3),
    }


def measure_index(catalogue: Tools) -> Figures:
    specs = [specification(tool) for tool in catalogue]
    names, weights = build_wire_names([spec.name for spec in specs], "__"), FieldWeights()
    index = build_index(specs, names, weights)

    def change(at: int) -> object:
        told = f"{specs[at].description} Changed."
        changed = replace(specs[at], description=told, digest=f"changed {at}")
        return build_index([*specs[:at], changed, *specs[at + 1 :]], names, weights, index)

    times = 3 if len(specs) <= FEW else 1
    return {
        BUILD: median(lambda _: build_index(specs, names, weights), range(times)),
        CHANGE: median(change, range(0, len(specs), max(1, len(specs) // (3 * times)))),
        MEMORY: in_own_process(memory_of_index, catalogue),
    }


def specification(tool: Mapping[str, Any]) -> ToolSpec:
    name, parameters = tool["name"], tool.get("parameters") or {}
    return ToolSpec(name, tool.get("description") or "", parameters, "virtual", "", name, "")


def in_own_process(measure: Callable[[Tools], float], catalogue: Tools) -> float:
    """What ``measure`` gives in a fresh process, in which nothing was indexed yet."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (catalogue,))


def memory_of_index(catalogue: Tools) -> float:
    """What an index with the statistics of one mask adds to this process, in megabytes."""
    index_tools(catalogue[:10]).rank("warm up", LIMIT)
    gc.collect()
    before = memory_bytes(os.getpid())
    index = index_tools(catalogue)
    index.rank("send a message", LIMIT)
    gc.collect()
    return (memory_bytes(os.getpid()) - before) / 1e6


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


def measure_peer(library: PeerLibrary, catalogue: Tools, queries: list[str], opens: int) -> Figures:
    peer = library.load(catalogue, LIMIT)

    def open_and_index(_: object) -> None:
        peer.open_request()
        peer.search(queries[0], LIMIT)

    opening = median(open_and_index, range(opens))
    figures = {
        SEEN: opening,
        NEW: opening,
        NEW_QUERY: opening,
        QUERY: median(lambda query: peer.search(query, LIMIT), queries),
    }
    if peer.first_turn():
        figures["tools of the first turn"] = median(lambda _: peer.first_turn(), range(opens))
    return figures


def median(action: Callable[[Any], object], arguments: Iterable[Any]) -> float:
    """The median processor time of an action over its arguments, in milliseconds."""
    times: list[float] = []
    for argument in arguments:
        start = time.process_time()
        action(argument)
        times.append(time.process_time() - start)
    return statistics.median(times) * 1_000


def row(size: int, action: str, ours: Figures, theirs: dict[str, Figures]) -> list[str]:
    cells = [
        f"{shown(figures[action])} ({ratio(figures[action] / ours[action])})"
        if action in figures
        else "-"
        for figures in theirs.values()
    ]
    limit = AT_MOST.get((size, action))
    at_most = "-" if limit is None else f"{limit:,g}"
    return [f"{size:,}", action, at_most, shown(ours[action]), *cells]


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(value: float) -> str:
    return f"{value:,.0f}x" if value >= 10 else f"{value:.1f}x"


if __name__ == "__main__":
    main()
