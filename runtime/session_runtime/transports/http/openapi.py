"""The description of the HTTP routes, written by hand; a test holds it against the real ones."""

from typing import Any, Final

from session_runtime.transports.http.completions_errors import is_openai
from session_runtime.transports.http.guard import is_open
from session_runtime.transports.http.openapi_asks import ASK_PATHS, ASK_SCHEMAS
from session_runtime.transports.http.openapi_completions import (
    COMPLETION_PATHS,
    COMPLETION_SCHEMAS,
    completion_error,
)
from session_runtime.transports.http.openapi_config import CONFIG_PATHS, CONFIG_SCHEMAS
from session_runtime.transports.http.openapi_insight import INSIGHT_PATHS, INSIGHT_SCHEMAS
from session_runtime.transports.http.openapi_parts import (
    ANY_OBJECT,
    FILLED,
    JSON,
    NAME,
    NAMES,
    NUMBER,
    TEXT,
    TEXTS,
    TOKENS,
    WHOLE,
    answer,
    error,
    in_path,
    list_of,
    optional,
    ref,
)
from session_runtime.transports.http.openapi_servers import SERVER_PATHS
from session_runtime.transports.http.openapi_tools import TOOL_PATHS, TOOL_SCHEMAS

_SCHEMAS: Final[dict[str, Any]] = {
    "Identity": {
        "type": "object",
        "additionalProperties": False,
        "properties": optional(user=NAME, roles=NAMES, channel=NAME, group=NAME),
    },
    "Message": {
        "type": "object",
        "description": "A message as chat APIs write it; unknown fields are kept.",
        "required": ["role"],
        "properties": {
            "role": {"enum": ["system", "user", "assistant", "tool"]},
            "content": {"type": ["string", "array", "null"]},
            "tool_calls": {"type": ["array", "null"], "items": ANY_OBJECT},
            "tool_call_id": {"type": ["string", "null"]},
            "is_error": {"type": ["boolean", "null"]},
        },
    },
    "AskRequest": {
        "type": "object",
        "description": "Either text or messages, and anything else as needed.",
        "additionalProperties": False,
        "properties": optional(
            text=FILLED,
            messages={"type": "array", "items": ref("Message"), "minItems": 1},
            history={"type": "array", "items": ref("Message")},
            instructions=TEXT,
            identity=ref("Identity"),
            conversation=NAME,
            model=NAME,
            deadline_s={"type": "number", "exclusiveMinimum": 0},
            metadata=ANY_OBJECT,
            silent={"type": "boolean"},
            confirmations=TOKENS,
            declined=TOKENS,
            detach={"type": "boolean"},
            callback=TEXT,
        ),
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
            "ask_id": TEXT,
            "outcome": {
                "enum": ["answered", "ended", "limit", "needs_confirmation", "cancelled", "failed"]
            },
            "text": TEXT,
            "messages": TEXTS,
            "new_messages": {"type": "array", "items": ref("Message")},
            "usage": ANY_OBJECT,
            "steps": {"type": "integer"},
            "loaded_tools": TEXTS,
            "generation": {"type": "integer"},
            "error": ref("ErrorInfo"),
            "pending": {"type": "array", "items": ref("PendingCall")},
            "call": ref("Call"),
            "cut_off": {"enum": ["length", "content_filter"]},
            "refused": {
                "const": True,
                "description": "It failed before anything of it began; else not there",
            },
        },
    },
    "PendingCall": {
        "type": "object",
        "description": "A call that waits for a person's consent; expires_at in seconds since 1970",
        "required": ["token", "tool", "arguments", "call_id", "expires_at"],
        "properties": {
            "token": TEXT,
            "tool": TEXT,
            "arguments": ANY_OBJECT,
            "call_id": TEXT,
            "expires_at": NUMBER,
        },
    },
    "Revocation": {
        "type": "object",
        "description": "A pattern whose tools may not be called; time in seconds since 1970",
        "required": ["number", "pattern", "reason", "by", "time"],
        "properties": {
            "number": WHOLE,
            "pattern": TEXT,
            "reason": TEXT,
            "by": TEXT,
            "time": NUMBER,
            "tools": TEXTS,
            "warnings": TEXTS,
        },
    },
    "ErrorInfo": {
        "type": "object",
        "required": ["code", "message", "retryable"],
        "properties": {
            "code": TEXT,
            "message": TEXT,
            "retryable": {"type": "boolean"},
            "retry_after_s": {"type": "number"},
        },
    },
    "Error": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": ref("ErrorInfo")},
    },
}


