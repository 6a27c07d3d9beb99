"""Tells the current date and time in a time zone."""

import asyncio
import difflib
import zoneinfo
from datetime import UTC, datetime, tzinfo
from typing import Any

from session_runtime.handler import HandlerContext, ToolError

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


async def execute(args: dict[str, Any], context: HandlerContext) -> dict[str, str]:
    """Give the time in ISO form with its weekday, zone and offset from UTC."""
    del context
    name = args.get("timezone", "UTC")
    now = datetime.now(UTC).astimezone(await _zone(name)).replace(microsecond=0)
    return {
        "time": now.isoformat(),
        "weekday": _WEEKDAYS[now.weekday()],
        "timezone": name,
        "utc_offset": now.isoformat()[-6:],
    }


async def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = await asyncio.to_thread(zoneinfo.available_timezones)
        raise ToolError(_unknown(name, sorted(known))) from None


def _unknown(name: str, known: list[str]) -> str:
    """Suggest zones whose name, or whose city alone, looks like ``name``."""
    spellings = {zone.rpartition("/")[2].casefold(): zone for zone in known}
    spellings |= {zone.casefold(): zone for zone in known}
    wanted = name.casefold().replace(" ", "_")
    near = difflib.get_close_matches(wanted, spellings, n=3, cutoff=0.6)
    hint = ", ".join(dict.fromkeys(spellings[each] for each in near)) or "Asia/Shanghai"
    return f"There is no time zone {name!r}. Use an IANA name, for example: {hint}."
