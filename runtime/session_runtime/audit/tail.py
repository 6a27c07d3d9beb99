"""The last lines of an audit log, to be looked at; whether they are genuine is decided in ``verify``."""

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from session_runtime.audit.files import file_names, lines_of
from session_runtime.audit.head import read_head, read_key


def last_lines(state_dir: Path, count: int) -> list[dict[str, Any]]:
    """The last ``count`` records, the oldest first; what is no record is left out. Raises OSError."""
    key = read_key(state_dir)
    head = None if key is None else read_head(state_dir, key)
    if head is None:
        return []
    folder, found = Path(head.folder), deque[dict[str, Any]]()
    for name in reversed(file_names(folder)):
        records = deque(_records(folder / name), count - len(found))
        found.extendleft(reversed(records))
        if len(found) >= count:
            break
    return list(found)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in lines_of(file):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record
