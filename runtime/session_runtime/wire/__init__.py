"""JSON and the values of an ask: strict on the way in, never failing on the way out.

What a field means is decided in ``ask``.
"""

from session_runtime.wire.config import RollbackRequest, edits_from_json, rollback_from_json
from session_runtime.wire.control import approve_from_json, revoke_from_json, running_to_json
from session_runtime.wire.incoming import (
    callback_from_json,
    confirm_from_json,
    detach_from_json,
    invoke_from_json,
    message_from_json,
    request_from_json,
)
from session_runtime.wire.outgoing import (
    error_to_json,
    event_to_json,
    invoked_to_json,
    message_to_json,
    request_to_json,
    result_to_json,
    usage_to_json,
)
from session_runtime.wire.strict import (
    is_soon_read,
    parse_json,
    parse_request,
    strict_json,
    to_bytes,
    written_request,
)
from session_runtime.wire.text import printable, well_formed

__all__ = [
    "RollbackRequest",
    "approve_from_json",
    "callback_from_json",
    "confirm_from_json",
    "detach_from_json",
    "edits_from_json",
    "error_to_json",
    "event_to_json",
    "invoke_from_json",
    "invoked_to_json",
    "is_soon_read",
    "message_from_json",
    "message_to_json",
    "parse_json",
    "parse_request",
    "printable",
    "request_from_json",
    "request_to_json",
    "result_to_json",
    "revoke_from_json",
    "rollback_from_json",
    "running_to_json",
    "strict_json",
    "to_bytes",
    "usage_to_json",
    "well_formed",
    "written_request",
]
