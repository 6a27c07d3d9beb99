"""The description of the routes of asks."""

from typing import Any, Final

from session_runtime.transports.http.openapi_parts import (
    FILLED,
    JSON,
    NUMBER,
    TEXT,
    TOKENS,
    WHOLE,
    answer,
    error,
    in_path,
    list_of,
    numbered,
    optional,
    query,
    ref,
)

ASK_SCHEMAS: Final[dict[str, Any]] = {
    "RunningAsk": {
        "type": "object",
        "description": "An ask that has not ended; started in seconds since 1970",
        "required": [
            *("ask_id", "started", "age_s", "generation", "model", "user", "principal"),
            *("steps", "tool_calls", "state", "cancelling"),
        ],
        "additionalProperties": False,
        "properties": {
            "ask_id": TEXT,
            "started": NUMBER,
            "age_s": NUMBER,
            "generation": WHOLE,
            "model": TEXT,
            "user": {"type": ["string", "null"]},
            "principal": TEXT,
            "steps": WHOLE,
            "tool_calls": WHOLE,
            "state": {"enum": ["queued", "starting", "model", "tools"]},
            "cancelling": {"type": "boolean"},
        },
    },
    "EndedAsk": {
        "type": "object",
        "description": "An ask that has ended and is kept; times in seconds since 1970",
        "required": [
            *("ask_id", "state", "started", "ended", "kept_until", "user", "principal", "result"),
        ],
        "additionalProperties": False,
        "properties": {
            "ask_id": TEXT,
            "state": {"const": "ended"},
            "started": NUMBER,
            "ended": NUMBER,
            "kept_until": NUMBER,
            "user": {"type": ["string", "null"]},
            "principal": TEXT,
            "result": ref("AskResult"),
        },
    },
    "AcceptedAsk": {
        "type": "object",
        "description": "An ask that goes on without its client",
        "required": ["ask_id", "state"],
        "additionalProperties": False,
        "properties": {"ask_id": TEXT, "state": {"enum": ["running", "ended"]}},
    },
    "Decision": {
        "type": "object",
        "description": "What a person said about calls that wait; at least one token",
        "additionalProperties": False,
        "properties": optional(
            text=FILLED, confirmations=TOKENS, declined=TOKENS, detach={"type": "boolean"}
        ),
    },
}

KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
    "description": "The same request with the same key is the same ask, not another one",
}
_EVENTS: Final = {"text/event-stream": {"schema": TEXT}}
_GONE: Final = error("The ask ran, and its result had to make room; nothing was run again")
_ANSWERS: Final = {
    "200": {
        "description": "How the ask ended; as a stream, one event per frame, the result last",
        "content": {JSON: {"schema": ref("AskResult")}, **_EVENTS},
    },
    "202": answer("With detach: the ask goes on; Location says where", ref("AcceptedAsk")),
    "400": error("The request is wrong; the message names every problem"),
    "403": error("The principal may not act for the identity; or as elsewhere"),
    "406": error("Neither form of answer is accepted"),
    "409": error("A token under confirmations or declined is unknown, expired or used"),
    "410": _GONE,
    "422": error("The key was sent before with another request"),
    "429": error("Too many asks of the principal or user wait, or a rate or budget is used up"),
    "503": error("At capacity or stopping; Retry-After says when to try again"),
}
_SEQ: Final = numbered(0, 10**15 - 1)
_UNKNOWN: Final = error("There is no such ask, or none of the caller's")
_ASK_ID: Final = in_path("id", TEXT, "the ask's id")

_ASK: Final = {
    "summary": "Ask, and get the result as JSON or every event as it happens",
    "parameters": [KEY],
    "requestBody": {"required": True, "content": {JSON: {"schema": ref("AskRequest")}}},
    "responses": _ANSWERS,
}
_CONFIRM: Final = {
    "summary": "Go on where an ask waits for consent, as a new ask",
    "parameters": [_ASK_ID, KEY],
    "requestBody": {"required": True, "content": {JSON: {"schema": ref("Decision")}}},
    "responses": {
        **_ANSWERS,
        "404": _UNKNOWN,
        "409": error("The ask waits for nothing, or a token is not its own, expired or used"),
    },
}
_ASKS: Final = {
    "summary": "The caller's asks that have not ended, the oldest first; for admins, everybody's",
    "responses": {"200": answer("They", list_of("asks", ref("RunningAsk")))},
}
_ONE_ASK: Final = {
    "summary": "One ask: how far it is, or how it ended if it is kept",
    "parameters": [_ASK_ID],
    "responses": {
        "200": answer("It", {"oneOf": [ref("RunningAsk"), ref("EndedAsk")]}),
        "404": _UNKNOWN,
        "410": _GONE,
    },
}
_FOLLOW: Final = {
    "summary": "The events of an ask that is kept: those that were, then those that come",
    "parameters": [
        _ASK_ID,
        query("after", _SEQ, "seq of the last event that was seen; 0: none"),
        {
            "name": "Last-Event-ID",
            "in": "header",
            "schema": {"type": "string", "pattern": "^[0-9]{0,15}$"},
            "description": "The same, from clients that come back by themselves; the later one counts",
        },
    ],
    "responses": {
        "200": {"description": "One event per frame, the result last", "content": _EVENTS},
        "400": error("The query is wrong"),
        "404": _UNKNOWN,
        "410": _GONE,
        "409": error("The ask belongs to the connection that asked: nothing of it is kept"),
    },
}
_CANCEL: Final = {
    "summary": "End an ask, or, for admins, every one",
    "parameters": [
        in_path("id", TEXT, "the ask's id, or all"),
        query("reason", FILLED, "what the caller of the ask is told"),
    ],
    "responses": {
        "200": answer(
            "How many asks were told to end, and had not been before",
            {"type": "object", "required": ["cancelled"], "properties": {"cancelled": WHOLE}},
        ),
        "400": error("The query is wrong"),
        "404": _UNKNOWN,
        "410": _GONE,
    },
}

ASK_PATHS: Final[dict[str, dict[str, Any]]] = {
    "/v1/ask": {"post": _ASK},
    "/v1/asks": {"get": _ASKS},
    "/v1/asks/{id}": {"get": _ONE_ASK, "delete": _CANCEL},
    "/v1/asks/{id}/events": {"get": _FOLLOW},
    "/v1/asks/{id}/confirm": {"post": _CONFIRM},
}

RUN_ANSWERS: Final = _ANSWERS
"""What every request is answered with that runs an ask."""
