"""How the daemon logs: one line per event, as text for people or JSON for machines."""

import json
import logging
import sys
from collections.abc import Collection
from datetime import UTC, datetime

from session_runtime.config.runtime import LogSettings
from session_runtime.wire import printable


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
            f"{time} {record.levelname.lower():7} {record.name}: {_one_line(record.getMessage())}"
        )
        if record.exc_info:
            line += "\n" + printable(self.formatException(record.exc_info))
        return line


def _one_line(message: str) -> str:
    return printable(message).replace("\n", "\\n").replace("\t", "\\t")


def set_up_logging(settings: LogSettings, errors_only: Collection[str] = ()) -> None:
    """Send the log to standard error; called once by the daemon, never by an embedded runtime.

    ``errors_only`` are names of loggers of which nothing below an error is written.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(
        lambda record: record.levelno >= logging.ERROR or record.name not in errors_only
    )
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for library in ("httpx2", "mcp", "watchfiles"):
        logging.getLogger(library).setLevel(logging.WARNING)
    # What reads a server writes all that it cannot read, in full; its session calls itself "client".
    for reader in (logging.getLogger("mcp").getChild("client"), logging.getLogger("client")):
        reader.setLevel(logging.CRITICAL)
