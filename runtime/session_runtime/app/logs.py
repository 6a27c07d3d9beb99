"""How the daemon logs: one line per event, as text for people or JSON for machines."""

import json
import logging
import sys
from datetime import UTC, datetime

from session_runtime.config.runtime import LogSettings


class JsonLines(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, message, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Render one record; a message can never break out of its line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """One readable line per event; control characters of the message are escaped (SEC-4)."""

    def format(self, record: logging.LogRecord) -> str:
        """Render one record."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = (
            f"{time} {record.levelname.lower():7} {record.name}: {printable(record.getMessage())}"
        )
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def printable(text: str) -> str:
    """The text with every control character (line ends, terminal escapes) shown as an escape."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def set_up_logging(settings: LogSettings) -> None:
    """Send the log to standard error; called once by the daemon, never by an embedded runtime."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    logging.getLogger("httpx2").setLevel(logging.WARNING)
