"""``notes.*`` as a model calls them, where destructive tools are allowed."""

import json
from pathlib import Path

import pytest

from session_runtime.handler import HandlerContext
from session_runtime.local.scan import Scan
from session_runtime.services import Services
from session_runtime.toolbox.notes import NoteStore
from session_runtime.toolbox.owner import Owner

CREATED = "2023-11-14T22:13:20+00:00"


@pytest.fixture
def context(tmp_path: Path) -> HandlerContext:
    """A context with notes whose clock stands still."""
    store = NoteStore(tmp_path / "notes.sqlite3", 100, 50, clock=lambda: 1_700_000_000.0)
    return HandlerContext(services=Services(notes=store.of(Owner("local", "ann"))))


async def test_a_note_is_kept_found_listed_and_deleted(run, context: HandlerContext) -> None:
    note = {"id": 1, "text": "看牙医: 周三", "tags": ["health"], "created": CREATED}
    added = await run("notes.add", context, text=" 看牙医: 周三 ", tags=["health"])
    found = await run("notes.search", context, query="牙医")
    listed = await run("notes.list", context)
    deleted = await run("notes.delete", context, id=1)
    assert [json.loads(result.content) for result in (added, found, listed, deleted)] == [
        {"kept": note},
        {"notes": [note]},
        {"notes": [note], "more": False},
        {"deleted": note},
    ]
    gone = await run("notes.search", context, query="牙医")
    assert json.loads(gone.content) == {"notes": []}


async def test_a_list_goes_on_where_it_ended(run, context: HandlerContext) -> None:
    for number in range(3):
        await run("notes.add", context, text=f"note {number}")
    first = json.loads((await run("notes.list", context, limit=2)).content)
    assert ([note["id"] for note in first["notes"]], first["more"]) == ([3, 2], True)
    last = json.loads((await run("notes.list", context, limit=2.0, before=2.0)).content)
    assert ([note["id"] for note in last["notes"]], last["more"]) == ([1], False)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("notes.add", {"text": ""}, "tool.invalid_arguments"),
        ("notes.add", {"text": "x", "tags": [""]}, "tool.invalid_arguments"),
        ("notes.add", {"text": "x", "user": "bob"}, "tool.invalid_arguments"),
        ("notes.add", {"text": "\t"}, "notes.invalid"),
        ("notes.add", {"text": "x" * 51}, "notes.invalid"),
        ("notes.search", {"query": "x", "limit": 51}, "tool.invalid_arguments"),
        ("notes.search", {"query": "?"}, "notes.invalid"),
        ("notes.list", {"before": 0}, "tool.invalid_arguments"),
        ("notes.delete", {"id": 5}, "notes.not_found"),
        ("notes.delete", {"id": 1e300}, "notes.not_found"),
        ("notes.delete", {"id": "1"}, "tool.invalid_arguments"),
    ],
)
async def test_what_cannot_be_done_is_told_with_a_code(
    run, context: HandlerContext, name: str, arguments: dict[str, object], code: str
) -> None:
    result = await run(name, context, **arguments)
    assert (result.status, result.error_code) == ("error", code)


async def test_notes_that_are_switched_off_are_told(run) -> None:
    result = await run("notes.list")
    assert (result.status, result.error_code) == ("error", "tool.not_configured")
    assert "notes are switched off" in result.content


def test_only_deleting_is_destructive_and_looking_changes_nothing(bundled: Scan) -> None:
    told = {
        spec.name: (spec.annotations.destructive, spec.annotations.read_only)
        for tool in bundled.tools
        if (spec := tool.spec).name.startswith("notes.")
    }
    assert told == {
        "notes.add": (False, False),
        "notes.delete": (True, False),
        "notes.list": (False, True),
        "notes.search": (False, True),
    }
