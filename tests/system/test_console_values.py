"""How the console writes times, what differs, and what waits, by its own modules in Chromium."""

import json
from typing import Any

import pytest

from tests.system.consoles import IN_CHROMIUM, Console

FORMS = """import('/console/files/approvals.js').then(({ Approvals }) => {
  const place = document.createElement('div');
  const approvals = new Approvals(place);
  const form = (name, digest) => ({ server: 'shop', name, digest });
  approvals.draw([form('wipe', 'a'), form('wipe', 'b'), form('sell', 'c')]);
  const looks = [...place.querySelectorAll('[data-key^=look]')].map((each) => each.dataset.key);
  const [first, , other] = place.children;
  approvals.draw([form('wipe', 'a'), form('sell', 'c')]);
  return [looks, place.contains(first), place.contains(other)];
})"""
"""Two forms of a tool and one of another wait, one is approved: how panels are told apart, and which stay."""

pytestmark = [*IN_CHROMIUM, pytest.mark.requirement("OPS-3")]


async def middles(console: Console, before: str, now: str) -> Any:
    """What differs between two values, as it is shown."""
    return await console.page.value(
        "import('/console/files/format.js').then(({ excerpts }) =>"
        f" excerpts({json.dumps(before)}, {json.dumps(now)}).map((part) => part.middle))"
    )


async def test_the_day_beside_a_time_is_that_of_the_browser(console: Console) -> None:
    await console.page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Shanghai")
    told = "it.clock(Date.UTC(2025, 10, 19, 19, 0, 0) / 1000)"
    told = f"import('/console/files/format.js').then((it) => {told})"
    assert await console.page.value(told) == "2025-11-20 03:00:00"


@pytest.mark.parametrize(
    ("before", "now", "seen"),
    [
        ("Be kind.", "Be kind.\n", ["∅", "↵\n"]),
        ("Be kind.", "Be  kind.", ["∅", "·"]),
        ("a\tb", "a b", ["⇥\t", "·"]),
        ("a b", "a\u00a0b", ["·", "\\u00a0"]),
        (f"{'Be kind. ' * 20}End.", f"{'Be kind. ' * 20}\nEnd.", ["∅", "↵\n"]),
        (f"{'Be kind. ' * 20}End.", f"{'Be kind. ' * 20}The End.", ["∅", "The "]),
        ("one", "two", ["one", "two"]),
    ],
)
async def test_what_differs_in_white_space_only_is_seen(
    console: Console, before: str, now: str, seen: list[str]
) -> None:
    assert await middles(console, before, now) == seen


async def test_the_lines_of_a_text_are_shown_as_lines(console: Console) -> None:
    page = console.page
    await console.visit("Configuration")
    await page.write("input[name=filter]", "ask.system_prompt")
    await page.click("button[aria-label='Edit ask.system_prompt']")
    await page.write("textarea[name='ask.system_prompt']", "Be kind.\nBe short.")
    await page.until("document.querySelector('.trial ins')?.textContent.includes('Be short')")
    assert "Be kind.\nBe short." in await page.value("document.querySelector('.trial').innerText")


async def test_what_was_before_a_form_is_looked_at_anew_when_another_form_of_the_tool_is_approved(
    console: Console,
) -> None:
    looks = ["look wipe a", "look wipe b", "look sell c"]
    assert await console.page.value(FORMS) == [looks, False, True]
