"""The description of the routes of ``completions``."""

from typing import Any, Final

from session_runtime.transports.http.completions_errors import COMPLETIONS, MODELS
from session_runtime.transports.http.completions_request import (
    EXTENSION,
    IGNORED,
    OF_EXTENSION,
    REFUSED,
)
from session_runtime.transports.http.openapi_asks import KEY
from session_runtime.transports.http.openapi_parts import (
    ANY_OBJECT,
    JSON,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    answer,
    in_path,
    ref,
)


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_FLAG: Final = {"type": "boolean"}
_TOKENS: Final = {"type": "array", "maxItems": 32, "items": TEXT}
_EXTENSION: Final = {
    **_object(
        identity=_or_null(ref("Identity")),
        conversation=_or_null(TEXT),
        deadline_s=_or_null({"type": "number", "exclusiveMinimum": 0}),
        silent=_or_null(_FLAG),
        confirmations=_or_null(_TOKENS),
        declined=_or_null(_TOKENS),
    ),
    "additionalProperties": False,
    "description": f"As in an AskRequest: {', '.join(OF_EXTENSION)}",
}
_UNUSED: Final = {
    **{name: {"description": "Ignored: the profile decides"} for name in IGNORED},
    **{
        name: {"enum": [None, *neutral], "description": f"Not supported: {why}"}
        for name, (neutral, why) in REFUSED.items()
    },
}
_STREAM_OPTIONS: Final = {
    **_object(include_usage=_or_null(_FLAG), include_obfuscation={}),
    "additionalProperties": False,
}
_CHOICE: Final = _object(
    "index",
    "finish_reason",
    index=WHOLE,
    message=_object("role", "content", role={"const": "assistant"}, content=TEXT),
    finish_reason={"enum": ["stop", "length", "content_filter"]},
)
_ERROR: Final = _object(
    *("message", "type", "param", "code", EXTENSION),
    **{
        "message": TEXT,
        "type": TEXT,
        "param": {"type": ["string", "null"]},
        "code": TEXT,
        EXTENSION: ref("ErrorInfo"),
    },
)

COMPLETION_SCHEMAS: Final[dict[str, Any]] = {
    "CompletionRequest": {
        **_object(
            "messages",
            **{
                "messages": {"type": "array", "minItems": 1, "items": ANY_OBJECT},
                "model": _or_null(TEXT),
                "stream": _or_null(_FLAG),
                "stream_options": _or_null(_STREAM_OPTIONS),
                "user": _or_null(TEXT),
                "metadata": _or_null(ANY_OBJECT),
                EXTENSION: _or_null(_EXTENSION),
                **_UNUSED,
            },
        ),
        "additionalProperties": False,
    },
    "Completion": _object(
        *("id", "object", "created", "model", "choices", "usage", EXTENSION),
        **{
            "id": TEXT,
            "object": {"const": "chat.completion"},
            "created": WHOLE,
            "model": TEXT,
            "choices": {"type": "array", "items": _CHOICE},
            "usage": ANY_OBJECT,
            EXTENSION: {
                **_object(
                    *("ask_id", "outcome", "text", "messages", "steps", "loaded_tools"),
                    *("generation", "ignored"),
                    **dict.fromkeys(("ask_id", "outcome", "text"), TEXT),
                    **dict.fromkeys(("messages", "loaded_tools", "ignored"), TEXTS),
                    **dict.fromkeys(("steps", "generation"), WHOLE),
                    error=ref("ErrorInfo"),
                    pending={"type": "array", "items": ref("PendingCall")},
                    cut_off={"enum": ["length", "content_filter"]},
                ),
                "description": "The result of the ask but for its transcript and usage",
            },
        },
    ),
    "Model": _object(
        *("id", "object", "created", "owned_by"),
        id=TEXT,
        object={"const": "model"},
        created=NUMBER,
        owned_by=TEXT,
    ),
    "CompletionError": _object("error", error=_ERROR),
}


def completion_error(description: str) -> dict[str, Any]:
    """An error object in OpenAI's form."""
    return answer(description, ref("CompletionError"))


_COMPLETE: Final = {
    "summary": "Ask in the form of OpenAI's chat completions; the daemon runs the tools",
    "parameters": [KEY],
    "requestBody": {"required": True, "content": {JSON: {"schema": ref("CompletionRequest")}}},
    "responses": {
        "200": {
            "description": "The answer; with stream the pieces of one, then [DONE]",
            "content": {
                JSON: {"schema": ref("Completion")},
                "text/event-stream": {"schema": TEXT},
            },
        },
        "400": completion_error("The request is wrong; the message names every problem"),
        "404": completion_error("There is no such model"),
        "409": completion_error(
            "A token is unknown, expired or used; or the caller ended or replaced the ask"
        ),
        "429": completion_error(
            "Too many asks wait, or the model's service takes no more; Retry-After says when"
        ),
        "500": completion_error("A fault of the daemon"),
        "502": completion_error("The model failed; a second attempt would not help"),
        "503": completion_error(
            "The model failed for now; or at capacity or stopping, see Retry-After"
        ),
        "504": completion_error("The model did not answer in time"),
    },
}
_LIST: Final = _object(
    *("object", "data"), object={"const": "list"}, data={"type": "array", "items": ref("Model")}
)

COMPLETION_PATHS: Final[dict[str, dict[str, Any]]] = {
    COMPLETIONS: {"post": _COMPLETE},
    MODELS: {
        "get": {
            "summary": "The model profiles, the default one first",
            "responses": {
                "200": answer("They", _LIST),
                "400": completion_error("There is a query"),
            },
        }
    },
    f"{MODELS}/{{id}}": {
        "get": {
            "summary": "One model profile",
            "parameters": [in_path("id", TEXT, "the profile's name")],
            "responses": {
                "200": answer("It", ref("Model")),
                "404": completion_error("There is no such profile"),
            },
        }
    },
}
