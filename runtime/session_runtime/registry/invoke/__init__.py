"""The one way to call a tool, whatever its source; when to call it is decided in ``ask``."""
