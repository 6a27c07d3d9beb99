"""Notes belong to one owner, are found by words, and come back as they were given."""

import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_runtime.errors import ToolError
from session_runtime.services import Note
from session_runtime.toolbox.notes import NoteStore, OwnNotes
from session_runtime.toolbox.owner import Owner

ANN = Owner("local", "ann")


@pytest.fixture
def store(tmp_path: Path) -> NoteStore:
    """A store for small notes whose clock ticks by one second."""
    ticks = count(1_700_000_000)
    return NoteStore(tmp_path / "state" / "notes.sqlite3", 5, 40, clock=lambda: float(next(ticks)))


@pytest.fixture
def notes(store: NoteStore) -> OwnNotes:
    """The notes of one owner."""
    return store.of(ANN)


def texts(found: tuple[Note, ...]) -> list[str]:
    return [note.text for note in found]


def test_a_note_is_kept_with_its_number_tags_and_time(notes: OwnNotes) -> None:
    kept = notes.add("The dentist is on May 3", ("health", "dates"))
    assert kept == Note(1, "The dentist is on May 3", ("health", "dates"), 1_700_000_000.0)
    assert notes.list(10) == notes.search("dentist", 10) == notes.search("HEALTH", 10) == (kept,)
    assert kept.to_json() == {
        "id": 1,
        "text": "The dentist is on May 3",
        "tags": ["health", "dates"],
        "created": "2023-11-14T22:13:20+00:00",
    }


def test_the_file_and_its_folder_are_for_their_user_alone(store: NoteStore) -> None:
    store.of(ANN).list(1)
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in store.path.parent.iterdir()] == ["notes.sqlite3"]


def test_making_a_store_touches_no_file(store: NoteStore) -> None:
    store.of(ANN)
    assert not store.path.parent.exists()


@pytest.mark.requirement("NET-2c")
@pytest.mark.parametrize(
    "other",
    [
        Owner("local", None),
        Owner("local", ""),
        Owner("local", "None"),
        Owner("local", "null"),
        Owner("local", "Ann"),
        Owner("local", "ann "),
        Owner("local", "ann\0"),
        Owner("local", "ann\ud800"),
        Owner("other", "ann"),
        Owner("", 'local", "ann'),
    ],
)
def test_nobody_else_sees_counts_or_deletes_a_note(store: NoteStore, other: Owner) -> None:
    mine, theirs = store.of(ANN), store.of(other)
    kept = mine.add("secret")
    assert theirs.list(10) == theirs.search("secret", 10) == ()
    with pytest.raises(ToolError) as foreign:
        theirs.delete(kept.id)
    assert theirs.add("own").id == 1
    assert (texts(mine.list(10)), texts(theirs.list(10))) == (["secret"], ["own"])
    assert theirs.delete(1).text == "own"
    with pytest.raises(ToolError) as missing:
        theirs.delete(1)
    assert str(foreign.value) == str(missing.value)
    assert foreign.value.code == missing.value.code == "notes.not_found"


def test_an_unnamed_user_is_somebody_of_their_own(store: NoteStore) -> None:
    for text, user in (("nobody's", None), ("the empty name's", ""), ("None's", "None")):
        store.of(Owner("local", user)).add(text)
    assert texts(store.of(Owner("local", None)).list(10)) == ["nobody's"]
    assert texts(store.of(Owner("local", "")).list(10)) == ["the empty name's"]


def test_what_others_keep_does_not_change_how_notes_are_ranked(store: NoteStore) -> None:
    mine = store.of(ANN)
    for text in ("red apple", "red pear", "blue apple"):
        mine.add(text)
    before = mine.search("red apple", 10)
    for _ in range(5):
        store.of(Owner("local", "bob")).add("apple apple apple")
    assert mine.search("red apple", 10) == before
    assert texts(before)[0] == "red apple"


def test_notes_are_listed_newest_first_page_by_page(notes: OwnNotes) -> None:
    for number in range(1, 6):
        notes.add(f"note {number}")
    assert [note.id for note in notes.list(2)] == [5, 4]
    assert [note.id for note in notes.list(2, before=4)] == [3, 2]
    assert [note.id for note in notes.list(9, before=2)] == [1]
    assert notes.list(9, before=1) == ()
    assert len(notes.list(9, before=10**30)) == 5


def test_a_deleted_note_is_gone_and_its_number_is_not_used_again(
    store: NoteStore, notes: OwnNotes
) -> None:
    notes.add("first")
    deleted = notes.add("the zebra in the bathtub")
    assert notes.delete(2) == deleted
    assert notes.search("zebra", 10) == ()
    assert notes.add("third").id == 3
    content = store.path.read_bytes()
    assert b"zebra" not in content
    assert b"third" in content


@pytest.mark.parametrize("number", [0, -1, 2, 2**63 - 1, 2**63, 10**30])
def test_a_number_without_a_note_is_told(notes: OwnNotes, number: int) -> None:
    notes.add("only one")
    with pytest.raises(ToolError, match=f"There is no note {number}") as caught:
        notes.delete(number)
    assert caught.value.code == "notes.not_found"


def test_there_is_a_limit_per_owner(store: NoteStore, notes: OwnNotes) -> None:
    for number in range(5):
        notes.add(f"note {number}")
    with pytest.raises(ToolError, match="there are 5 notes, and no more than 5 are kept") as caught:
        notes.add("one more")
    assert caught.value.code == "notes.full"
    assert store.of(Owner("local", "bob")).add("mine").id == 1
    notes.delete(2)
    assert notes.add("now it fits").id == 6


def test_a_long_note_is_refused_with_its_length(notes: OwnNotes) -> None:
    assert notes.add("猫" * 40).id == 1
    with pytest.raises(ToolError, match="it has 41 characters, and a note may have 40") as caught:
        notes.add("猫" * 41)
    assert caught.value.code == "notes.invalid"


@pytest.mark.parametrize("text", ["", " \n\t ", "\0", "\x1b\x07"])
def test_a_blank_note_is_refused(notes: OwnNotes, text: str) -> None:
    with pytest.raises(ToolError, match="The note is blank"):
        notes.add(text)


@pytest.mark.parametrize("query", ["", "?!", "\0", "👋", '"', "--"])
def test_a_query_without_words_is_told(notes: OwnNotes, query: str) -> None:
    notes.add("a note")
    with pytest.raises(ToolError, match="The query has no word in it") as caught:
        notes.search(query, 10)
    assert caught.value.code == "notes.invalid"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\r\nb\rc\td", "a\nb\nc\td"),
        ("bell\x07 esc\x1b nul\0 end\x85.", "bell  esc  nul  end ."),
        ("half \ud83d whole \U0001f600", "half \ufffd whole \U0001f600"),
        ("split \ud83d\ude00", "split \U0001f600"),
        ("'); DROP TABLE notes; --", "'); DROP TABLE notes; --"),
    ],
)
def test_text_is_kept_as_data_without_controls_and_half_characters(
    notes: OwnNotes, given: str, kept: str
) -> None:
    assert notes.add(given, (given, "\0")).tags == (kept,)
    assert texts(notes.list(1)) == [kept]
    json.dumps(notes.list(1)[0].to_json(), ensure_ascii=False).encode()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(query=st.text() | st.text(alphabet="\"'*^():-+{}ANDORNEAR \0\ud800a猫"))
def test_a_query_is_never_read_as_commands(notes: OwnNotes, query: str) -> None:
    if not notes.list(1):
        notes.add("a猫 near and or")
    found = notes.search(f"{query} 猫", 10)
    assert texts(found) == ["a猫 near and or"]
