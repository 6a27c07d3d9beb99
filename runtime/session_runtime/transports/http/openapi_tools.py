"""The description of the routes of tools: what there is, and calling one by its name."""

from typing import Any, Final

from session_runtime.transports.http.openapi_asks import KEY, RUN_ANSWERS
from session_runtime.transports.http.openapi_parts import (
    ANY_OBJECT,
    FILLED,
    JSON,
    NUMBER,
    TEXT,
    TOKENS,
    WHOLE,
    answer,
    error,
    in_path,
    query,
    ref,
)

_BOOLEAN: Final = {"type": "boolean"}
_CALL: Final = {
    "ok": _BOOLEAN,
    "tool": TEXT,
    "attempts": WHOLE,
    "duration_ms": NUMBER,
    "result": TEXT,
    "structured": ANY_OBJECT,
    "whole_chars": WHOLE,
}

TOOL_SCHEMAS: Final[dict[str, Any]] = {
    "Invocation": {
        "type": "object",
        "description": "What a tool is called with, and for whom",
        "additionalProperties": False,
        "properties": {
            "arguments": ANY_OBJECT,
            "identity": ref("Identity"),
            "conversation": TEXT,
            "deadline_s": {"type": "number", "exclusiveMinimum": 0},
            "metadata": ANY_OBJECT,
            "confirmations": TOKENS,
            "detach": _BOOLEAN,
            "callback": TEXT,
        },
    },
    "Call": {
        "type": "object",
        "description": "What came of one tool; result is there if ok",
        "required": ["ok", "tool", "attempts", "duration_ms"],
        "additionalProperties": False,
        "properties": _CALL,
    },
    "Invoked": {
        "type": "object",
        "description": "What came of a tool that was called by its name: result if ok, else error",
        "required": ["ok", "ask_id", "generation"],
        "additionalProperties": False,
        "properties": {
            "ask_id": TEXT,
            "generation": WHOLE,
            **_CALL,
            "error": ref("ErrorInfo"),
            "pending": {"type": "array", "items": ref("PendingCall")},
        },
    },
}

_TOOLS: Final = {
    "summary": "The tools an identity may use, or the caller itself; for admins without one, all",
    "parameters": [
        query("user", FILLED, "user of the identity"),
        query(
            "role", {"type": "array", "items": FILLED}, "a role of the identity; may be repeated"
        ),
        query("channel", FILLED, "channel of the identity"),
        query("group", FILLED, "group of the identity"),
        query("after", FILLED, "the tools beyond this name: next of the page before"),
        query("limit", {"type": "integer", "minimum": 1, "maximum": 500}, "the most tools"),
        query("schemas", _BOOLEAN, "whether to tell their parameters too"),
    ],
    "responses": {
        "200": answer(
            "The tools, sorted by name; next if there are more",
            {
                "type": "object",
                "required": ["tools"],
                "properties": {"tools": {"type": "array", "items": ANY_OBJECT}, "next": TEXT},
            },
        ),
        "400": error("The query is wrong"),
        "403": error("The principal may not act for the identity; or as elsewhere"),
    },
}
_INVOKE: Final = {
    "summary": "Call one tool by its name, without a model; where http.invoke offers it",
    "parameters": [in_path("name", TEXT, "a name of the tool"), KEY],
    "requestBody": {"required": True, "content": {JSON: {"schema": ref("Invocation")}}},
    "responses": {
        **RUN_ANSWERS,
        "200": {
            "description": "What came of it; as a stream, the events of an ask",
            "content": {
                JSON: {"schema": ref("Invoked")},
                "text/event-stream": {"schema": TEXT},
            },
        },
        "404": error("There is no such tool for the caller that can be called so, or none at all"),
    },
}

TOOL_PATHS: Final[dict[str, dict[str, Any]]] = {
    "/v1/tools": {"get": _TOOLS},
    "/v1/tools/{name}/invoke": {"post": _INVOKE},
}
