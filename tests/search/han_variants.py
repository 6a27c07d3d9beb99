"""Makes ``search/han_variants.txt`` from the tables of OpenCC: ``python -m tests.search.han_variants``."""

import sys
from collections import defaultdict
from pathlib import Path

from opencc import OpenCC

import session_runtime.search

FILE = Path(session_runtime.search.__file__).with_name("han_variants.txt")
HEADER = """\
# Han characters, each followed by its variants (traditional, and Japanese ones that Chinese has not).
# Made by tests/search/han_variants.py from the tables of OpenCC (https://github.com/BYVoid/OpenCC),
# Copyright Carbo Kuo and contributors, licensed under the Apache License, Version 2.0
# a copy of which is beside this file.
"""
PER_LINE = 30
HAN = [
    chr(code)
    for first, last in ((0x3400, 0x4DBF), (0x4E00, 0x9FFF))
    for code in range(first, last + 1)
]


def made() -> str:
    """The whole text of the file."""
    variants: dict[str, list[str]] = defaultdict(list)
    forms = japanese() | traditional()
    for variant, simple in sorted(forms.items()):
        variants[forms.get(simple, simple)].append(variant)
    groups = [simple + "".join(found) for simple, found in sorted(variants.items())]
    lines = (" ".join(groups[at : at + PER_LINE]) for at in range(0, len(groups), PER_LINE))
    return HEADER + "\n".join(lines) + "\n"


def traditional() -> dict[str, str]:
    """Characters that simplified Chinese writes otherwise, with their simple forms."""
    return changed(HAN, converted(HAN, "t2s"))


def japanese() -> dict[str, str]:
    """Characters of Japanese alone: those that neither Chinese encoding has."""
    only = [char for char in HAN if not (encodes(char, "gb2312") or encodes(char, "big5"))]
    return changed(only, converted(converted(only, "jp2t"), "t2s"))


def converted(chars: list[str], config: str) -> list[str]:
    """Each character by itself, so that no phrase is converted."""
    return OpenCC(config).convert("\n".join(chars)).split("\n")


def changed(before: list[str], after: list[str]) -> dict[str, str]:
    return {
        old: new for old, new in zip(before, after, strict=True) if old != new and new in HAN_SET
    }


def encodes(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


HAN_SET = frozenset(HAN)

if __name__ == "__main__":
    FILE.write_text(made(), "utf-8")
    sys.stdout.write(f"{FILE}\n")
