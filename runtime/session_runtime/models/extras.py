"""Which fields of an answer we do not know ourselves, and may send back with the message (ASK-3).

A provider's own fields are kept, because some refuse a transcript without them: reasoning text and
its signatures, thought signatures of a call. Sending them back goes to the provider that made them.
"""

from collections.abc import Mapping
from typing import Any, Final

from session_runtime.types import JsonObject

_OWN_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "function_call"})
RESPONSES_ITEMS: Final = "session_runtime.responses"
"""The field in which the wire ``responses`` keeps what other wires have no place for."""

MESSAGES_BLOCKS: Final = "session_runtime.messages"
"""The same of the wire ``anthropic``."""

_OWN_CALL_FIELDS: Final = frozenset(
    {"id", "type", "function", "index", "name", "arguments", "parameters"}
)

# Remarks about an answer that are no part of the conversation; strict servers refuse them as
# unknown properties of a message.
_REMARKS: Final = frozenset(
    {
        "annotations",  # where a citation stands in the text
        "logprobs",
        "token_ids",
        "stop_reason",
        "provider_specific_fields",  # a proxy's copy of the other fields
        "refusal",  # is taken as the text of the answer
        "audio",  # has another form in requests: only the id of an earlier answer
        "images",  # belongs into the content of a message in requests
        RESPONSES_ITEMS,  # is for the service that made them, on another wire
        MESSAGES_BLOCKS,
    }
)


_KNOWN: Final = _OWN_FIELDS | _REMARKS


def message_extra(fields: Mapping[str, Any]) -> JsonObject:
    """The unknown fields of an assistant message that hold something and may be sent back."""
    return _filled(fields, _KNOWN)


def call_extra(fields: Mapping[str, Any]) -> JsonObject:
    """The unknown fields of one tool call that hold something and may be sent back."""
    return _filled(fields, _OWN_CALL_FIELDS)


def _filled(fields: Mapping[str, Any], without: frozenset[str]) -> JsonObject:
    if without.issuperset(fields):
        return {}
    return {
        name: value
        for name, value in fields.items()
        if name not in without and value is not None and value != [] and value != {}
    }
