"""The configuration over HTTP: what is in force and why, what attempts came to, trying and editing.

All of it is for admins (NET-1, NET-3, INT-4). Whether an edit is good is decided behind the door.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from session_runtime.config.explain import explain, explain_section, show
from session_runtime.config.keys import parse_dotted
from session_runtime.config.receipt import KEPT, Receipt
from session_runtime.config.shape import is_harmless
from session_runtime.config.snapshot import ConfigSnapshot
from session_runtime.config.written import REMOVED
from session_runtime.errors import RequestError
from session_runtime.threads import in_thread
from session_runtime.transports.http.answers import JSON_TYPE, json_answer
from session_runtime.transports.http.body import has_body, is_json, parsed, read_body, read_text
from session_runtime.transports.http.door import HttpDoor, HttpLimits
from session_runtime.transports.http.guard import Gate, require_admin
from session_runtime.transports.http.query import check_query, number_of
from session_runtime.wire import edits_from_json, rollback_from_json

MOST_REPLAYED: Final = 2_000
USUALLY_REPLAYED: Final = 200
TRIED_TYPES: Final = ("application/toml", "text/plain", JSON_TYPE)


def config_routes(door: HttpDoor, gate: Gate, limits: HttpLimits) -> list[Route]:
    """All routes of the configuration."""
    pages, edits = _Pages(door, gate, limits), _Edits(door, gate, limits)

    async def shown_or_set(request: Request) -> Response:
        set_them = request.method == "PATCH"
        return await (edits.set_values(request) if set_them else pages.show(request))

    return [
        Route("/v1/config", shown_or_set, methods=["GET", "PATCH"]),
        Route("/v1/config/explain", pages.explain, methods=["GET"]),
        Route("/v1/config/history", pages.history, methods=["GET"]),
        Route("/v1/config/validate", pages.validate, methods=["POST"]),
        Route("/v1/config/replay", pages.replay, methods=["POST"]),
        Route("/v1/config/reload", edits.reload, methods=["POST"]),
        Route("/v1/config/rollback", edits.roll_back, methods=["POST"]),
    ]


class _Pages:
    """What changes nothing."""

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits

    async def show(self, request: Request) -> Response:
        """``GET /v1/config``: every key in force with its source; the ETag stands for the file."""
        require_admin(self._gate.admit(request.scope))
        check_query(request.query_params, ())
        snapshot, tag = self._door.live.snapshot, self._door.editor.tag
        shown = await in_thread("show configuration", partial(show, snapshot))
        page = {
            "file": None if snapshot.path is None else str(snapshot.path),
            "digest": snapshot.digest,
            "keys": [asdict(key) for key in shown],
            "editable": [key.key for key in shown if is_harmless(parse_dotted(key.key))],
        }
        return json_answer(page, headers={"etag": _quoted(tag)})

    async def explain(self, request: Request) -> Response:
        """``GET /v1/config/explain?key=``: one key, or all keys of a section (INT-4)."""
        require_admin(self._gate.admit(request.scope))
        check_query(request.query_params, ("key",))
        key = request.query_params.get("key")
        if key is None:
            raise RequestError("the query parameter 'key' is missing; name a key or a section")
        work = partial(_explained, self._door.live.snapshot, key)
        return json_answer(await in_thread("explain configuration", work))

    async def history(self, request: Request) -> Response:
        """``GET /v1/config/history?limit=``: the receipts, newest first (INT-4)."""
        require_admin(self._gate.admit(request.scope))
        check_query(request.query_params, ("limit",))
        limit = _limit(request.query_params.get("limit"))
        receipts = self._door.live.receipts.newest(limit)
        return json_answer({"receipts": [receipt.to_json() for receipt in receipts]})

    async def validate(self, request: Request) -> Response:
        """``POST /v1/config/validate``: what a reload would come to, with this text or the file.

        A body of JSON is an edit as ``PATCH /v1/config`` takes it: what that would come to.
        """
        editor, wanted = self._door.editor, await self._wanted(request)
        if isinstance(wanted, Mapping):
            receipt = await editor.try_values(wanted, any_key=self._gate.any_key)
        else:
            receipt = await self._door.live.validate(wanted)
        return json_answer(receipt.to_json())

    async def replay(self, request: Request) -> Response:
        """``POST /v1/config/replay?asks=``: what the same would change of the last asks (OPS-3)."""
        require_admin(self._gate.admit(request.scope))
        check_query(request.query_params, ("asks",))
        most = number_of(request.query_params, "asks", USUALLY_REPLAYED, MOST_REPLAYED)
        preview, wanted = self._door.preview, await self._wanted(request)
        if isinstance(wanted, Mapping):
            any_key = self._gate.any_key
            return json_answer(await preview.of_values(wanted, most, any_key=any_key))
        return json_answer(await preview.of(wanted, most))

    async def _wanted(self, request: Request) -> Mapping[str, object] | bytes | None:
        """What is to be tried: new values of keys, the text of a file, or None, the file as it is."""
        require_admin(self._gate.admit(request.scope))
        if not has_body(request):
            return None
        text = await read_text(request, self._limits, TRIED_TYPES)
        wanted = await parsed(text, edits_of) if is_json(request) else text
        require_admin(self._gate.admit(request.scope))
        return wanted


class _Edits:
    """What may put another configuration into force."""

    def __init__(self, door: HttpDoor, gate: Gate, limits: HttpLimits) -> None:
        self._door = door
        self._gate = gate
        self._limits = limits

    async def reload(self, request: Request) -> Response:
        """``POST /v1/config/reload``: read all sources again; 422 if they cannot be used."""
        require_admin(self._gate.admit(request.scope))
        return self._told(await self._door.live.reload(self._gate.trigger))

    async def set_values(self, request: Request) -> Response:
        """``PATCH /v1/config``: write values of keys into the file, and reload."""
        tags, body = _if_match(request), await self._body(request)
        values = edits_of(body)
        receipt = await self._door.editor.set_values(
            values,
            lambda tag: _matches(tag, tags),
            any_key=self._gate.any_key,
            trigger=self._gate.trigger,
        )
        return self._told(receipt)

    async def roll_back(self, request: Request) -> Response:
        """``POST /v1/config/rollback``: write an entry of the history into the file, and reload."""
        tags, body = _if_match(request), await self._body(request)
        wanted = rollback_from_json(body)
        receipt, left = await self._door.editor.roll_back(
            wanted.number,
            wanted.include,
            lambda tag: _matches(tag, tags),
            any_key=self._gate.any_key,
            trigger=self._gate.trigger,
        )
        return self._told(receipt, left)

    async def _body(self, request: Request) -> object:
        """Read the JSON, and ask who sends it before and after, as keys may change meanwhile."""
        require_admin(self._gate.admit(request.scope))
        limits = self._limits
        body = await read_body(request, limits.max_body_bytes, limits.body_timeout_s)
        data: object = await parsed(body, lambda data: data)
        require_admin(self._gate.admit(request.scope))
        return data

    def _told(self, receipt: Receipt, left: Sequence[str] = ()) -> Response:
        told = receipt.to_json()
        return json_answer(
            {**told, "left": left} if left else told,
            200 if receipt.good else 422,
            {"etag": _quoted(self._door.editor.tag)},
        )


def _explained(snapshot: ConfigSnapshot, key: str) -> dict[str, Any]:
    section = explain_section(snapshot, key)
    if section is not None:
        return {"section": key, "keys": [asdict(each) for each in section]}
    return asdict(explain(snapshot, key))


def edits_of(body: object) -> Mapping[str, object]:
    """The new values of dotted keys; null takes one out."""
    values = edits_from_json(body)
    return {key: REMOVED if value is None else value for key, value in values.items()}


def _limit(text: str | None) -> int:
    if text is None:
        return KEPT
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= KEPT:
        raise RequestError(
            f"the query parameter 'limit' is {text[:40]!r}; give a number from 1 to {KEPT}"
        )
    return int(text)


def _if_match(request: Request) -> tuple[str, ...]:
    """The entity tags of the header If-Match; RequestError without any."""
    given = ",".join(request.headers.getlist("if-match"))
    tags = tuple(tag.strip() for tag in given.split(",") if tag.strip())
    if not tags:
        raise RequestError(
            "an edit needs the header If-Match with the ETag of GET /v1/config, so that it cannot undo"
            " the edit of somebody else",
            code="config.if_match",
        )
    return tags


def _matches(tag: str, given: Sequence[str]) -> bool:
    return "*" in given or _quoted(tag) in given


def _quoted(tag: str) -> str:
    return f'"{tag}"'
