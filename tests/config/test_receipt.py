"""The line that the log has for an attempt: each change with both values, short and on one line."""

import pytest

from session_runtime.config.changes import Change
from session_runtime.config.receipt import Receipt, Receipts


def receipt(*, changes: tuple[Change, ...] = (), waiting: tuple[Change, ...] = ()) -> Receipt:
    return Receipt(
        id=3,
        at=0.0,
        trigger="watch",
        verdict="applied-restart-needed" if waiting else "applied",
        digest="d",
        generation=2,
        duration_s=0.0,
        changes=changes,
        waiting=waiting,
    )


@pytest.mark.requirement("REL-3")
@pytest.mark.requirement("REL-4")
def test_the_log_tells_both_values_of_what_changed_and_of_what_waits() -> None:
    edited = receipt(
        changes=(
            Change("ask.max_steps", 32, 9, "next ask"),
            Change("skills.prefetch_tools", None, ["notes.list", "end"], "next ask"),
        ),
        waiting=(Change("http.port", 8040, 9000, "restart"),),
    )
    assert edited.summary() == (
        "configuration applied-restart-needed (watch, receipt 3): ask.max_steps: 32 -> 9; "
        'skills.prefetch_tools: unset -> ["notes.list","end"]; '
        "restart needed: http.port: 8040 -> 9000"
    )


@pytest.mark.requirement("CFG-3b")
def test_the_log_tells_that_an_edit_has_no_effect() -> None:
    edited = receipt(changes=(Change("ask.max_steps", 32, 9, "next ask", "env X"),))
    assert edited.summary().endswith(": ask.max_steps: 32 -> 9 (no effect: shadowed by env X)")


@pytest.mark.parametrize("long", ["line\n" * 100, ["entry"] * 100], ids=["text", "list"])
def test_the_log_cuts_long_values_and_keeps_them_on_one_line(long: object) -> None:
    edited = receipt(changes=(Change("ask.system_prompt", "x" * 58, long, "next ask"),))
    key, old, arrow, new = edited.summary().partition("): ")[2].split(" ")
    assert (key, old, arrow) == ("ask.system_prompt:", f'"{"x" * 58}"', "->")
    assert (len(new), new[-1]) == (60, "…")


def test_a_receipt_is_told_the_entry_that_keeps_what_it_put_into_force() -> None:
    receipts = Receipts()
    for number, verdict in ((1, "applied"), (2, "unchanged")):
        receipts.add(Receipt(number, 1.0, "start", verdict, "d", 1, 0.0))  # type: ignore[arg-type]
    receipts.kept_as(1, 7, oldest=1)
    receipts.kept_as(99, 8, oldest=1)
    assert [each.entry for each in receipts.newest()] == [None, 7]
    assert receipts.applied == receipts.newest()[1]
    assert receipts.newest()[1].to_json()["entry"] == 7


def test_no_receipt_names_an_entry_that_the_history_does_not_have_any_more() -> None:
    receipts = Receipts()
    for number in range(1, 5):
        receipts.add(Receipt(number, 1.0, "watch", "applied", "d", number, 0.0))
        receipts.kept_as(number, number + 10, oldest=max(11, number + 9))
    assert [each.entry for each in receipts.newest()] == [14, 13, None, None]
    receipts.kept_as(3, 13, oldest=15)
    assert [each.entry for each in receipts.newest()] == [None] * 4
    assert receipts.applied is not None
    assert receipts.applied.entry is None
