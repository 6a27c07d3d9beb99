"""The description of the HTTP routes, written by hand; a test holds it against the real ones."""

from typing import Any, Final

_JSON: Final = "application/json"


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {_JSON: {"schema": schema}}}


def _error(description: str) -> dict[str, Any]:
    return _answer(description, _ref("Error"))


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": description}


_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_ANY_OBJECT: Final = {"type": "object"}

_SCHEMAS: Final[dict[str, Any]] = {
    "Identity": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"user": _TEXT, "roles": _TEXTS, "channel": _TEXT, "group": _TEXT},
    },
    "Message": {
        "type": "object",
        "description": "A message as chat APIs write it; unknown fields are kept.",
        "required": ["role"],
        "properties": {
            "role": {"enum": ["system", "user", "assistant", "tool"]},
            "content": {"type": ["string", "array", "null"]},
            "tool_calls": {"type": ["array", "null"], "items": _ANY_OBJECT},
            "tool_call_id": {"type": ["string", "null"]},
        },
    },
    "AskRequest": {
        "type": "object",
        "description": "Either text or messages, and anything else as needed.",
        "additionalProperties": False,
        "properties": {
            "text": _TEXT,
            "messages": {"type": "array", "items": _ref("Message")},
            "history": {"type": "array", "items": _ref("Message")},
            "instructions": _TEXT,
            "identity": _ref("Identity"),
            "conversation": _TEXT,
            "model": _TEXT,
            "deadline_s": {"type": "number", "exclusiveMinimum": 0},
            "metadata": _ANY_OBJECT,
            "silent": {"type": "boolean"},
        },
    },
    "AskResult": {
        "type": "object",
        "required": [
            "ask_id",
            "outcome",
            "text",
            "messages",
            "new_messages",
            "usage",
            "steps",
            "loaded_tools",
            "generation",
        ],
        "properties": {
            "ask_id": _TEXT,
            "outcome": {
                "enum": ["answered", "ended", "limit", "needs_confirmation", "cancelled", "failed"]
            },
            "text": _TEXT,
            "messages": _TEXTS,
            "new_messages": {"type": "array", "items": _ref("Message")},
            "usage": _ANY_OBJECT,
            "steps": {"type": "integer"},
            "loaded_tools": _TEXTS,
            "generation": {"type": "integer"},
            "error": _ref("ErrorInfo"),
        },
    },
    "ErrorInfo": {
        "type": "object",
        "required": ["code", "message", "retryable"],
        "properties": {
            "code": _TEXT,
            "message": _TEXT,
            "retryable": {"type": "boolean"},
            "retry_after_s": {"type": "number"},
        },
    },
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": _ref("ErrorInfo")},
    },
}

_ASK: Final = {
    "summary": "Ask, and get the result as JSON or every event as it happens",
    "requestBody": {"required": True, "content": {_JSON: {"schema": _ref("AskRequest")}}},
    "responses": {
        "200": {
            "description": "How the ask ended; as a stream, one event per frame, the result last",
            "content": {
                _JSON: {"schema": _ref("AskResult")},
                "text/event-stream": {"schema": _TEXT},
            },
        },
        "400": _error("The request is wrong; the message names every problem"),
        "403": _error("Host or Origin is not this machine"),
        "406": _error("Neither form of answer is accepted"),
        "408": _error("The body did not arrive in time"),
        "413": _error("The body is too large"),
        "415": _error("The body is not declared as JSON"),
        "503": _error("At capacity or stopping; Retry-After says when to try again"),
    },
}

_TOOLS: Final = {
    "summary": "The tools an identity would see; all of them if none is given",
    "parameters": [
        _query("user", _TEXT, "user of the identity"),
        _query("role", _TEXTS, "a role of the identity; may be repeated"),
        _query("channel", _TEXT, "channel of the identity"),
        _query("group", _TEXT, "group of the identity"),
    ],
    "responses": {
        "200": _answer(
            "The tools, sorted by name",
            {
                "type": "object",
                "required": ["tools"],
                "properties": {"tools": {"type": "array", "items": _ANY_OBJECT}},
            },
        ),
        "400": _error("The query is wrong"),
    },
}


def _page(summary: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _answer("The page", _ANY_OBJECT)}}


_READY: Final = {
    "summary": "Whether asks are taken",
    "responses": {
        "200": _answer("Ready", _ANY_OBJECT),
        "503": _error("Not ready; the message says why"),
    },
}

OPENAPI: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {"title": "session-runtime", "version": "1"},
    "paths": {
        "/v1/ask": {"post": _ASK},
        "/v1/tools": {"get": _TOOLS},
        "/v1/status": {"get": _page("State of the runtime")},
        "/healthz": {"get": _page("The process is alive")},
        "/readyz": {"get": _READY},
        "/openapi.json": {"get": _page("This description")},
    },
    "components": {"schemas": _SCHEMAS},
}
