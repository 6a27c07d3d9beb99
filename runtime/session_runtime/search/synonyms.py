"""The table of words that mean the same, of ``synonyms.txt``; how much they count is a weight."""

from functools import lru_cache
from pathlib import Path

_FILE = Path(__file__).with_name("synonyms.txt")


@lru_cache(maxsize=1)
def groups() -> tuple[str, ...]:
    """The groups that come along, each of words with blanks between them; read with the first index."""
    lines = _FILE.read_text("utf-8").splitlines()
    return tuple([line for line in lines if line and not line.startswith("#")])
