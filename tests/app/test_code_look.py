"""A tool whose code is no Python is told of after the start, which compiles none of it (REG-2)."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from session_runtime import Runtime
from session_runtime.app import code_look
from session_runtime.app.code_look import AGAIN_S, FIRST_S, PACE_S, CodeLook
from tests.generation.sites import Site, site
from tests.support import importable, write_config, write_handler

pytestmark = pytest.mark.requirement("REG-2")
BROKEN = "def execute(args, context)\n    return 1\n"
QUIET = "[skills]\nprefetch_tools = []\ntool_search_always_loaded = []\n"


def told_of(folder: Path) -> str:
    return (
        f"tool 'notes': its code in {folder}/tools/notes cannot be imported: handler.py line 1:"
        " SyntaxError: expected ':'"
    )


class Pauses:
    """Lets the look go on, one pause after the other, until ``most`` were made."""

    def __init__(self, most: int) -> None:
        self.made: list[float] = []
        self.over = asyncio.Event()
        self._most = most

    async def __call__(self, seconds: float) -> None:
        self.made.append(seconds)
        if len(self.made) >= self._most:
            self.over.set()
            await asyncio.Event().wait()


async def looked(place: Site, pauses: int) -> tuple[Sequence[str], Sequence[float]]:
    pause = Pauses(pauses)
    look = CodeLook(lambda: place.generation, pause)
    async with look.running():
        await pause.over.wait()
    return look.warnings, pause.made


def handlers(folder: Path) -> str:
    return f'[handlers]\nbundled = false\npaths = ["{folder}"]\n{QUIET}'


async def test_after_the_start_broken_code_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_handler(tmp_path / "tools", "good")
    write_handler(tmp_path / "tools", "notes", code=BROKEN)
    with caplog.at_level(logging.WARNING, "session_runtime.app.code_look"):
        async with site(tmp_path, handlers(tmp_path / "tools")) as place:
            assert place.generation.warnings == ()  # the start compiled nothing
            warnings, pauses = await looked(place, 5)
    assert (warnings, caplog.messages) == ([told_of(tmp_path)],) * 2
    assert pauses == [FIRST_S, PACE_S, PACE_S, AGAIN_S, AGAIN_S]


async def test_what_comes_into_force_is_looked_at_too_and_what_was_mended_is_told_no_more(
    tmp_path: Path,
) -> None:
    folder = write_handler(tmp_path / "tools", "notes", code=BROKEN)
    async with site(tmp_path, handlers(tmp_path / "tools")) as place:
        look = CodeLook(lambda: place.generation, pause := Pauses(3))
        async with look.running():
            await pause.over.wait()
        assert look.warnings == [told_of(tmp_path)]
        (folder / "handler.py").write_text("def execute(args, context):\n    return 1\n", "utf-8")
        assert (await place.live.reload("watch")).verdict == "applied"
        assert look.warnings == []


async def test_the_status_warns_of_code_that_is_no_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_look, "FIRST_S", 0.0)
    write_handler(tmp_path / "tools", "notes", code=BROKEN)
    config = write_config(tmp_path, handlers(tmp_path / "tools") + '[runtime]\nwatch = "off"\n')
    told = asyncio.Event()
    monkeypatch.setattr(code_look._log, "warning", lambda *_: told.set())
    async with Runtime.open(config, env={}) as runtime, asyncio.timeout(60):
        async with runtime.code_look.running():
            await told.wait()
        assert runtime.status()["warnings"] == [told_of(tmp_path)]


async def test_a_form_that_never_worked_is_not_kept(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "good")
    folder = write_handler(tmp_path / "tools", "notes", code=BROKEN)
    async with site(tmp_path, handlers(tmp_path / "tools")) as place:
        (folder / "handler.py").write_text("def execute(args, context)\n    return 2\n", "utf-8")
        await place.live.reload("watch")
        assert (place.tools, place.generation.catalog.quarantined) == (["good", "notes"], ())
        (folder / "config.json").write_text("{", "utf-8")
        await place.live.reload("watch")
        [bad] = place.generation.catalog.quarantined
        assert (bad.name, bad.stale, place.tools) == ("notes", False, ["good"])


async def test_code_that_was_imported_after_all_is_told_of_no_more(tmp_path: Path) -> None:
    code = "import installed_later\ndef execute(args, context):\n    return 1\n"
    write_handler(tmp_path / "tools", "notes", code=code)
    async with site(tmp_path, handlers(tmp_path / "tools")) as place:
        look = CodeLook(lambda: place.generation, pause := Pauses(3))
        async with look.running():
            await pause.over.wait()
        before = look.warnings
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "installed_later.py").write_text("", "utf-8")
        with importable(tmp_path / "site"):
            await place.generation.handlers.handlers["notes"].load()
        assert before == [
            f"tool 'notes': its code in {tmp_path}/tools/notes cannot be imported: handler.py line 1:"
            " there is no module installed_later: install it where the daemon runs"
        ]
        assert look.warnings == []
