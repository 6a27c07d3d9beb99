"""The description of the routes of ``insight``, ``live`` and ``console``."""

from typing import Any, Final

from session_runtime.transports.http.openapi_parts import (
    ANY_OBJECT,
    FILLED,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    answer,
    error,
    in_path,
    list_of,
    numbered,
    query,
    ref,
)

_IDENTITY: Final = (
    query("principal", FILLED, "who acts for the identity; without one nobody bounds it"),
    query("user", FILLED, "user of the identity"),
    query("role", {"type": "array", "items": FILLED}, "a role of the identity; may be repeated"),
    query("channel", FILLED, "channel of the identity"),
    query("group", FILLED, "group of the identity"),
)
_COUNTS: Final = {"type": "object", "additionalProperties": WHOLE}
_OBJECTS: Final = {"type": "array", "items": ANY_OBJECT}
_NULLABLE: Final = {"type": ["string", "null"]}


def _whole(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


INSIGHT_SCHEMAS: Final[dict[str, Any]] = {
    "Found": _whole(
        query=TEXT,
        generation=WHOLE,
        model=TEXT,
        permitted=WHOLE,
        rule=TEXT,
        exposed=TEXTS,
        tokens=_COUNTS,
        directory=TEXT,
        answer=_NULLABLE,
        loaded=_OBJECTS,
        matches=_OBJECTS,
    ),
    "Totals": _whole(
        asks=WHOLE,
        outcomes=_COUNTS,
        errors=_COUNTS,
        turns=_COUNTS,
        calls=_COUNTS,
        searches=_COUNTS,
        refused=_COUNTS,
        usage=ANY_OBJECT,
        tokens_saved=WHOLE,
        duration_s=NUMBER,
        daemon_s=NUMBER,
    ),
    "ConsoleSession": _whole(principal=TEXT, token=_NULLABLE, expires={"type": ["number", "null"]}),
}

_FILE: Final = {
    "200": {"description": "It", "content": {"text/html": {"schema": TEXT}}},
    "404": error("The console has no such file"),
}
_SESSION: Final = answer("Who is signed in, and the token for changes", ref("ConsoleSession"))

INSIGHT_PATHS: Final[dict[str, dict[str, Any]]] = {
    "/v1/search": {
        "get": {
            "summary": "What a tool search finds for an identity, why, and what the model is given",
            "parameters": [
                {**query("query", FILLED, "what is searched for"), "required": True},
                query("limit", numbered(1, 50), "how many matches at most"),
                *_IDENTITY,
            ],
            "responses": {
                "200": answer("It", ref("Found")),
                "400": error("The query is wrong"),
            },
        }
    },
    "/v1/access": {
        "get": {
            "summary": "Whether an identity may use a tool, and the rule that decides; or all it may use",
            "parameters": [
                query("tool", FILLED, "the tool's name"),
                *_IDENTITY,
            ],
            "responses": {
                "200": answer(
                    "It",
                    {
                        "oneOf": [
                            _whole(tool=TEXT, allowed={"type": "boolean"}, why=TEXT),
                            _whole(tools=TEXTS),
                        ]
                    },
                ),
                "400": error("The query is wrong"),
                "404": error("There is no such tool"),
            },
        }
    },
    "/v1/principals": {
        "get": {
            "summary": "Who has a key, and what each is by itself",
            "responses": {"200": answer("They", list_of("principals", ANY_OBJECT))},
        }
    },
    "/v1/recent": {
        "get": {
            "summary": "What all asks since the start came to, and those that ended last",
            "parameters": [query("limit", numbered(1, 200), "how many asks at most")],
            "responses": {
                "200": answer("It", _whole(totals=ref("Totals"), asks=_OBJECTS)),
                "400": error("The query is wrong"),
            },
        }
    },
    "/v1/recent/{id}": {
        "get": {
            "summary": "One of the asks that ended last, as its trace tells it",
            "parameters": [in_path("id", TEXT, "the ask's id")],
            "responses": {
                "200": answer("It", ANY_OBJECT),
                "404": error("It is not among them"),
            },
        }
    },
    "/v1/live": {
        "get": {
            "summary": "Status, running and ended asks as events, again whenever they change",
            "responses": {
                "200": {
                    "description": "The events status, asks, recent and ended, until the client leaves",
                    "content": {"text/event-stream": {"schema": TEXT}},
                }
            },
        }
    },
    "/console": {"get": {"summary": "The console for operators", "responses": _FILE}},
    "/console/files/{name}": {
        "get": {
            "summary": "A file of the console",
            "parameters": [in_path("name", TEXT, "the file's name")],
            "responses": {
                **_FILE,
                "200": {
                    "description": "It",
                    "content": {
                        media_type: {"schema": TEXT}
                        for media_type in (
                            "text/html",
                            "text/css",
                            "text/javascript",
                            "image/svg+xml",
                        )
                    },
                },
            },
        }
    },
    "/console/session": {
        "get": {"summary": "Who is signed in at the console", "responses": {"200": _SESSION}},
        "post": {
            "summary": "Exchange a key of an administrator for a session, which is a cookie",
            "responses": {"200": _SESSION, "201": _SESSION},
        },
        "delete": {
            "summary": "Sign out",
            "responses": {"200": answer("It has ended", ANY_OBJECT)},
        },
    },
}