def _page(summary: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": answer("The page", ANY_OBJECT)}}


_READY: Final = {
    "summary": "Whether asks are taken",
    "responses": {
        "200": answer("Ready", ANY_OBJECT),
        "503": error("Not ready; the message says why"),
    },
}

_METRICS: Final = {
    "summary": "Numbers for a monitoring system; any key will do",
    "responses": {
        "200": {
            "description": "The text format of Prometheus",
            "content": {"text/plain": {"schema": TEXT}},
        }
    },
}

_REVOCATIONS: Final = {
    "summary": "What is revoked, the oldest first",
    "responses": {"200": answer("It", list_of("revocations", ref("Revocation")))},
}
_PATTERN: Final = {
    "type": "object",
    "required": ["pattern"],
    "additionalProperties": False,
    "properties": {"pattern": FILLED, **optional(reason=TEXT)},
}
_REVOKE: Final = {
    "summary": "Take tools away at once, from running asks too, until this is lifted",
    "requestBody": {"required": True, "content": {JSON: {"schema": _PATTERN}}},
    "responses": {
        "200": answer("The pattern was revoked before", ref("Revocation")),
        "201": answer("It is; tools are those that it matches now", ref("Revocation")),
        "400": error("The pattern or the reason cannot be used"),
        "500": error("It is revoked, but could not be kept: a restart would lift it"),
    },
}
_LIFT: Final = {
    "summary": "Give back what a revocation took",
    "parameters": [in_path("number", WHOLE, "the revocation's number")],
    "responses": {
        "200": answer("What is lifted", ref("Revocation")),
        "404": error("There is no such revocation"),
        "500": error("It is still revoked, as lifting it could not be kept"),
    },
}

_REFUSED: Final = {
    "400": "The request is wrong; the message says how",
    "403": "The key does not allow it; or without keys, Host or Origin is not this machine",
    "431": "The request line and headers are too large",
    "503": "Too many connections are open; Retry-After says when to try again",
}
_NO_KEY: Final = {"401": "There are keys, and none or an unknown one was sent"}
_BODY_REFUSED: Final = {
    "408": "The body did not arrive in time",
    "413": "The body is too large",
    "415": "The body is not declared as what it has to be",
}


def _guarded(path: str, operations: dict[str, Any]) -> dict[str, Any]:
    """Say who may use a path, and what may be answered wherever one asks."""
    shape = completion_error if is_openai(path) else error
    is_free = is_open(path)

    def whole(said: dict[str, Any]) -> dict[str, Any]:
        refused = {
            **_REFUSED,
            **({} if is_free else _NO_KEY),
            **(_BODY_REFUSED if "requestBody" in said else {}),
        }
        shapes = {status: shape(told) for status, told in refused.items()}
        free: dict[str, Any] = {"security": []} if is_free else {}
        return {**said, **free, "responses": {**shapes, **said["responses"]}}

    return {method: whole(said) for method, said in operations.items()}


_PATHS: Final[dict[str, dict[str, Any]]] = {
    **COMPLETION_PATHS,
    **TOOL_PATHS,
    "/v1/status": {"get": _page("State of the runtime")},
    "/v1/revocations": {"get": _REVOCATIONS, "post": _REVOKE},
    "/v1/revocations/{number}": {"delete": _LIFT},
    **ASK_PATHS,
    **CONFIG_PATHS,
    **SERVER_PATHS,
    **INSIGHT_PATHS,
    "/healthz": {"get": _page("The process is alive")},
    "/readyz": {"get": _READY},
    "/metrics": {"get": _METRICS},
    "/openapi.json": {"get": _page("This description")},
}

OPENAPI: Final[dict[str, Any]] = {
    "openapi": "3.1.0",
    "info": {"title": "session-runtime", "version": "1"},
    "security": [{}, {"key": []}],  # none is needed while the daemon has no keys
    "paths": {path: _guarded(path, operations) for path, operations in _PATHS.items()},
    "components": {
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        "schemas": {
            **_SCHEMAS,
            **ASK_SCHEMAS,
            **TOOL_SCHEMAS,
            **COMPLETION_SCHEMAS,
            **CONFIG_SCHEMAS,
            **INSIGHT_SCHEMAS,
        },
    },
}
