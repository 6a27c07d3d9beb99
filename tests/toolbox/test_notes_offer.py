"""Whom a runtime offers which notes, and what it does without them."""

import json
from pathlib import Path

from session_runtime import Identity, Runtime
from session_runtime.toolbox.notes import FILE
from tests.support import Asked, ask, calls, opened, says, scripted

ANN = Identity(user="ann", roles=frozenset())


def conversation(folder: Path, *wanted: tuple[str, dict[str, object]]) -> str:
    """A configuration whose model makes these calls, one per turn."""
    return scripted(folder, *(calls(each) for each in wanted), says("done"))


def contents(asked: Asked) -> list[str]:
    messages = asked.result.new_messages
    return [str(message.content) for message in messages if message.role == "tool"]


async def notes_of(runtime: Runtime, identity: Identity) -> list[str]:
    """The texts that a search turns up for somebody."""
    (content,) = contents(await ask(runtime, "What?", identity=identity))
    return [note["text"] for note in json.loads(content)["notes"]]


async def test_notes_outlive_the_runtime_and_belong_to_the_user_who_is_stated(
    tmp_path: Path,
) -> None:
    adding = conversation(tmp_path, ("notes.add", {"text": "the key is under the mat"}))
    async with opened(tmp_path, adding) as runtime:
        await ask(runtime, "Keep it.", identity=ANN)
    searching = conversation(tmp_path, ("notes.search", {"query": "key"}))
    async with opened(tmp_path, searching) as runtime:
        assert await notes_of(runtime, ANN) == ["the key is under the mat"]
        for other in (Identity(user="bob"), Identity(), Identity(user="")):
            assert await notes_of(runtime, other) == []


async def test_notes_that_are_switched_off_are_not_there(tmp_path: Path) -> None:
    async with opened(tmp_path, "[notes]\nenabled = false\n") as runtime:
        names = {tool["name"] for tool in runtime.tools()}
    assert not {name for name in names if name.startswith("notes.")}
    assert "get_current_time" in names


async def test_the_configured_limits_hold(tmp_path: Path) -> None:
    wanted = ("notes.add", {"text": "ok"}), ("notes.add", {"text": "too long"})
    text = conversation(tmp_path, *wanted, wanted[0])
    async with opened(tmp_path, f"{text}\n[notes]\nmax_notes = 1\nmax_chars = 3\n") as runtime:
        kept, long, full = contents(await ask(runtime, "Keep it."))
    assert '"text":"ok"' in kept
    assert "a note may have 3" in long
    assert "no more than 1 are kept" in full


async def test_nothing_is_deleted_before_somebody_agrees_unless_the_operator_allows_it(
    tmp_path: Path,
) -> None:
    delete = ("notes.delete", {"id": 1})
    text = conversation(tmp_path, ("notes.add", {"text": "keep me"}), delete)
    async with opened(tmp_path, text) as runtime:
        asked = await ask(runtime, "Delete it.")
    assert asked.result.outcome == "needs_confirmation"
    assert "was not run" in contents(asked)[1]
    wanted = ("notes.list", {}), delete, ("notes.list", {})
    allowed = f'{conversation(tmp_path, *wanted)}\n[access]\ndestructive = "allow"\n'
    async with opened(tmp_path, allowed) as runtime:
        kept, deleted, listed = contents(await ask(runtime, "Delete it."))
    assert "keep me" in kept
    assert "keep me" in deleted
    assert listed == '{"notes":[],"more":false}'


async def test_a_start_makes_no_file_for_notes(tmp_path: Path) -> None:
    async with opened(tmp_path, conversation(tmp_path, ("notes.list", {}))) as runtime:
        assert not (tmp_path / ".session-runtime" / FILE).exists()
        await ask(runtime, "Which?")
        assert (tmp_path / ".session-runtime" / FILE).exists()


async def test_damaged_notes_break_neither_the_start_nor_other_tools(tmp_path: Path) -> None:
    (tmp_path / ".session-runtime").mkdir()
    (tmp_path / ".session-runtime" / FILE).write_bytes(b"no database " * 1000)
    wanted = ("notes.list", {}), ("math.evaluate", {"expression": "6 * 7"})
    async with opened(tmp_path, conversation(tmp_path, *wanted)) as runtime:
        asked = await ask(runtime, "Which?")
    told, computed = contents(asked)
    assert "The notes cannot be used" in told
    assert "42" in computed
    assert asked.result.text == "done"
