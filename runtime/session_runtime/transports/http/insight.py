"""Why the daemon does what it does, over HTTP: searches, permissions, ended asks; for admins (OPS-3)."""

from typing import Final

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.errors import RequestError
from session_runtime.transports.http.answers import json_answer
from session_runtime.transports.http.door import HttpDoor
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.query import IDENTITY, check_query, identity_of, number_of

MOST_FOUND: Final = 50
FEW_FOUND: Final = 10
MOST_RECENT: Final = 200
LONGEST_QUERY: Final = 4_000


def insight_routes(door: HttpDoor, gate: Gate) -> list[Route]:
    """All routes of it."""
    pages = _Insight(door, gate)
    return [
        Route("/v1/search", pages.search, methods=["GET"]),
        Route("/v1/access", pages.access, methods=["GET"]),
        Route("/v1/principals", pages.principals, methods=["GET"]),
        Route("/v1/recent", pages.recent, methods=["GET"]),
        Route("/v1/recent/{id}", pages.record, methods=["GET"]),
    ]


class _Insight:
    """Endpoints that change nothing: no search counts, nothing is loaded, no model is asked."""

    def __init__(self, door: HttpDoor, gate: Gate) -> None:
        self._door = door
        self._gate = gate

    async def search(self, request: Request) -> Response:
        """``GET /v1/search?query=``: what a search finds for the identity in the query, and why."""
        query = self._query(request, "query", "limit", "principal", *IDENTITY)
        text = _needed(query, "query")
        if len(text) > LONGEST_QUERY:
            raise RequestError(
                f"the query parameter 'query' has {len(text)} characters, at most {LONGEST_QUERY} are read"
            )
        most = number_of(query, "limit", FEW_FOUND, MOST_FOUND)
        whose = identity_of(query), most, query.get("principal")
        return json_answer(await self._door.insight.search(text, *whose))

    async def access(self, request: Request) -> Response:
        """``GET /v1/access?tool=``: whether the identity in the query may use a tool, and by which rule.

        Without ``tool``, all that it may use.
        """
        query = self._query(request, "tool", "principal", *IDENTITY)
        insight, tool = self._door.insight, query.get("tool")
        who = identity_of(query), query.get("principal")
        return json_answer(insight.permitted(*who) if tool is None else insight.access(tool, *who))

    async def principals(self, request: Request) -> Response:
        """``GET /v1/principals``: who has a key, with roles, channel and group."""
        self._query(request)
        return json_answer(self._door.insight.principals())

    async def recent(self, request: Request) -> Response:
        """``GET /v1/recent?limit=``: what ended lately, and what all asks since the start came to."""
        query = self._query(request, "limit")
        most = number_of(query, "limit", MOST_RECENT, MOST_RECENT)
        insight = self._door.insight
        return json_answer({"totals": insight.totals(), "asks": insight.ended(most)})

    async def record(self, request: Request) -> Response:
        """``GET /v1/recent/{id}``: one ask that ended, as its trace tells it."""
        self._query(request)
        return json_answer(self._door.insight.record(request.path_params["id"]))

    def _query(self, request: Request, *known: str) -> QueryParams:
        require_admin(self._gate.admit(request.scope))
        check_query(request.query_params, known, repeatable=("role",))
        return request.query_params


def _needed(query: QueryParams, name: str) -> str:
    text = query.get(name)
    if text is None:
        raise RequestError(f"the query parameter {name!r} is missing")
    return text
