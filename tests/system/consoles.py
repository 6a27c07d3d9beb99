"""The console of a daemon of its own in a real browser; its handlers, server and model tell evil texts."""

import json
import shutil
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

IN_CHROMIUM = [
    pytest.mark.soak,
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
        await self.sign_in_here(name)

    async def sign_in_here(self, name: str = "boss") -> None:
        """Sign in again, without loading the page anew."""
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
