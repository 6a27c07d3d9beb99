"""What a case is: a query, and the tools that should be found for it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session_runtime.errors import RequestError
from session_runtime.evaluation.lines import read_lines, text_of, texts_of
from session_runtime.types import JsonObject

MAX_QUERY_CHARS: Final = 10_000
MAX_GOLD: Final = 100
MAX_LABEL_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a file of cases; ``gold`` are canonical names, each once.

    ``kind`` is what figures are grouped by, empty if the line states none; ``id`` is the author's own.
    """

    line: int
    query: str
    gold: tuple[str, ...]
    kind: str = ""
    id: str = ""


def read_cases(path: Path) -> tuple[Case, ...]:
    """Read a file with one case per line; raises RequestError that names the line."""
    cases = read_lines(path, _case)
    if not cases:
        raise RequestError(
            f'{path} holds no case: write one per line, as {{"query": "…", "gold": ["tool"]}}'
        )
    return cases


def _case(line: int, data: JsonObject) -> Case:
    gold = texts_of(data, "gold", MAX_GOLD)
    if not gold:
        raise ValueError("gold must name at least one tool, in a list")
    return Case(line, text_of(data, "query", MAX_QUERY_CHARS), gold, *_labels(data))


def _labels(data: JsonObject) -> tuple[str, str]:
    kind, name = data.get("kind"), data.get("id")
    if not (kind is None or isinstance(kind, str)):
        raise ValueError("kind must be a text")
    if not (name is None or isinstance(name, str | int)):
        raise ValueError("id must be a text or a number")
    labels = kind or "", "" if name is None else str(name)
    if max(map(len, labels)) > MAX_LABEL_CHARS:
        raise ValueError(f"kind and id have {MAX_LABEL_CHARS} characters at most")
    return labels
