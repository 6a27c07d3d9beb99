"""The console in a real browser: each page's task by clicks, all from outside as text, nothing without a key.

Pictures of all pages are kept in ``.soak/console``.
"""

import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from session_runtime.registry.keyring import hash_of
from session_runtime.testing.mcp_servers.script import Script
from tests.shape.tree import ROOT
from tests.support import write_handler
from tests.system.chromium import AXE, PROGRAM, Page, chromium
from tests.system.server_config import server
from tests.system.test_daemon import Daemon, daemon
from tests.transports.stub import bearer, key_of

PICTURES = ROOT / ".soak" / "console"
EVIL = "<img src=x onerror=\"document.title='evil'\"><script>document.title='evil'</script>"
HANGS = "import asyncio\n\nasync def execute(args, context):\n    await asyncio.Event().wait()\n"
FAILS = f"def execute(args, context):\n    raise ValueError({EVIL!r})\n"
PROCESS = "document.querySelector('article').innerText.match(/Process\\s+(\\d+)/)[1]"
CONFIG = """
[ask]
max_steps = 7  # turns

[handlers]
paths = ["tools"]

[skills]
prefetch_tools = []
tool_search_enabled = true

[models.main]
wire = "scripted"
script = "script.json"

[access.rules.visitors]
users = ["guest"]
deny = ["orders.*"]

[access.rules.bots]
users = ["bot"]
deny = ["shop.add"]

[mcp]
wait_s = 10.0
"""

pytestmark = [
    pytest.mark.soak,
    pytest.mark.requirement("OPS-3"),
    pytest.mark.skipif(PROGRAM is None, reason="make soak did not install Chromium"),
    pytest.mark.skipif(not AXE.exists(), reason="make soak did not install axe-core"),
]


def found_and_called(name: str) -> tuple[dict[str, object], ...]:
    search = {"name": "tool_search", "arguments": {"query": f"select:{name}"}}
    return {"calls": [search]}, {"calls": [{"name": name, "arguments": {"text": "hello"}}]}


SCRIPT = {
    "replies": [*found_and_called("shop.echo"), {"text": "The shop says hello."}],
    "scenes": [
        {"match": "wait", "replies": [*found_and_called("orders.wait"), {"text": "never"}]},
        {"match": "evil", "replies": [*found_and_called("orders.fail"), {"text": EVIL}]},
        {"match": "break", "replies": [{"error": {"code": "model.gone", "message": EVIL}}]},
    ],
}


def wipe(properties: dict[str, object]) -> dict[str, object]:
    """A destructive tool of the server."""
    schema = {"type": "object", "properties": properties}
    hints = {"destructiveHint": True}
    return {"name": "wipe", "description": "", "inputSchema": schema, "annotations": hints}


def site(folder: Path, *, with_keys: bool = True) -> Path:
    """A configuration with two keys or none, handlers, a server and evil texts in all of them."""
    write_handler(folder / "tools", "orders.find", description="Finds an order by its number.")
    write_handler(folder / "tools", "orders.fail", description=EVIL, code=FAILS)
    write_handler(folder / "tools", "orders.wait", description="Waits.", code=HANGS)
    broken = write_handler(folder / "tools", "orders.broken")
    (broken / "config.json").write_text(json.dumps({"type": EVIL}), "utf-8")
    (folder / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    wicked = {"name": EVIL, "description": EVIL, "inputSchema": {"type": "object"}}
    listed = "echo", "add", "many:30", wicked
    script = Script(
        stderr=f"{EVIL}\n", tools=(*listed, wipe({})), next_tools=(*listed, wipe({EVIL: {}}))
    )
    keys = [
        f'[http.keys.{name}]\nhash = "{hash_of(key_of(name))}"\nroles = [{roles}]\nact_for = ["*"]\n'
        for name, roles in (("boss", '"admin"'), ("bot", ""))
    ]
    path = folder / "config.toml"
    text = "".join([CONFIG, server("shop", script), *(keys if with_keys else ())])
    path.write_text(text, "utf-8")
    return path


@dataclass(frozen=True)
class Console:
    page: Page
    running: Daemon
    config: Path

    async def sign_in(self, name: str = "boss") -> None:
        await self.page.go(f"{self.running.url}/console")
        await self.page.write("input[name=key]", key_of(name))
        await self.page.press("Enter", 13, "\r")

    async def visit(self, name: str) -> None:
        await self.page.click("nav a", name)
        await self.page.until(f"document.querySelector('h1').textContent === {name!r}")

    async def ask(self, text: str, user: str = "u") -> None:
        """Ask from outside, so that there is something to see."""
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as client:
            asked = {"text": text, "identity": {"user": user}}
            response = await client.post(
                f"{self.running.url}/v1/ask", json=asked, headers=bearer("boss")
            )
            assert response.status_code == 200

    async def is_sound(self, name: str) -> None:
        """Look at the page on three screens, and whether everybody can use it and nothing broke out."""
        for kind, width, dark in (
            ("light", 1280, False),
            ("dark", 1280, True),
            ("phone", 390, False),
        ):
            await self.page.look(width, 900, dark=dark)
            await self.page.picture(PICTURES / f"{name}-{kind}.png")
            assert await self.page.faults() == [], (name, kind)
            too_wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert await self.page.value(too_wide) == 0, (name, kind)
        await self.page.look()
        assert "evil" not in await self.page.value("document.title")
        assert await self.page.value("document.querySelectorAll('img, #main script').length") == 0
        assert self.page.said == []


@asynccontextmanager
async def opened(folder: Path, *, with_keys: bool = True) -> AsyncIterator[Console]:
    config = site(folder, with_keys=with_keys)
    try:
        async with daemon(config) as running, chromium(folder / "browser") as page:
            await page.look()
            yield Console(page, running, config)
    finally:
        shutil.rmtree(folder / "browser", ignore_errors=True)


@asynccontextmanager
async def signed_in(folder: Path) -> AsyncIterator[Console]:
    async with opened(folder) as console:
        await console.sign_in()
        await console.page.sees("Generations")
        console.page.said.clear()  # that the browser was answered 401
        yield console


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    async with signed_in(tmp_path) as console:
        yield console


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
