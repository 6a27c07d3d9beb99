"""A real Chromium without a window, spoken to through the pipe of its DevTools protocol.

Clicks and keys are those of a person: sent to where an element is seen, not called on it.
"""

import asyncio
import base64
import itertools
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.shape.tree import ROOT

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
AXE = ROOT / ".soak" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
LONG_S = 20.0
LARGEST = 2**27
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--no-default-browser-check", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--mute-audio"),
    *("--proxy-server=direct://", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
    "--remote-debugging-pipe",
)
SEEN = """(selector, text) => [...document.querySelectorAll(selector)].filter((each) => {
  const label = each.getAttribute("aria-label") ?? each.textContent;
  return each.checkVisibility() && (text === null || label.trim() === text);
})[0]"""
BUILT_IN = "(() => { const seen = " + SEEN + "; return "


class Page:
    """One tab; ``said`` is what its console and its policy complained of."""

    def __init__(self, send: "_Line", session: str) -> None:
        self._line = send
        self._session = session
        self.said: list[str] = []

    async def call(self, method: str, **parameters: Any) -> Any:
        return await self._line.call(method, parameters, self._session)

    async def go(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def value(self, expression: str) -> Any:
        """What an expression comes to in the page; a promise is waited for."""
        done = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"])
        return done["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true in the page."""
        try:
            async with asyncio.timeout(LONG_S):
                return await self.value(
                    "new Promise((done) => { const look = () => { let found = null;"
                    f" try {{ found = {expression}; }} catch {{}}"
                    " found ? done(found) : setTimeout(look, 20); }; look(); })"
                )
        except TimeoutError:
            shown = await self.value("document.body.innerText")
            raise AssertionError(f"never true: {expression}\n{shown}") from None

    async def sees(self, text: str) -> None:
        """Wait until a text is to be read."""
        await self.until(f"document.body.innerText.includes({json.dumps(text)})")

    async def click(self, selector: str, text: str | None = None, times: int = 1) -> None:
        """Click in the middle of the first element seen; a second time, whatever is there then."""
        place = await self.place(selector, text)
        for number in range(1, times + 1):
            await self.mouse("mousePressed", place, number)
            await self.mouse("mouseReleased", place, number)

    async def place(self, selector: str, text: str | None = None) -> dict[str, float]:
        """The middle of the first element seen; wait until there is one that nothing covers."""
        wanted = f"{json.dumps(selector)}, {json.dumps(text)}"
        found: dict[str, float] = await self.until(
            f"{BUILT_IN} (() => {{ const it = seen({wanted}); if (!it || it.disabled) return null;"
            " it.scrollIntoView({ block: 'center', behavior: 'instant' });"
            " const box = it.getClientRects()[0];"
            " const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];"
            " return it.contains(document.elementFromPoint(x, y)) ? { x, y } : null; })(); })()"
        )
        return found

    async def mouse(self, kind: str, place: dict[str, float], number: int = 1) -> None:
        """One move of a finger on the mouse; ``number`` counts clicks that come one upon the other."""
        await self.call(
            "Input.dispatchMouseEvent", type=kind, **place, button="left", clickCount=number
        )

    async def write(self, selector: str, text: str) -> None:
        """Put a text into a field instead of what is in it."""
        await self.click(selector)
        await self.value("document.activeElement.select()")
        await self.call("Input.insertText", text=text)

    async def choose(self, selector: str, text: str) -> None:
        """Choose of a list by typing what an entry begins with, as by the keyboard."""
        entry = f"document.querySelector({json.dumps(selector)})"
        await self.value(f"{entry}.focus()")
        for letter in text:
            await self.press(letter, ord(letter.upper()), letter)
        await self.until(f"{entry}.selectedOptions[0].textContent.startsWith({json.dumps(text)})")

    async def press(self, key: str, code: int, text: str = "", repeats: int = 0) -> None:
        """Press a key; one that is held down repeats itself."""
        for number, kind in enumerate((*("keyDown",) * (repeats + 1), "keyUp")):
            await self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
                autoRepeat=0 < number <= repeats,
            )

    async def offline(self, *, is_off: bool) -> None:
        """Take the network away from the page, or give it back."""
        await self.call("Network.enable")
        speed = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await self.call("Network.emulateNetworkConditions", offline=is_off, **speed)

    async def look(self, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Show the page on such a screen, to somebody who likes it dark or light."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme, still])

    async def picture(self, path: Path) -> None:
        """Keep a picture of the whole page."""
        done = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        _keep(path, base64.b64decode(done["data"]))

    async def faults(self) -> list[str]:
        """What axe-core finds that keeps people out, the serious and the critical."""
        await self.value(AXE.read_text("utf-8"))
        found = await self.value("axe.run().then((found) => found.violations)")
        return [
            f"{fault['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for fault in found
            if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]


class _Line:
    """Commands through a pipe, each with its answer; events go to their pages."""

    def __init__(self, reader: asyncio.StreamReader, writing: int) -> None:
        self._reader = reader
        self._writing = writing
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.pages: dict[str, Page] = {}

    async def call(self, method: str, parameters: Any, session: str | None = None) -> Any:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        data = json.dumps(message).encode() + b"\0"
        await asyncio.to_thread(_write, self._writing, data)
        return await answer

    async def listen(self) -> None:
        while True:
            message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
            if "id" in message:
                self._answer(message)
            elif page := self.pages.get(message.get("sessionId", "")):
                _note(page, message)

    def _answer(self, message: Any) -> None:
        waiting = self._waiting.pop(message["id"])
        if "error" in message:
            waiting.set_exception(AssertionError(message["error"]))
        elif not waiting.done():
            waiting.set_result(message["result"])


def _keep(path: Path, picture: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)


def _write(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


def _note(page: Page, message: Any) -> None:
    told = message["params"]
    match message["method"]:
        case "Runtime.exceptionThrown":
            page.said.append(f"exception: {told['exceptionDetails']}")
        case "Log.entryAdded":
            page.said.append(f"{told['entry']['source']}: {told['entry']['text']}")
        case "Page.javascriptDialogOpening":
            page.said.append(f"dialog: {told['message']}")


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Page]:
    """One tab of a browser that has never been anywhere, with its notes in ``folder``."""
    assert PROGRAM is not None
    its_in, our_out = os.pipe()
    our_in, its_out = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", f'exec "$0" "$@" 3<&{its_in} 4>&{its_out}', PROGRAM),
        *(*OPTIONS, f"--user-data-dir={folder}", "about:blank"),
        pass_fds=(its_in, its_out),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(its_in)
    os.close(its_out)
    reader = asyncio.StreamReader(limit=LARGEST)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_in, "rb")
    )
    line = _Line(reader, our_out)
    listening = asyncio.create_task(line.listen())
    try:
        yield await _new_page(line)
        await line.call("Browser.close", {})
    finally:
        listening.cancel()
        transport.close()
        os.close(our_out)
        if process.returncode is None:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(LONG_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _new_page(line: _Line) -> Page:
    target = await line.call("Target.createTarget", {"url": "about:blank"})
    wanted = {"targetId": target["targetId"], "flatten": True}
    session = (await line.call("Target.attachToTarget", wanted))["sessionId"]
    page = line.pages[session] = Page(line, session)
    for part in ("Page", "Runtime", "Log"):
        await page.call(f"{part}.enable")
    return page
