"""The console in a real browser: each page's task by clicks, all from outside as text, nothing without a key.

Pictures of all pages are kept in ``.soak/console``.
"""

import os
import signal
from pathlib import Path

import pytest

from tests.system.consoles import EVIL, IN_CHROMIUM, PROCESS, Console, opened
from tests.system.test_daemon import daemon

pytestmark = [*IN_CHROMIUM, pytest.mark.requirement("OPS-3")]


@pytest.mark.requirement("SEC-3c")
async def test_nothing_is_shown_to_who_has_no_key_of_an_administrator(tmp_path: Path) -> None:
    async with opened(tmp_path) as console:
        page = console.page
        for name in ("overview", "configuration", "tools", "asks", "servers"):
            await page.go(f"{console.running.url}/console#/{name}")
            await page.sees("Key of an administrator")
            shown = await page.value("document.body.innerText")
            assert "orders" not in shown
            assert "shop" not in shown
            assert "ready" not in shown
        page.said.clear()  # that the browser was answered 401
        await console.is_sound("sign-in")
        await console.sign_in("bot")
        await page.sees("lacks the role 'admin'")
        await console.sign_in("nobody")
        await page.sees("the key is not known")
        page.said.clear()
        await console.sign_in("boss")
        await page.sees("Generations")
        assert await page.value("document.cookie") == ""
        await page.click("button", "Sign out")
        await page.sees("You are signed out.")


async def test_the_overview_tells_how_the_daemon_is_and_goes_on_telling(console: Console) -> None:
    await console.page.sees("0 ended since the start")
    await console.ask("How is the shop?")
    await console.ask("break it")
    await console.page.sees("2 ended since the start")
    await console.page.sees("model.gone × 1")
    await console.page.sees("in force")
    await console.is_sound("overview")


@pytest.mark.requirement("NET-3")
async def test_the_configuration_is_edited_under_the_eyes_of_the_validator(
    console: Console,
) -> None:
    page = console.page
    await console.visit("Configuration")
    await page.write("input[name=filter]", "max_steps")
    await page.click("button[aria-label='Edit ask.max_steps']")
    await page.write("textarea[name='ask.max_steps']", "0")
    await page.sees("rejected")
    assert await page.value(
        "document.querySelector('.trial + .row button, .panel > .row button').disabled"
    )
    await page.write("textarea[name='ask.max_steps']", "9")
    await page.until("document.querySelector('ins')?.textContent === '9'")
    await console.is_sound("configuration")
    await page.click("button", "Apply")
    await page.sees("The edit is applied")
    assert "max_steps = 9  # turns" in console.config.read_text("utf-8")
    await page.write("textarea[name=file]", f'[ask]\n"{EVIL.replace(chr(34), "")}" = 1\n')
    await page.sees("<img src=x")
    await page.click("button", "Roll back to this")
    await page.click("button.danger")
    await page.sees("Rolled back to entry")
    assert "max_steps = 7  # turns" in console.config.read_text("utf-8")


@pytest.mark.requirement("SEC-4c")
async def test_tools_are_found_as_the_model_finds_them_and_for_whom_the_rules_allow(
    console: Console,
) -> None:
    page = console.page
    await console.ask("evil", EVIL)
    await console.visit("Tools")
    await page.sees("orders.find")
    await page.sees("orders.broken")  # in quarantine
    await page.write("input[name=user]", "u")
    await page.click("button", "Look as this one")
    await page.write("input[name=query]", "find an order")
    await page.click("button", "Search")
    await page.sees("The answer, as the model reads it")
    await page.sees("order in name")
    await page.write("input[name=filter]", "orders")
    await page.click("td a", "orders.fail")
    await page.sees("allowed by access.default")
    await page.sees("Last error")
    await console.is_sound("tools")
    await page.write("input[name=user]", "guest")
    await page.click("button", "Look as this one")
    await page.sees("denied by access.rules.visitors")
    await page.sees("not for this identity")
    await page.write("input[name=filter]", "nothing")
    await page.sees("No tool fits the filter.")


