"""What must not be left when a fault is over: tasks of the event loop and processes."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if the block leaves a task or a child process that was not there before."""
    tasks, children = asyncio.all_tasks(), running_children()
    yield
    assert asyncio.all_tasks() == tasks
    assert running_children() == children


def running_children() -> set[int]:
    """Processes that this one, in any of its threads, has started and that have not ended."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[1]) == os.getpid() and fields[0] != "Z":
            found.add(int(stat.parent.name))
    return found
