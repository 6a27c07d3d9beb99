"""The description of the routes of ``config``."""

from typing import Any, Final

from session_runtime.config.receipt import KEPT
from session_runtime.transports.http.openapi_parts import (
    ANY_OBJECT,
    FILLED,
    JSON,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    answer,
    error,
    list_of,
    numbered,
    query,
    ref,
)

_NULLABLE: Final = {"type": ["string", "null"]}
_ACTS: Final = {"enum": ["now", "next ask", "restart"]}


def _closed(**properties: object) -> dict[str, Any]:
    """An object that has all of these fields and no other."""
    return {
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }


def _listed(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


_RECEIPT: Final = _closed(
    id=WHOLE,
    time={**TEXT, "format": "date-time"},
    trigger={"enum": ["start", "watch", "signal", "http", "cli", "secret", "source", "servers"]},
    verdict={"enum": ["applied", "unchanged", "rejected", "applied-restart-needed"]},
    digest=TEXT,
    generation=WHOLE,
    entry={"type": ["integer", "null"]},
    duration_ms=NUMBER,
    changes=_listed(ref("Change")),
    restart_needed=_listed(ref("Change")),
    tools={"type": "object", "additionalProperties": TEXTS},
    errors=_listed(ref("Problem")),
    warnings=_listed(ref("Problem")),
)

CONFIG_SCHEMAS: Final[dict[str, Any]] = {
    "Explanation": _closed(key=TEXT, value={}, source=TEXT, shadowed=TEXTS, acts=_ACTS),
    "Change": _closed(key=TEXT, old={}, new={}, acts=_ACTS, shadowed_by=_NULLABLE),
    "Problem": _closed(message=TEXT, key=TEXT, source=TEXT, line={"type": ["integer", "null"]}),
    "Receipt": {
        **_RECEIPT,
        "description": "What one attempt to change the configuration came to; a trial has the id 0.",
        "properties": {**_RECEIPT["properties"], "left": TEXTS},
    },
}

_TAGGED: Final = {"ETag": {"description": "stands for the file in force", "schema": TEXT}}
_IF_MATCH: Final = {
    **query("If-Match", TEXT, "the ETag of the configuration that the edit is meant for"),
    "in": "header",
    "required": True,
}
_RECEIPTS: Final = {
    "200": {**answer("It is in force, or was already", ref("Receipt")), "headers": _TAGGED},
    "422": answer("It cannot be used; the receipt tells why, and nothing changed", ref("Receipt")),
}
_EDITED: Final = {
    **_RECEIPTS,
    "400": error("The request or a key is wrong"),
    "403": error("Not a key that may be changed over the network; or as elsewhere"),
    "409": error("The file cannot be edited, or another source wins over it"),
    "412": error("The file is not the one that the ETag stands for"),
    "428": error("There is no If-Match"),
}

_SHOW: Final = {
    "summary": "Every key in force, with its source",
    "responses": {
        "200": {
            **answer(
                "They; editable are those that may be changed over the network",
                _closed(
                    file=_NULLABLE,
                    digest=TEXT,
                    keys=_listed(ref("Explanation")),
                    editable=TEXTS,
                ),
            ),
            "headers": _TAGGED,
        }
    },
}
_SET: Final = {
    "summary": "Write values of keys into the file, and reload",
    "parameters": [_IF_MATCH],
    "requestBody": {
        "required": True,
        "description": "Dotted keys and their values; null takes a key out of the file",
        "content": {JSON: {"schema": {**ANY_OBJECT, "minProperties": 1}}},
    },
    "responses": _EDITED,
}
_EXPLAIN: Final = {
    "summary": "The value of a key, where it comes from and when an edit acts; or all of a section",
    "parameters": [{**query("key", FILLED, "the key or section, dotted"), "required": True}],
    "responses": {
        "200": answer(
            "It",
            {
                "oneOf": [
                    ref("Explanation"),
                    _closed(section=TEXT, keys=_listed(ref("Explanation"))),
                ]
            },
        ),
        "400": error("There is no such key"),
    },
}
_HISTORY: Final = {
    "summary": "What attempts to change the configuration came to, the newest first",
    "parameters": [query("limit", numbered(1, KEPT), "how many at most")],
    "responses": {
        "200": answer("They", list_of("receipts", ref("Receipt"))),
        "400": error("The query is wrong"),
    },
}
_VALIDATE: Final[dict[str, Any]] = {
    "summary": "What a reload would come to; nothing changes",
    "requestBody": {
        "description": "What would be in the file, or an edit as of PATCH; without a body, what is in it",
        "content": {
            "application/toml": {"schema": TEXT},
            "text/plain": {"schema": TEXT},
            JSON: {"schema": {**ANY_OBJECT, "minProperties": 1}},
        },
    },
    "responses": {
        "200": answer("It, whatever the verdict", ref("Receipt")),
        "400": error("The edit or a key is wrong"),
        "409": error("The file cannot be edited, or another source wins over it"),
        "412": error("The file holds what is not in force"),
    },
}
_PREVIEW: Final = _closed(
    receipt=ref("Receipt"), replay={"type": ["object", "null"]}, why_not=_NULLABLE
)
_REPLAY: Final = {
    "summary": "How many of the asks that were recorded last the same would change, and how",
    "parameters": [query("asks", numbered(1, 2_000), "how many at most; 200")],
    "requestBody": _VALIDATE["requestBody"],
    "responses": {
        **_VALIDATE["responses"],
        "200": answer("It, unless the receipt rejects it", _PREVIEW),
    },
}
_ROLLBACK: Final = {
    "summary": "Write an entry of the history into the file, and reload",
    "parameters": [_IF_MATCH],
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "required": ["number"],
                    "additionalProperties": False,
                    "properties": {
                        "number": {**WHOLE, "minimum": 1},
                        "include": {"type": "array", "items": {"enum": ["keys", "access"]}},
                    },
                }
            }
        },
    },
    "responses": {**_EDITED, "404": error("There is no such entry")},
}

CONFIG_PATHS: Final[dict[str, dict[str, Any]]] = {
    "/v1/config": {"get": _SHOW, "patch": _SET},
    "/v1/config/explain": {"get": _EXPLAIN},
    "/v1/config/history": {"get": _HISTORY},
    "/v1/config/validate": {"post": _VALIDATE},
    "/v1/config/replay": {"post": _REPLAY},
    "/v1/config/reload": {
        "post": {"summary": "Read all sources again", "responses": _RECEIPTS},
    },
    "/v1/config/rollback": {"post": _ROLLBACK},
}
