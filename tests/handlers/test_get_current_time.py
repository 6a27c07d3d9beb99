"""The clock tells the time where it is asked for, and helps with names of zones."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest


async def told(run: Any, **arguments: str) -> dict[str, str]:
    result = await run("get_current_time", **arguments)
    assert result.status == "ok"
    answer: dict[str, str] = json.loads(result.content)
    return answer


async def test_without_a_zone_it_tells_utc(run: Any) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    answer = await told(run)
    time = datetime.fromisoformat(answer["time"])
    assert before <= time <= datetime.now(UTC)
    assert answer == {
        "time": time.isoformat(),
        "weekday": time.strftime("%A"),
        "timezone": "UTC",
        "utc_offset": "+00:00",
    }


@pytest.mark.parametrize(
    ("zone", "offset"),
    [("Asia/Shanghai", "+08:00"), ("Asia/Kolkata", "+05:30"), ("America/Phoenix", "-07:00")],
)
async def test_a_zone_shifts_the_clock_but_not_the_moment(run: Any, zone: str, offset: str) -> None:
    answer = await told(run, timezone=zone)
    time = datetime.fromisoformat(answer["time"])
    assert abs(time - datetime.now(UTC)) < timedelta(minutes=1)
    assert (answer["timezone"], answer["utc_offset"]) == (zone, offset)
    assert answer["weekday"] == time.strftime("%A")


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Shanghai", "Asia/Shanghai"),
        ("asia/shanghai", "Asia/Shanghai"),
        ("Europe/Berln", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("America", "America/"),
        ("../../etc/passwd", "Asia/Shanghai"),
        ("", "Asia/Shanghai"),
    ],
)
async def test_an_unknown_zone_is_answered_with_the_nearest_names(
    run: Any, zone: str, hint: str
) -> None:
    result = await run("get_current_time", timezone=zone)
    assert (result.status, result.error_code) == ("error", "tool.failed")
    assert result.content.startswith(f"There is no time zone {zone!r}. Use an IANA name")
    assert hint in result.content
