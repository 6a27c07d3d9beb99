"""Hands at the console: double clicks, held keys and long presses while everything around them moves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.system.consoles import IN_CHROMIUM, PROCESS, Console
from tests.transports.stub import bearer

RUNNING = "section[aria-labelledby=s-running]"
ENDED = "section[aria-labelledby=s-ended]"
AGE = f"document.querySelector('{RUNNING} td time').textContent"
ROWS = f"document.querySelectorAll('{RUNNING} tbody tr').length"
ACTIVE = "document.activeElement.textContent"
BURST = """async () => {
  const { showAsks } = await import('/console/files/asks.js');
  const body = document.createElement('div');
  let feed;
  const on = (name, listener) => { if (name === 'recent') feed = listener; };
  const rows = () => body.querySelectorAll('section[aria-labelledby=s-ended] tbody tr').length;
  const wait = () => new Promise((go) => setTimeout(go, 20));
  const until = async (count) => { for (let left = 500; left && rows() !== count; left -= 1) await wait(); };
  const { asks } = await fetch('/v1/recent?limit=50').then((it) => it.json());
  showAsks(body, { known: {}, on }, null);
  feed({ asks });
  for (const count of [50, 60]) {
    [...body.querySelectorAll('button')].find((it) => it.textContent === 'Show more').click();
    await until(count);
  }
  feed({ asks: asks.map((ask) => ({ ...ask, ask_id: `${ask.ask_id}x` })) });
  await until(75);
  return rows();
}"""
"""Fifty asks end at once, after more were looked at: how many are shown of those and of the ones before."""

pytestmark = [*IN_CHROMIUM, pytest.mark.requirement("OPS-3")]


@asynccontextmanager
async def waiting(console: Console) -> AsyncIterator[None]:
    """An ask that somebody waits for, and that does not end by itself."""
    asking = asyncio.create_task(console.ask("wait for me"), name="ask")
    try:
        yield
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


async def news(console: Console) -> None:
    """Wait until all that moves has moved."""
    before = await console.page.until(AGE)
    await console.page.until(f"{AGE} !== '{before}'")


async def test_a_double_click_and_a_held_key_confirm_nothing(console: Console) -> None:
    page = console.page
    await console.visit("Servers")
    before = await page.until(PROCESS)
    await page.click("button", "Restart", times=2)
    assert await page.value("document.getElementById('told').textContent") == ""
    await page.until(f"{ACTIVE} === 'No'")
    await page.press("Enter", 13, "\r")
    assert await page.value(ACTIVE) == "Restart"
    await page.press("Enter", 13, "\r", repeats=3)
    assert await page.value("document.getElementById('told').textContent") == ""
    assert await page.value(ACTIVE) == "No"
    assert await page.value(PROCESS) == before


async def test_a_double_click_asks_once(console: Console) -> None:
    page = console.page
    await console.visit("Asks")
    await page.write("textarea[name=text]", "wait for me")
    await page.click("button", "Ask", times=2)
    await page.sees("called orders.wait")
    async with httpx2.AsyncClient(trust_env=False, base_url=console.running.url) as client:
        status = (await client.get("/v1/status", headers=bearer("boss"))).json()
    assert status["asks"] == 1


async def test_a_press_counts_however_long_it_takes(console: Console) -> None:
    page = console.page
    async with waiting(console):
        await console.visit("Asks")
        place = await page.place(f"{RUNNING} button", "Cancel")
        await page.mouse("mousePressed", place)
        await news(console)
        await page.mouse("mouseReleased", place)
        await page.until("document.querySelector('button.danger')")
        await news(console)
        assert await page.value(ACTIVE) == "No"


async def test_a_list_that_changes_leaves_focus_selection_and_scroll_position(
    console: Console,
) -> None:
    page = console.page
    async with waiting(console):
        await console.visit("Asks")
        await page.until(f"{ROWS} === 1")
        box = f"document.querySelector('{RUNNING} .scroll')"
        await page.value(f"{box}.parentNode.parentNode.style.width = '200px'")
        await page.value(
            f"{box}.focus(); {box}.scrollLeft = 50;"
            f" getSelection().selectAllChildren({box}.querySelector('td a'))"
        )
        chosen = await page.value("getSelection().toString()")
        async with waiting(console):
            await page.until(f"{ROWS} === 2")
            await news(console)
            assert await page.value(f"{box}.scrollLeft") == 50
            assert await page.value(f"document.activeElement === {box}")
            assert await page.value("getSelection().toString()") == chosen
    await page.sees("No ask is running.")
    assert await page.value("document.activeElement !== document.body")


async def test_the_link_of_an_ask_keeps_the_focus_when_others_end(console: Console) -> None:
    page = console.page
    await console.ask("How is the shop?")
    await console.visit("Asks")
    await page.until(f"document.querySelector('{ENDED} td a')")
    await page.value(f"document.querySelector('{ENDED} td a').focus()")
    chosen = await page.value(ACTIVE)
    await console.ask("How is the shop?")
    await page.until(f"document.querySelectorAll('{ENDED} tbody tr').length === 2")
    assert await page.value(ACTIVE) == chosen


async def test_all_asks_that_are_remembered_can_be_reached(console: Console) -> None:
    page = console.page
    for _ in range(60):
        await console.ask("How is the shop?")
    await console.visit("Asks")
    for shown in (25, 50):
        await page.until(f"document.querySelectorAll('{ENDED} tbody tr').length === {shown}")
        await page.click(f"{ENDED} button", "Show more")
    await page.until(f"document.querySelectorAll('{ENDED} tbody tr').length === 60")
    assert await page.value(f"({BURST})()") == 75
    await page.click(f"{ENDED} td a")
    await page.sees("1 attempt")
    assert "1 attempts" not in await page.value("document.body.innerText")