@pytest.mark.requirement("SEC-4c")
async def test_a_tool_that_changed_is_looked_at_and_approved(console: Console) -> None:
    page = console.page
    await console.visit("Servers")
    os.kill(int(await page.until(PROCESS)), signal.SIGUSR1)
    await console.visit("Tools")
    await page.click("button", "What changed")
    await page.sees("onerror")
    await page.click("button", "Approve")
    await page.click("button", "Approve this form")
    await page.sees("shop.wipe approved.")
    await page.sees("No tool waits for an approval.")
    assert page.said == []


@pytest.mark.requirement("SEC-4c")
async def test_an_ask_is_tried_looked_at_and_another_one_ended(console: Console) -> None:
    page = console.page
    await console.ask("evil", EVIL)
    await console.visit("Asks")
    await page.write("textarea[name=text]", "How is the shop?")
    await page.click("button", "Ask")
    await page.sees("The shop says hello.")
    await page.write("textarea[name=text]", "wait for me")
    await page.click("button", "Ask")
    await page.click("button[data-key^='cancel']")
    await page.click("button.danger")
    await page.sees("is told to end.")
    await page.sees("cancelled.operator")
    await page.sees("No ask is running.")
    await page.sees(EVIL[:40])
    await console.is_sound("asks")
    await page.click("section[aria-labelledby=s-ended] td a")
    await page.sees("← all asks")
    await page.sees("turn 1")
    await console.is_sound("ask")
    await page.click("a", "← all asks")
    await page.write("textarea[name=text]", "wait for me")
    await page.click("button", "Ask")
    await page.click("section[aria-labelledby=s-running] td a")
    await page.sees("called orders.wait")
    await console.is_sound("ask-running")
    await page.click("button", "Cancel")
    age = await page.until("document.querySelectorAll('dd')[1].textContent")
    await page.until(f"document.querySelectorAll('dd')[1].textContent !== '{age}'")
    await page.click("button", "Cancel it")
    await page.sees("cancelled.operator: an operator ended this ask")


@pytest.mark.requirement("SEC-4c")
async def test_a_server_is_looked_at_and_connected_to_anew(console: Console) -> None:
    page = console.page
    await console.visit("Servers")
    before = await page.until(PROCESS)
    await page.click("a", "Log")
    await page.sees(EVIL)
    await console.is_sound("servers")
    await page.click("button", "Restart")
    await page.click("button", "Connect anew")
    await page.sees("restart done")
    await page.until(f"{PROCESS} && {PROCESS} !== '{before}'")


async def test_the_console_is_used_by_the_keyboard_alone(console: Console) -> None:
    page = console.page
    await page.go(f"{console.running.url}/console")
    await page.sees("Generations")
    await page.press("Tab", 9)
    assert await page.value("document.activeElement.textContent") == "Skip to the page"
    for _ in range(4):
        await page.press("Tab", 9)
    assert await page.value("document.activeElement.textContent") in ("Tools", "Asks")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert await page.value(outline) == "solid"
    await page.press("Enter", 13, "\r")
    await page.until("location.hash !== ''")
    await page.until("document.activeElement.id === 'main'")


@pytest.mark.parametrize(
    ("with_keys", "told"),
    [(True, "The session has ended. Sign in again."), (False, "0 ended since the start")],
)
async def test_a_lost_daemon_is_told_and_its_return_noticed(
    tmp_path: Path, with_keys: bool, told: str
) -> None:
    async with opened(tmp_path, with_keys=with_keys) as console:
        page, running = console.page, console.running
        if with_keys:
            await console.sign_in()
        else:
            await page.go(f"{running.url}/console")
        await page.sees("Generations")
        await console.ask("How is the shop?")
        await page.sees("1 ended since the start")
        running.process.terminate()
        await page.sees("connecting")
        await running.process.communicate()
        async with daemon(console.config, "--port", running.url.rpartition(":")[2]):
            await page.sees(told)
            await page.until(
                f"document.body.innerText.includes('live') !== {str(with_keys).lower()}"
            )


async def test_without_keys_the_console_serves_this_machine_without_signing_in(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, with_keys=False) as console:
        page = console.page
        await page.go(f"{console.running.url}/console")
        await page.sees("Generations")
        await console.visit("Servers")
        await page.click("button", "List tools again")
        await page.sees("refresh done")
        await page.go(f"{console.running.url}/console#/tools/orders.fail")
        await page.sees("denied by access.rules.visitors")
        assert page.said == []
        assert "Sign out" not in await page.value("document.body.innerText")
