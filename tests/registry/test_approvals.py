"""A tool of a server is trusted as it was first seen; a destructive one that changes has to wait."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.errors import StartError, TransientError
from session_runtime.registry import approval_file
from session_runtime.registry import approvals as module
from session_runtime.registry.approval_file import ApprovalFile, Seen
from session_runtime.registry.approvals import (
    Approvals,
    Approved,
    Changed,
    New,
    open_approvals,
)

WIPE = Seen("s", "wipe", "one", True)
READ = Seen("s", "read", "one", False)


async def known(*tools: Seen) -> Approvals:
    approvals = Approvals()
    approvals.saw(tools)
    return approvals


@pytest.mark.requirement("RTE-4")
async def test_the_first_form_is_trusted_and_another_one_of_a_destructive_tool_waits() -> None:
    approvals = Approvals()
    assert approvals.judge("s", "wipe", "one", True) == New()
    approvals.saw([WIPE])
    assert approvals.judge("s", "wipe", "one", True) == Approved()
    assert approvals.judge("s", "wipe", "two", True) == Changed(waits=True)
    assert approvals.judge("other", "wipe", "two", True) == New()


@pytest.mark.requirement("RTE-4")
async def test_a_form_that_waits_does_so_until_it_is_approved() -> None:
    approvals, changed = await known(WIPE), Seen("s", "wipe", "two", True)
    approvals.saw([changed])
    assert approvals.judge("s", "wipe", "two", True) == Changed(waits=True)
    await approvals.approve([changed])
    assert approvals.judge("s", "wipe", "two", True) == Approved()
    assert approvals.judge("s", "wipe", "one", True) == Changed(waits=True)


async def test_a_destructive_tool_that_calls_itself_harmless_when_it_changes_waits_too() -> None:
    approvals = await known(WIPE)
    assert approvals.judge("s", "wipe", "two", False) == Changed(waits=True)


async def test_what_became_destructive_in_the_same_form_is_remembered_as_that() -> None:
    approvals = await known(READ)
    approvals.saw([Seen("s", "read", "one", True)])
    assert approvals.judge("s", "read", "two", False) == Changed(waits=True)


@pytest.mark.requirement("RTE-4")
async def test_another_form_of_a_harmless_tool_is_counted_once_and_taken() -> None:
    approvals, changed = await known(READ), Seen("s", "read", "two", False)
    assert approvals.judge("s", "read", "two", False) == Changed(waits=False)
    approvals.saw([changed])
    approvals.saw([changed])
    assert approvals.drifted == 1
    assert approvals.judge("s", "read", "two", False) == Approved()


@pytest.mark.requirement("RTE-4")
async def test_what_is_known_survives_a_restart(tmp_path: Path) -> None:
    approvals = open_approvals(tmp_path / "state")
    approvals.saw([WIPE, READ])
    await approvals.approve([Seen("s", "wipe", "two", True)])
    await approvals.aclose()
    again = open_approvals(tmp_path / "state")
    assert again.judge("s", "wipe", "two", True) == Approved()
    assert again.judge("s", "read", "one", False) == Approved()


async def test_two_processes_add_to_one_file(tmp_path: Path) -> None:
    one, other = open_approvals(tmp_path), open_approvals(tmp_path)
    one.saw([WIPE])
    other.saw([READ])
    await asyncio.gather(one.aclose(), other.aclose())
    assert ApprovalFile(tmp_path).read() == {("s", "wipe"): WIPE, ("s", "read"): READ}


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "{}",
        '{"version":2,"servers":{}}',
        '{"version":1,"servers":{"s":5}}',
        '{"version":1,"servers":{"s":{"t":{"schema":"x"}}}}',
    ],
)
def test_a_file_that_cannot_be_read_hinders_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "approvals.json").write_text(content)
    with pytest.raises(StartError, match="it cannot be known which tools") as raised:
        open_approvals(tmp_path)
    assert raised.value.code == "start.approvals"


@pytest.mark.requirement("RTE-4")
async def test_one_server_cannot_have_the_tools_of_another_or_its_own_destructive_ones_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_OF_A_SERVER", 4)
    approvals = open_approvals(tmp_path)
    own = Seen("flood", "wipe", "one", True)
    for number in range(5):
        others = [Seen("flood", f"t{number}_{each}", "one", False) for each in range(3)]
        approvals.saw([WIPE, own, *others] if number == 0 else [WIPE, *others])
    assert caplog.messages == []
    await approvals.aclose()
    for each in (approvals, open_approvals(tmp_path)):
        assert each.judge("s", "wipe", "two", True) == Changed(waits=True)
        assert each.judge("flood", "wipe", "two", True) == Changed(waits=True)
        assert each.judge("flood", "t4_0", "two", False) == Changed(waits=False)
        assert each.judge("flood", "t0_0", "one", False) == New()
    assert len(ApprovalFile(tmp_path).read()) == 5


async def test_more_tools_than_are_remembered_are_told_once_and_destructive_ones_come_first(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_OF_A_SERVER", 2)
    approvals = Approvals()
    tools = [Seen("flood", f"t{number}", "one", number == 9) for number in range(10)]
    approvals.saw(tools)
    approvals.saw(tools)
    assert approvals.judge("flood", "t9", "two", True) == Changed(waits=True)
    assert approvals.judge("flood", "t1", "two", False) == New()
    assert caplog.messages == [
        "server flood has listed more than 2 tools: changes of further ones are not noticed"
    ]


FORM = {"parameters": {"type": "object", "properties": {"\ud800": {}}}, "output": None}


@pytest.mark.requirement("RTE-4")
async def test_the_form_of_a_destructive_tool_can_be_shown_after_a_restart(tmp_path: Path) -> None:
    approvals = open_approvals(tmp_path)
    approvals.saw([replace(each, form=FORM) for each in (WIPE, READ)])
    await approvals.aclose()
    again = open_approvals(tmp_path)
    kept = {"parameters": {"type": "object", "properties": {"\ufffd": {}}}, "output": None}
    assert [forms(again, each) for each in (WIPE, READ)] == [kept, None]


async def test_forms_that_are_large_are_known_by_their_digest_alone(tmp_path: Path) -> None:
    deep: dict[str, object] = {}
    for _ in range(70):
        deep = {"a": deep}
    large = {"parameters": "x" * approval_file.MOST_FORM_CHARS, "output": None}
    half = {"parameters": "x" * (approval_file.MOST_FORM_CHARS // 2), "output": None}
    many = [Seen("m", f"t{number:03}", "one", True, half) for number in range(100)]
    approvals = open_approvals(tmp_path)
    approvals.saw([Seen("s", "deep", "one", True, deep), Seen("s", "large", "one", True, large)])
    approvals.saw(many)
    await approvals.aclose()
    again = open_approvals(tmp_path)
    for tool in ("deep", "large"):
        assert again.judge("s", tool, "two", True) == Changed(waits=True)
        assert forms(again, Seen("s", tool, "one", True)) is None
    kept = [each for each in many if forms(again, each) is not None]
    assert (
        kept == many[: approval_file.MOST_FORMS_CHARS // (approval_file.MOST_FORM_CHARS // 2) - 1]
    )


def forms(approvals: Approvals, tool: Seen) -> object:
    known = approvals.known(tool.server, tool.tool)
    assert known is not None
    return known.form


async def test_an_approval_acts_and_says_so_where_there_is_no_thread_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "Worker", no_thread)
    approvals = open_approvals(tmp_path)
    with pytest.raises(TransientError, match="no longer: can't start new thread"):
        await approvals.approve([WIPE])
    assert approvals.judge("s", "wipe", "one", True) == Approved()
    await approvals.aclose()


async def test_an_approval_that_could_not_be_kept_acts_and_says_so(tmp_path: Path) -> None:
    approvals = open_approvals(tmp_path / "state")
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(TransientError, match="approved as long as this process runs") as raised:
        await approvals.approve([WIPE])
    assert raised.value.code == "approvals.not_kept"
    assert approvals.judge("s", "wipe", "one", True) == Approved()
    await approvals.aclose()


TEXTS = st.text(max_size=5).filter(lambda text: text.isprintable())
TOOLS = st.builds(Seen, TEXTS, TEXTS, TEXTS, st.booleans())


@given(tools=st.lists(TOOLS))
def test_what_is_written_is_read_again(tools: list[Seen]) -> None:
    known = {(tool.server, tool.tool): tool for tool in tools}
    assert approval_file._read(json.loads(json.dumps(approval_file._to_json(known)))) == known
