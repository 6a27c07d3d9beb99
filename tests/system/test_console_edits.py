"""Edits at the console that meet others: somebody else's, the way to another page, a daemon that is away."""

from typing import Any

import httpx2
import pytest

from tests.system.consoles import IN_CHROMIUM, Console
from tests.transports.stub import bearer

LISTED = "skills.tool_search_always_loaded"
STEPS = "ask.max_steps"
PROMPT = "ask.system_prompt"
LONG = "You are helpful. " * 25
APPLY = "[...document.querySelectorAll('button')].find((each) => each.textContent === 'Apply')"
CALLS = "ask.max_tool_calls"
HOLD = """(() => { const real = window.fetch; window.fetch = (path, asked) => asked?.method !== 'PATCH'
 ? real(path, asked) : new Promise((go) => { window.letGo = go; }).then(() => real(path, asked)); })()"""
ROLLBACK = "document.querySelector('section[aria-labelledby=s-history] button.danger')"
EDITING = "document.querySelector('section[aria-labelledby=s-edit] textarea')"

pytestmark = [*IN_CHROMIUM, pytest.mark.requirement("OPS-3")]


async def edited(console: Console, values: dict[str, Any]) -> None:
    """Somebody else edits."""
    async with httpx2.AsyncClient(trust_env=False, base_url=console.running.url) as client:
        tag = (await client.get("/v1/config", headers=bearer("boss"))).headers["etag"]
        headers = {**bearer("boss"), "if-match": tag}
        response = await client.patch("/v1/config", json=values, headers=headers)
        assert response.json()["verdict"] == "applied"


async def begin(console: Console, key: str, text: str) -> None:
    """Edit a key up to the point where it could be applied."""
    await console.visit("Configuration")
    await console.page.write("input[name=filter]", key)
    await console.page.click(f"button[aria-label='Edit {key}']")
    await console.page.write(f"textarea[name='{key}']", text)
    await console.page.until(f"!{APPLY}.disabled")


@pytest.mark.requirement("NET-3")
async def test_an_edit_of_somebody_else_is_shown_and_never_undone_unseen(console: Console) -> None:
    page = console.page
    await begin(console, LISTED, '["send_message", "end", "orders.find"]')
    await edited(console, {LISTED: ["send_message", "end", "orders.wait"]})
    await page.sees("Changed by somebody else while you edit: now ")
    assert await page.value(f"{APPLY}.disabled")
    assert "orders.wait" in await page.value("document.querySelector('.draft .problem').innerText")
    assert "orders.find" not in console.config.read_text("utf-8")
    await page.click("button", "Seen: go on with mine")
    await page.click("button", "Apply")
    await page.sees("The edit is applied")
    assert "orders.find" in console.config.read_text("utf-8")


async def test_an_edit_of_another_key_by_somebody_else_is_in_nobodys_way(console: Console) -> None:
    await begin(console, STEPS, "9")
    await edited(console, {"ask.max_tool_calls": 33})
    await console.page.sees("max_tool_calls")  # in the history
    await console.page.click("button", "Apply")
    await console.page.sees("The edit is applied")
    assert "max_tool_calls = 33" in console.config.read_text("utf-8")


async def test_a_text_is_edited_as_text_and_what_changes_in_it_is_seen(console: Console) -> None:
    page = console.page
    await edited(console, {PROMPT: f"{LONG}Never refund."})
    await begin(console, PROMPT, f"{LONG}Always refund.")
    assert await page.value("document.querySelector('.trial del').textContent") == "Never"
    assert await page.value("document.querySelector('.trial ins').textContent") == "Always"
    assert await page.value("document.querySelector('.trial .long').textContent") == (
        f"{LONG}Never refund."
    )
    await page.click("button", "Apply")
    await page.until("document.querySelector('.line ins')?.textContent === 'Always'")
    await console.is_sound("configuration-long")


async def test_a_key_is_taken_out_of_the_file(console: Console) -> None:
    page = console.page
    await begin(console, STEPS, "9")
    await page.click("input[name='no ask.max_steps']")
    await page.until("document.querySelector('.trial ins')?.textContent === '32'")
    await page.click("button", "Apply")
    await page.sees("The edit is applied")
    assert "max_steps" not in console.config.read_text("utf-8")


async def test_the_focus_stays_where_an_edit_was_when_it_is_applied(console: Console) -> None:
    await begin(console, STEPS, "9")
    await console.page.click("button", "Apply")
    await console.page.sees("The edit is applied")
    within = "document.querySelector('section[aria-labelledby=s-edit]').contains"
    assert await console.page.value(f"{within}(document.activeElement)")


async def test_what_is_being_edited_outlives_its_page_and_its_session(console: Console) -> None:
    page = console.page
    await begin(console, STEPS, "9")
    await console.visit("Tools")
    await console.visit("Configuration")
    assert await page.value(f"{EDITING}.value") == "9"
    await page.call("Network.clearBrowserCookies")
    await page.click("nav a", "Tools")
    await page.sees("The session has ended.")
    await console.sign_in_here()
    await console.visit("Configuration")
    await page.until(f"{EDITING}.value === '9'")
    await page.click("button", "Apply")
    await page.sees("The edit is applied")


