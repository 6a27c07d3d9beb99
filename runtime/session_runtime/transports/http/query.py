"""The query of a request, read strictly; what its parameters mean is each endpoint's own."""

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import QueryParams

from session_runtime.errors import RequestError
from session_runtime.spelling import hint
from session_runtime.types import Identity

IDENTITY: Final = ("user", "role", "channel", "group")
"""The parameters that state for whom something is; ``role`` may be repeated."""


def check_query(query: QueryParams, known: Sequence[str], repeatable: Sequence[str] = ()) -> None:
    """Raise RequestError for other names than the known ones, blank values, and names given twice."""
    for name, value in query.multi_items():
        if name not in known:
            way_out = hint(name, known) or f"use {', '.join(known)}"
            raise RequestError(f"unknown query parameter {name[:100]!r}; {way_out}")
        if "\ufffd" in value:
            raise RequestError(f"the query parameter {name!r} is not UTF-8")
        if not value.strip():
            raise RequestError(f"the query parameter {name!r} is blank; leave it out or fill it in")
        if name not in repeatable and len(query.getlist(name)) > 1:
            raise RequestError(f"the query parameter {name!r} is given twice; give it once")


def identity_of(query: QueryParams) -> Identity:
    """The identity that a checked query states; an empty one if it states none."""
    roles = query.getlist("role")
    return Identity(
        user=query.get("user"),
        roles=frozenset(roles) if roles else None,
        channel=query.get("channel"),
        group=query.get("group"),
    )


def number_of(query: QueryParams, name: str, otherwise: int, most: int) -> int:
    """A number from 1 to ``most``; RequestError for anything else."""
    text = query.get(name, str(otherwise))
    if text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most:
        return int(text)
    raise RequestError(
        f"the query parameter {name!r} is {text[:40]!r}; give a number from 1 to {most}"
    )
