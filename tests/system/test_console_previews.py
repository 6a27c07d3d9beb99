"""What the console tells before something is done: what an edit would change, what a principal would see."""

import pytest

from tests.system.consoles import EVIL, IN_CHROMIUM, Console

pytestmark = [*IN_CHROMIUM, pytest.mark.requirement("OPS-3")]


async def test_tools_are_looked_at_as_a_principal_sees_them(console: Console) -> None:
    page = console.page
    await console.visit("Tools")
    await page.until("document.querySelectorAll('select[name=principal] option').length === 3")
    await page.write("input[name=user]", "u")
    await page.click("button", "Look as this one")
    await page.write("input[name=filter]", "shop.add")
    await page.click("td a", "shop.add")
    await page.sees("allowed by access.default")
    await page.choose("select[name=principal]", "bot")
    await page.click("button", "Look as this one")
    await page.sees("denied by access.rules.bots, for the caller 'bot'")
    await page.sees("not for this identity")
    await page.write("input[name=query]", "add numbers")
    await page.click("button", "Search")
    await page.sees("The answer, as the model reads it")
    assert "shop.add" not in await page.value("document.querySelector('pre').textContent")
    await console.is_sound("tools-principal")


async def test_an_edit_tells_what_it_would_change_of_recorded_asks_before_it_is_applied(
    console: Console,
) -> None:
    page = console.page
    await console.ask("How is the shop?")
    await console.ask("evil", EVIL)
    await console.visit("Configuration")
    await page.write("input[name=filter]", "max_steps")
    await page.click("button[aria-label='Edit ask.max_steps']")
    await page.write("textarea[name='ask.max_steps']", "2")
    await page.until("document.querySelector('ins')?.textContent === '2'")
    await page.click("button", "Replay recorded asks with it")
    await page.sees("2 of 2")
    await page.sees("ends as answered -> limit.steps")
    await page.click("summary")
    await page.sees("The ask as it was")
    await console.is_sound("configuration-replay")
    await page.write("textarea[name='ask.max_steps']", "8")
    await page.until("!document.body.innerText.includes('recorded asks would change')")
    await page.click("button", "Replay recorded asks with it")
    await page.sees("0 of 2")
    await page.write("input[name=filter]", "system_prompt")
    await page.click("button[aria-label='Edit ask.system_prompt']")
    await page.write("textarea[name='ask.system_prompt']", "Refuse everything.")
    await page.click("button", "Replay recorded asks with it")
    await page.sees("2: what the model does with another system prompt")
    await page.write("textarea[name=file]", "[skills]\ntool_search_enabled = false\n")
    await page.click("button", "Replay recorded asks with this file")
    await page.sees("tool_search")
    await page.sees("2 of 2")
    assert "max_steps = 7  # turns" in console.config.read_text("utf-8")