async def test_what_is_edited_is_forgotten_by_who_signs_out(console: Console) -> None:
    page = console.page
    await begin(console, STEPS, "9")
    await page.click("button", "Sign out")
    await page.sees("You are signed out.")
    await console.sign_in_here()
    await page.sees("Nothing is being edited.")


async def test_an_edit_that_is_begun_while_another_is_applied_stays(console: Console) -> None:
    page = console.page
    await begin(console, STEPS, "11")
    await page.value(HOLD)
    await page.click("button", "Apply")
    await page.until("!!window.letGo")
    await page.write("input[name=filter]", CALLS)
    await page.click(f"button[aria-label='Edit {CALLS}']")
    assert await page.value(f"document.querySelector(\"textarea[name='{STEPS}']\").readOnly")
    assert await page.value(f"document.querySelector(\"[aria-label='Discard {STEPS}']\").disabled")
    await page.write(f"textarea[name='{CALLS}']", "44")
    await page.value("window.letGo()")
    await page.sees("The edit is applied")
    assert await page.value("document.activeElement.value") == "44"
    assert "Changed by somebody else" not in await page.value("document.body.innerText")
    await page.until(f"!{APPLY}.disabled")
    await page.click("button", "Apply")
    await page.until("!!window.letGo")
    await page.value("window.letGo()")
    await page.sees("Nothing is being edited.")
    assert "max_tool_calls = 44" in console.config.read_text("utf-8")


async def test_who_comes_back_while_an_edit_is_applied_goes_on_with_what_came_of_it(
    console: Console,
) -> None:
    page = console.page
    await begin(console, STEPS, "11")
    await page.value(HOLD)
    await page.click("button", "Apply")
    await page.until("!!window.letGo")
    await console.visit("Tools")
    await console.visit("Configuration")
    assert await page.until(f"{EDITING}.readOnly")
    await page.value("window.letGo()")
    await page.sees("The edit is applied")
    assert "Changed by somebody else" not in await page.value("document.body.innerText")
    await begin(console, STEPS, "12")


async def test_who_is_elsewhere_is_told_what_came_of_an_edit(console: Console) -> None:
    page = console.page
    await begin(console, STEPS, "11")
    await page.value(HOLD)
    await page.click("button", "Apply")
    await page.until("!!window.letGo")
    await console.visit("Tools")
    await page.value("window.letGo()")
    await page.sees("The edit is applied.")
    await console.visit("Configuration")
    await page.sees("Nothing is being edited.")


@pytest.mark.requirement("NET-3")
async def test_a_roll_back_undoes_no_edit_that_nobody_saw(console: Console) -> None:
    page = console.page
    await edited(console, {STEPS: 9})
    await console.visit("Configuration")
    await page.click("button", "Roll back to this")
    await page.until(f"!!{ROLLBACK}")
    await edited(console, {CALLS: 33})
    await page.sees("The file has been changed: look at the history before you roll back.")
    assert await page.value(ROLLBACK) is None
    assert "max_tool_calls = 33" in console.config.read_text("utf-8")


async def test_the_skip_link_leads_into_the_page_and_away_from_nothing(console: Console) -> None:
    page = console.page
    await begin(console, STEPS, "9")
    await page.value("document.querySelector('.skip').focus()")
    await page.press("Enter", 13, "\r")
    await page.until("document.activeElement.id === 'main'")
    assert await page.value("location.hash") == "#/configuration"
    assert await page.value(f"{EDITING}.value") == "9"


async def test_an_edit_that_did_not_reach_the_daemon_can_be_applied_again(console: Console) -> None:
    page = console.page
    await begin(console, STEPS, "9")
    await page.offline(is_off=True)
    await page.click("button", "Apply")
    await page.sees("The daemon does not answer.")
    await page.offline(is_off=False)
    await page.click("button", "Apply")
    await page.sees("The edit is applied")


async def test_a_rejected_file_is_told_with_its_line_and_not_called_in_force(
    console: Console,
) -> None:
    page = console.page
    good = console.config.read_text("utf-8")
    console.config.write_text(f"{good}\n[ask\n", "utf-8")
    await page.sees("what was in force before still is")
    assert "as the sources say" not in await page.value("document.body.innerText")
    await page.sees(f"(line {len(good.splitlines()) + 2})")


async def test_the_way_out_of_a_broken_file_is_told_once_and_edits_wait_for_it(
    console: Console,
) -> None:
    page = console.page
    await begin(console, STEPS, "9")
    good = console.config.read_text("utf-8")
    console.config.write_text(f"{good}\n[ask2]\n", "utf-8")
    await page.sees("or write what worked into it there: session-runtime config rollback 1.")
    await page.sees("It is checked when the file can be used again.")
    assert await page.value(f"{APPLY}.disabled")
    assert await page.value("document.querySelectorAll('.problem').length") == 1
    console.config.write_text(good, "utf-8")
    await page.until(f"!{APPLY}.disabled")
    assert await page.value("document.querySelectorAll('.problem').length") == 0
    await page.click("button", "Apply")
    await page.sees("The edit is applied")


async def test_on_a_phone_the_keys_and_what_is_done_with_them_fit_the_screen(
    console: Console,
) -> None:
    page = console.page
    await page.look(390, 844)
    await console.visit("Configuration")
    right = "document.querySelector('button[aria-label^=Edit]').getBoundingClientRect().right"
    assert await page.until(right) < 390
    assert await page.value("document.documentElement.scrollHeight") < 9_000
