"""The statistics of a large catalogue are worked out without holding up other asks."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from session_runtime.registry.revoked import Matching
from session_runtime.search import view
from session_runtime.search.directory import Entry, directory_text
from session_runtime.search.rank import Scorer
from session_runtime.types import ToolsLoaded
from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler

SETTINGS = "[skills]\nprefetch_tools = []\ntool_search_enabled = true\n"
SEARCHES = [("tool_search", {"query": query}) for query in ("deep +probe", "deep other")]


@pytest.mark.requirement("TS-7")
@pytest.mark.parametrize("large", [False, True])
async def test_the_first_search_of_many_tools_is_prepared_in_a_thread_and_finds_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    prepared_by: list[str] = []

    class Noted(Scorer):
        def __init__(self, *corpus_and_visible: object) -> None:
            prepared_by.append(threading.current_thread().name)
            super().__init__(*corpus_and_visible)  # type: ignore[arg-type]

    monkeypatch.setattr(view, "Scorer", Noted)
    if large:
        monkeypatch.setattr(view, "SLOW_ABOVE", 1)
    for name in ("deep.probe", "deep.other"):
        write_handler(tmp_path / "tools", name)
    script = scripted(tmp_path, calls(*SEARCHES), says("ok"))
    async with opened(tmp_path, tool_folder(tmp_path) + SETTINGS + script) as runtime:
        asked = await ask(runtime, "go")
    assert [each.names for each in asked.of(ToolsLoaded)] == [("deep.probe",), ("deep.other",)]
    here, aside = threading.current_thread().name, "preparing tool search"
    assert prepared_by == [aside if large else here]


@pytest.mark.requirement("TS-4")
@pytest.mark.parametrize("large", [False, True])
async def test_the_names_of_many_tools_are_listed_in_a_thread_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    listed_by: list[str] = []

    def noted(entries: Sequence[Entry], max_tokens: int) -> str:
        listed_by.append(threading.current_thread().name)
        return directory_text(entries, max_tokens)

    monkeypatch.setattr(view, "directory_text", noted)
    if large:
        monkeypatch.setattr(view, "SLOW_ABOVE", 1)
    for name in ("deep.probe", "deep.other"):
        write_handler(tmp_path / "tools", name)
    script = scripted(tmp_path, says("ok"), says("ok"))
    async with opened(tmp_path, tool_folder(tmp_path) + SETTINGS + script) as runtime:
        for _ in range(2):
            await ask(runtime, "go")
    here, aside = threading.current_thread().name, "listing tools"
    assert listed_by == [aside if large else here]


@pytest.mark.requirement("REL-9")
async def test_a_near_name_for_a_revocation_is_looked_for_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared_by: list[str] = []

    class Noted(Scorer):
        def __init__(self, *corpus_and_visible: object) -> None:
            prepared_by.append(threading.current_thread().name)
            super().__init__(*corpus_and_visible)  # type: ignore[arg-type]

    monkeypatch.setattr(view, "Scorer", Noted)
    write_handler(tmp_path / "tools", "deep.probe")
    script = scripted(tmp_path, says("ok"))
    async with opened(tmp_path, tool_folder(tmp_path) + SETTINGS + script) as runtime:
        assert await runtime.brake.matching("deep.prob") == Matching((), "deep.probe")
        assert await runtime.brake.matching("deep.*") == Matching(("deep.probe",))
    assert prepared_by == ["looking for a near name"]
