"""How often the right tool is found beside other libraries; prints one Markdown table.

R@k is the share of a query's right tools among the first k results, averaged over the queries of a
cell (a set and a kind of query), in percent; the last row averages the cells of the main sets.
"""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from catalogue_files import folder_or_exit, read_lines, read_tools
from peers import missing_note, present_libraries
from report import options, show

from session_runtime.search import index_tools

MAIN_SETS = ("mcp_all", "azure", "bfcl", "stabletoolbench", "ultratool_zh")
OTHER_SETS = ("livemcp", "metatool")
DEPTH = 5
Search = Callable[[str, int], list[str]]
Cell = tuple[str, str]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sets", nargs="+", default=[*MAIN_SETS, *OTHER_SETS])
    parser.add_argument("--alone", action="store_true", help="leave the other libraries out")
    given = parser.parse_args()
    folder = folder_or_exit()
    libraries = [] if given.alone else present_libraries()
    names = ["session-runtime", *(library.package for library in libraries)]
    figures: dict[Cell, list[tuple[float, float]]] = defaultdict(list)
    for name in given.sets:
        tools = read_tools(folder, name)
        searches = [
            own_search(tools),
            *(library.load(tools, DEPTH).search for library in libraries),
        ]
        for search in searches:
            for cell, recall in measure(folder, name, search).items():
                figures[cell].append(recall)
    rows = [[*cell, *map(both, recalls)] for cell, recalls in figures.items()]
    main_cells = [recalls for (name, _), recalls in figures.items() if name in MAIN_SETS]
    if main_cells:
        averages = [average(column) for column in zip(*main_cells, strict=True)]
        rows.append(["main sets", "macro", *map(both, averages)])
    head = ["set", "kind", *(f"{name} R@1 / R@5" for name in names)]
    show(given, head, rows, "" if given.alone else missing_note())


def own_search(tools: list[dict[str, Any]]) -> Search:
    index = index_tools(tools)
    return lambda query, limit: [name for name, _ in index.rank(query, limit)]


def measure(folder: Path, name: str, search: Search) -> dict[Cell, tuple[float, float]]:
    recalls: dict[Cell, list[tuple[float, float]]] = defaultdict(list)
    for item in read_lines(folder / name / "dev.jsonl"):
        found, gold = search(item["query"], DEPTH), item["gold"]
        first, all_five = (sum(tool in found[:k] for tool in gold) / len(gold) for k in (1, DEPTH))
        recalls[name, item["kind"]].append((first, all_five))
    return {cell: average(values) for cell, values in recalls.items()}


def average(values: Any) -> tuple[float, float]:
    """The mean of both columns."""
    first, all_five = zip(*values, strict=True)
    return sum(first) / len(first), sum(all_five) / len(all_five)


def both(recall: tuple[float, float]) -> str:
    return f"{recall[0] * 100:.1f} / {recall[1] * 100:.1f}"


if __name__ == "__main__":
    main()
