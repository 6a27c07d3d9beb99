"""The console when something is lost or lies: the daemon, the session, an answer, characters that hide."""

import json
from pathlib import Path

import pytest

from tests.system.consoles import IN_CHROMIUM, Console, opened
from tests.system.test_daemon import daemon
from tests.transports.stub import bearer

TURNED = "\u202etset\x1b[31m"
GENERATION = "document.querySelector('section[aria-labelledby=s-generations] time').textContent"
FAIL = "window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError('lost')); 0"
STATISTICS = "document.querySelector('section[aria-labelledby=s-catalogue] tbody tr').cells[3]"

pytestmark = [*IN_CHROMIUM, pytest.mark.requirement("OPS-3")]


@pytest.mark.requirement("SEC-3c")
async def test_who_could_not_be_signed_out_is_told_so(console: Console) -> None:
    page = console.page
    await page.offline(is_off=True)
    await page.click("button", "Sign out")
    await page.sees("The session is still open")
    assert "You are signed out" not in await page.value("document.body.innerText")
    await page.offline(is_off=False)
    await page.click("button", "Sign out once more")
    await page.sees("You are signed out.")


async def test_a_dead_daemon_is_not_shown_as_one_that_is_well(console: Console) -> None:
    await console.page.sees("ended since the start")
    console.running.process.kill()
    await console.page.sees("The daemon has not answered since")
    card = "document.querySelector('.card')"
    assert await console.page.value(f"getComputedStyle({card}).filter") == "grayscale(1)"


@pytest.mark.parametrize("name", ["Tools", "Configuration"])
async def test_a_list_that_could_not_be_read_is_kept_and_read_again_when_the_daemon_is_back(
    tmp_path: Path, name: str
) -> None:
    async with opened(tmp_path, with_keys=False) as console:
        page = console.page
        await page.go(f"{console.running.url}/console")
        await console.visit(name)
        await page.until("document.querySelectorAll('tbody tr').length > 3")
        await page.value(FAIL)
        await console.ask("How is the shop?")  # statistics are read again
        console.config.write_text(
            console.config.read_text("utf-8").replace("max_steps = 7", "max_steps = 8"), "utf-8"
        )  # so are the keys
        await page.sees("That did not work. The daemon does not answer.")
        assert await page.value("document.querySelectorAll('tbody tr').length") > 3
        console.running.process.terminate()
        await page.sees("connecting")
        await console.running.process.communicate()
        await page.value("window.fetch = window.real")
        async with daemon(console.config, "--port", console.running.url.rpartition(":")[2]):
            await page.until("!document.querySelector('.problem')")
            await page.until("document.querySelectorAll('tbody tr').length > 3")


async def test_ages_go_on_while_nothing_else_happens(console: Console) -> None:
    before = await console.page.until(GENERATION)
    await console.page.until(f"{GENERATION} !== '{before}'")


async def test_the_statistics_of_a_tool_follow_its_calls(console: Console) -> None:
    page = console.page
    await console.visit("Tools")
    await page.write("input[name=filter]", "shop.echo")
    await page.until(f"{STATISTICS}.innerText === '0'")
    await console.ask("How is the shop?")
    await page.until(f"{STATISTICS}.innerText === '1'")
    assert await page.value("document.activeElement.name") == "filter"


@pytest.mark.requirement("SEC-3c")
async def test_a_tab_goes_on_when_its_owner_signs_in_once_more_in_another(
    console: Console,
) -> None:
    page = console.page
    await console.visit("Servers")
    asked = json.dumps({"method": "POST", "headers": bearer("boss")})
    assert await page.value(f"fetch('/console/session', {asked}).then((it) => it.status)") == 201
    await page.click("button", "List tools again")
    await page.sees("refresh done")


async def test_what_was_seen_of_an_ask_stays_when_the_connection_breaks(console: Console) -> None:
    page = console.page
    await console.visit("Asks")
    await page.write("textarea[name=text]", "wait for me")
    await page.click("button", "Ask")
    await page.sees("called orders.wait")
    console.running.process.kill()
    await page.sees("The ask may go on: ask_")
    assert "called orders.wait" in await page.value("document.body.innerText")


async def test_that_something_failed_stays_on_the_screen_until_it_is_closed(
    console: Console,
) -> None:
    page = console.page
    await console.visit("Servers")
    await page.sees("Process")
    await page.offline(is_off=True)
    await page.click("button", "List tools again")
    told = "document.querySelector('#told.bad').innerText"
    assert "shop: The daemon does not answer." in await page.until(told)
    await page.click("#told button", "Close")
    assert await page.value("document.getElementById('told').innerText") == ""


@pytest.mark.requirement("SEC-4c")
async def test_characters_that_hide_or_turn_others_are_shown_as_what_they_are(
    console: Console,
) -> None:
    page = console.page
    await console.ask("How is the shop?", TURNED)
    await console.visit("Asks")
    await page.sees("\\u202etset\\u001b[31m")
    await page.click("section[aria-labelledby=s-ended] td a")
    await page.sees("\\u202etset\\u001b[31m")
    assert not {"\u202e", "\x1b"} & set(await page.value("document.body.textContent"))


async def test_a_name_without_end_does_not_stretch_the_list_on_a_phone(console: Console) -> None:
    page = console.page
    await console.ask("How is the shop?", "u" * 200)
    await page.look(390, 844)
    await console.visit("Asks")
    row = "document.querySelector('section[aria-labelledby=s-ended] tbody tr')"
    assert await page.until(f"{row}.getBoundingClientRect().height") < 260


async def test_a_key_with_characters_that_no_key_has_is_named_as_the_fault(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as console:
        await console.page.go(f"{console.running.url}/console")
        await console.page.write("input[name=key]", "sr_…–")
        await console.page.press("Enter", 13, "\r")
        await console.page.sees("it has characters that no key has")
        await console.sign_in("bot")
        await console.page.sees("lacks the role 'admin'")
        assert "/v1/ask" not in await console.page.value("document.body.innerText")
