"""The description of the routes of ``servers``."""

from typing import Any, Final

from session_runtime.transports.http.openapi_parts import (
    ANY_OBJECT,
    JSON,
    TEXT,
    TEXTS,
    answer,
    error,
    in_path,
    list_of,
    numbered,
    optional,
    query,
    ref,
)

_NAME: Final = in_path("name", TEXT, "the server's name in the configuration")
_UNKNOWN: Final = {"404": error("There is no such server")}
_LOG: Final = {
    "type": "object",
    "required": ["credential", "lines"],
    "properties": {"credential": {"type": ["string", "null"]}, "lines": TEXTS},
}
_CHANGED: Final = {
    "type": "object",
    "required": ["servers", "receipt"],
    "properties": {
        "servers": {"type": "array", "items": ANY_OBJECT},
        "receipt": ref("Receipt"),
    },
}


def _change(summary: str) -> dict[str, Any]:
    return {
        "post": {
            "summary": summary,
            "parameters": [_NAME],
            "responses": {
                "200": answer("How it is now, and what that changed", _CHANGED),
                **_UNKNOWN,
            },
        }
    }


_WANTED: Final = {
    "type": "object",
    "additionalProperties": False,
    "description": "Either name and digest, a tool in that form, or server, all tools of it that wait",
    "properties": optional(name=TEXT, digest=TEXT, server=TEXT),
}
_APPROVED: Final = {
    "type": "object",
    "required": ["approved", "receipt"],
    "properties": {"approved": TEXTS, "receipt": ref("Receipt")},
}
_FORM: Final = {
    "type": ["object", "null"],
    "required": ["parameters", "output", "destructive"],
    "properties": {
        "parameters": ANY_OBJECT,
        "output": {"type": ["object", "null"]},
        "destructive": {"type": "boolean"},
    },
}
_WAITING: Final = {
    "type": "object",
    "required": ["server", "tool", "digest", "before", "now"],
    "properties": {
        **dict.fromkeys(("server", "tool", "digest"), TEXT),
        "before": {**_FORM, "description": "Null where only its digest is known"},
        "now": _FORM,
    },
}
_SHOWN: Final = {
    "type": "object",
    "required": ["name", "forms"],
    "properties": {"name": TEXT, "forms": {"type": "array", "items": _WAITING}},
}


SERVER_PATHS: Final[dict[str, dict[str, Any]]] = {
    "/v1/tools/waiting/{name}": {
        "get": {
            "summary": "The forms in which a tool waits for an approval, and the one before",
            "parameters": [in_path("name", TEXT, "the tool's name")],
            "responses": {
                "200": answer("They", _SHOWN),
                "404": error("Nothing of that name waits for an approval"),
            },
        }
    },
    "/v1/tools/approve": {
        "post": {
            "summary": "Approve destructive tools of servers whose schemas changed",
            "requestBody": {"required": True, "content": {JSON: {"schema": _WANTED}}},
            "responses": {
                "200": answer("Names of what waits no more, and what that changed", _APPROVED),
                "400": error("Neither name nor server is given, or both, or no digest"),
                "404": error("Nothing of that name waits for an approval"),
                "409": error("The tool waits in another form"),
                "500": error("It is approved, but could not be kept: a restart would forget it"),
            },
        }
    },
    "/v1/servers/{name}/log": {
        "get": {
            "summary": "The last lines of a server's standard error, by session",
            "parameters": [_NAME, query("lines", numbered(1, 1_000), "how many at most")],
            "responses": {
                "200": answer("They", list_of("logs", _LOG)),
                "400": error("The query is wrong"),
                **_UNKNOWN,
            },
        }
    },
    "/v1/servers/{name}/refresh": _change("List the tools of a server again"),
    "/v1/servers/{name}/restart": _change("Connect to a server anew, with a new process"),
}
