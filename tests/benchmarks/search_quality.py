"""How often the right tool is found, and at what cost, beside others; prints one Markdown table.

R@k is the share of a query's right tools among the first k results, averaged over the queries of a
cell (a set and a kind of query), in percent; in brackets R@5 if each query has a typo of one letter.
The row *macro* averages the cells of the main sets. The last rows are the median processor time of a
query in milliseconds, each query asked once.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalogue_files import folder_or_exit, read_lines, read_tools
from peers import missing_note, present_libraries
from report import options, show
from typos import with_typo

from session_runtime.search import index_tools

MAIN_SETS = ("mcp_all", "azure", "bfcl", "stabletoolbench", "ultratool_zh")
OTHER_SETS = ("livemcp", "metatool")
DEPTH = 5
WARM_UP = "something else"
Search = Callable[[str, int], list[str]]
Cell = tuple[str, str]


@dataclass(frozen=True)
class Recall:
    """Shares from 0 to 1: the first result alone, the first five, the first five with a typo."""

    first: float
    five: float
    mistyped: float

    def __str__(self) -> str:
        return f"{self.first * 100:.1f} / {self.five * 100:.1f} ({self.mistyped * 100:.1f})"


@dataclass(frozen=True)
class Measured:
    """What one system came to on one set; ``milliseconds`` is the median of processor time."""

    recalls: dict[Cell, Recall]
    milliseconds: float


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sets", nargs="+", default=[*MAIN_SETS, *OTHER_SETS])
    parser.add_argument("--alone", action="store_true", help="leave the others out")
    given = parser.parse_args()
    folder = folder_or_exit()
    libraries = [] if given.alone else present_libraries()
    systems: dict[str, Callable[[list[dict[str, Any]]], Search]] = {
        "session-runtime": own_search,
        **{library.package: peer_search(library.load) for library in libraries},
    }
    by_set = {
        name: [measure(folder, name, load(read_tools(folder, name))) for load in systems.values()]
        for name in given.sets
    }
    head = ["set", "kind", *(f"{name} R@1 / R@5 (typo)" for name in systems)]
    show(given, head, list(rows(by_set)), "" if given.alone else missing_note())


def rows(by_set: dict[str, list[Measured]]) -> Iterable[list[str]]:
    cells: dict[Cell, list[Recall]] = {}
    for systems in by_set.values():
        for cell in systems[0].recalls:
            cells[cell] = [system.recalls[cell] for system in systems]
    for (name, kind), recalls in cells.items():
        yield [name, kind, *map(str, recalls)]
    main_cells = [recalls for (name, _), recalls in cells.items() if name in MAIN_SETS]
    if main_cells:
        yield ["main sets", "macro", *map(str, map(average, zip(*main_cells, strict=True)))]
    for name, systems in by_set.items():
        yield [name, "ms per query", *(f"{system.milliseconds:.3g}" for system in systems)]


def own_search(tools: list[dict[str, Any]]) -> Search:
    index = index_tools(tools)
    return lambda query, limit: [name for name, _ in index.rank(query, limit)]


def peer_search(load: Callable[..., Any]) -> Callable[[list[dict[str, Any]]], Search]:
    return lambda tools: load(tools, DEPTH).search


def measure(folder: Path, name: str, search: Search) -> Measured:
    recalls: dict[Cell, list[Recall]] = defaultdict(list)
    seconds: list[float] = []
    search(WARM_UP, DEPTH)
    for item in read_lines(folder / name / "dev.jsonl"):
        start = time.process_time()
        found = search(item["query"], DEPTH)
        seconds.append(time.process_time() - start)
        gold = item["gold"]
        mistyped = search(with_typo(item["query"]), DEPTH)
        recall = Recall(share(found[:1], gold), share(found, gold), share(mistyped, gold))
        recalls[name, item.get("kind", "")].append(recall)
    cells = {cell: average(values) for cell, values in recalls.items()}
    return Measured(cells, statistics.median(seconds) * 1_000)


def share(found: Sequence[str], gold: Sequence[str]) -> float:
    """How much of what is wanted was found."""
    return sum(tool in found for tool in gold) / len(gold)


def average(values: Iterable[Recall]) -> Recall:
    """The mean of each share."""
    all_of_them = list(values)
    return Recall(
        statistics.fmean(recall.first for recall in all_of_them),
        statistics.fmean(recall.five for recall in all_of_them),
        statistics.fmean(recall.mistyped for recall in all_of_them),
    )


if __name__ == "__main__":
    main()
