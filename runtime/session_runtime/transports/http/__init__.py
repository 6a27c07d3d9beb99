"""The HTTP door: asks as JSON or server-sent events, tools, status, health."""
