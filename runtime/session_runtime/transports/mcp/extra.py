"""Whether the MCP SDK is installed, and what to do if it is not; it is imported elsewhere, late."""

import importlib.util
from typing import Final

from session_runtime.errors import ConfigError, Problem

MISSING: Final = (
    "the MCP SDK is not installed: pip install '.[mcp]' in the source tree of session-runtime"
)


def require_extra() -> None:
    """Raise ConfigError if the SDK is missing."""
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError([Problem(MISSING)])
