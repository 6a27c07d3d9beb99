"""Reads how many tokens a provider counted, under the names that any wire uses."""

from collections.abc import Mapping
from typing import Any, Final

from session_runtime.types import Usage

MAX_TOKENS: Final = 10**12


def read_usage(usage: object) -> Usage | None:
    """The provider's count of one model call; None if it sent none that can be read."""
    if not isinstance(usage, dict):
        return None
    input_tokens = _first(usage, "prompt_tokens", "input_tokens")
    if not input_tokens:
        return None
    cached = _details(usage, "prompt_tokens_details", "input_tokens_details")
    reasoned = _details(usage, "completion_tokens_details", "output_tokens_details")
    return Usage(
        input_tokens=input_tokens,
        output_tokens=_first(usage, "completion_tokens", "output_tokens"),
        cached_tokens=_first(cached, "cached_tokens") or _first(usage, "prompt_cache_hit_tokens"),
        reasoning_tokens=_first(reasoned, "reasoning_tokens"),
        model_calls=1,
    )


def _first(counts: Mapping[str, Any], *names: str) -> int:
    """The first of these counts that is one; 0 if none is."""
    return next((count for name in names if (count := _count(counts.get(name)))), 0)


def _details(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((value for name in names if isinstance(value := usage.get(name), dict)), {})


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < MAX_TOKENS else 0
