"""The query of a request, read strictly; what its parameters mean is each endpoint's own."""

from collections.abc import Sequence

from starlette.datastructures import QueryParams

from session_runtime.errors import RequestError
from session_runtime.spelling import hint


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
