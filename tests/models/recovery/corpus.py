"""Reads the texts beside this module: those that are calls, with the calls, and those that stay text."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_HEAD = "#### "


@dataclass(frozen=True)
class Sample:
    title: str
    text: str
    calls: tuple[tuple[str, Any], ...] = ()


def samples(name: str) -> list[Sample]:
    """The samples of one file: a line with title and perhaps calls, then the text as it is."""
    text = (_HERE / name).read_text("utf-8").removeprefix(_HEAD)
    return [_sample(block) for block in text.removesuffix("\n").split(f"\n{_HEAD}")]


def _sample(block: str) -> Sample:
    head, _, text = block.partition("\n")
    title, _, calls = head.partition(" => ")
    return Sample(title, text, tuple((name, values) for name, values in json.loads(calls or "[]")))


CALLS = samples("calls.txt")
TEXTS = samples("texts.txt")
