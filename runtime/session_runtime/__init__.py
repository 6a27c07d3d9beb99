"""session-runtime: answers asks with tools. ``Runtime`` and ``AskRequest`` are all a backend needs."""

import importlib
from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "AskEvent": "session_runtime.types",
    "AskRequest": "session_runtime.types",
    "AskResult": "session_runtime.types",
    "ConfigError": "session_runtime.errors",
    "DirectCall": "session_runtime.direct",
    "Identity": "session_runtime.types",
    "Message": "session_runtime.types",
    "message_from_json": "session_runtime.wire",
    "message_to_json": "session_runtime.wire",
    "Runtime": "session_runtime.app.runtime",
}


def __getattr__(name: str) -> Any:
    """Import an export when it is used: a handler or the search alone must not pay for the daemon."""
    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'session_runtime' has no attribute {name!r}")
