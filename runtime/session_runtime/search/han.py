"""Writes Han characters one way: traditional and Japanese variants as their simplified forms.

By single characters, for comparing only; which words mean the same is decided in ``synonyms``.
"""

import re
from functools import lru_cache
from pathlib import Path

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_FILE = Path(__file__).with_name("han_variants.txt")


def simplify(text: str) -> str:
    """Text with its Han characters in their simplified forms; its length stays."""
    if _HAN.search(text) is None:
        return text
    variant, forms = _variants()
    return text.translate(forms) if variant.search(text) else text


@lru_cache(maxsize=1)
def _variants() -> tuple[re.Pattern[str], dict[int, str]]:
    """What is one of the variants, and the simplified forms; read once there is Han text."""
    lines = _FILE.read_text("utf-8").splitlines()
    groups = [group for line in lines if not line.startswith("#") for group in line.split()]
    forms = {ord(variant): group[0] for group in groups for variant in group[1:]}
    return re.compile(f"[{''.join(map(chr, forms))}]"), forms
