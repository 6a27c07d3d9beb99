"""What is known of tools is one state, shared by the processes of a state directory (RTE-4)."""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_runtime.config.durable import UnconfirmedError
from session_runtime.errors import TransientError
from session_runtime.registry.approval_file import Approval, ApprovalFile, Seen
from session_runtime.registry.approvals import Approvals, Approved, Changed, open_approvals
from session_runtime.types import JsonObject


def drop(schema: str, destructive: bool, form: JsonObject | None = None) -> Seen:
    return Seen("s", "drop", schema, destructive, form)


def verdict(approvals: Approvals, schema: str, destructive: bool) -> object:
    return approvals.judge("s", "drop", schema, destructive)


@pytest.mark.requirement("RTE-9c")
async def test_a_mark_is_remembered_although_the_form_that_has_it_waits() -> None:
    approvals = Approvals()
    for seen in (drop("v1", False), drop("v2", True)):
        approvals.saw([seen])
    assert verdict(approvals, "v3", False) == Changed(waits=True)
    assert verdict(approvals, "v1", False) == Approved()
    known = approvals.known("s", "drop")
    assert (known, approvals.drifted) == (drop("v1", True), 0)


@pytest.mark.requirement("RTE-9c")
async def test_a_mark_that_waits_with_its_form_survives_a_restart(tmp_path: Path) -> None:
    approvals = open_approvals(tmp_path)
    for seen in (drop("v1", False), drop("v2", True), drop("v3", False)):
        approvals.saw([seen])
    await approvals.aclose()
    assert ApprovalFile(tmp_path).read() == {("s", "drop"): drop("v1", True)}


@pytest.mark.requirement("RTE-9c")
async def test_a_process_that_remembers_less_undoes_no_mark_and_no_approval(tmp_path: Path) -> None:
    daemon, pipe = open_approvals(tmp_path), open_approvals(tmp_path)
    for each in (daemon, pipe):
        each.saw([drop("v1", False)])
    await daemon.approve([drop("v2", True)])
    pipe.saw([drop("v3", False)])
    await pipe.aclose()
    assert ApprovalFile(tmp_path).read() == {("s", "drop"): drop("v2", True)}
    assert verdict(pipe, "v3", False) == Changed(waits=True)
    assert pipe.revision != daemon.revision == 0
    await daemon.aclose()


@pytest.mark.requirement("RTE-4")
async def test_what_one_process_marks_or_approves_is_known_to_the_other_when_it_looks(
    tmp_path: Path,
) -> None:
    daemon, pipe = open_approvals(tmp_path), open_approvals(tmp_path)
    daemon.saw([drop("v1", True)])
    await daemon.approve([])
    await pipe.look()
    assert (verdict(pipe, "v2", False), pipe.revision) == (Changed(waits=True), 1)
    await daemon.approve([drop("v2", True)])
    await pipe.look()
    await pipe.look()
    assert (verdict(pipe, "v2", False), pipe.revision) == (Approved(), 2)
    for each in (daemon, pipe):
        await each.aclose()


async def test_harmless_forms_that_differ_between_processes_disturb_neither(tmp_path: Path) -> None:
    one, other = open_approvals(tmp_path), open_approvals(tmp_path)
    for _ in range(3):
        for each, schema in ((one, "v1"), (other, "v2")):
            await each.look()
            each.saw([drop(schema, False)])
            await each.approve([])
    assert [(each.drifted, each.revision) for each in (one, other)] == [(0, 0), (1, 0)]
    for each in (one, other):
        await each.aclose()


async def test_a_file_that_broke_while_the_process_runs_is_told_once_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    approvals = open_approvals(tmp_path)
    await approvals.approve([drop("v1", True)])
    (tmp_path / "approvals.json").write_text("{")
    for _ in range(2):
        await approvals.look()
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("what other processes approved cannot be read: ")
    assert verdict(approvals, "v2", False) == Changed(waits=True)
    await approvals.aclose()


class FullDisk:
    """Lets no file be replaced as long as it is full."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.full = True
        self.tried = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._change = ApprovalFile.change
        patch.setattr(ApprovalFile, "change", lambda *given: self.change(*given))

    def change(self, file: ApprovalFile, changes: Any) -> Any:
        if self.full:
            self._loop.call_soon_threadsafe(self.tried.set)
            raise OSError(28, "No space left on device")
        return self._change(file, changes)


@pytest.mark.requirement("RTE-4")
async def test_a_form_that_could_not_be_written_is_written_once_that_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk(monkeypatch)
    approvals = Approvals(ApprovalFile(tmp_path), retry_s=0)
    approvals.saw([drop("v1", True)])
    await disk.tried.wait()
    disk.tried.clear()
    await disk.tried.wait()
    assert (approvals.unkept, approvals.trouble) == (1, "[Errno 28] No space left on device")
    disk.full = False
    while approvals.unkept:
        await approvals.look()
    assert ApprovalFile(tmp_path).read() == {("s", "drop"): drop("v1", True)}
    assert approvals.trouble == ""
    assert caplog.messages == [
        "the forms of 1 tools could not be kept, which is tried again; until then a restart would forget"
        " them: [Errno 28] No space left on device"
    ]
    await approvals.aclose()


@pytest.mark.requirement("RTE-4")
@pytest.mark.parametrize("by", ["another list", "the end"])
async def test_a_form_that_could_not_be_written_is_written_with(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(monkeypatch)
    approvals = open_approvals(tmp_path)
    with pytest.raises(TransientError, match="writing it is tried again"):
        await approvals.approve([drop("v1", True)])
    disk.full = False
    if by == "another list":
        approvals.saw([drop("v1", True), Seen("s", "read", "v1", False)])
    await approvals.aclose()
    assert ApprovalFile(tmp_path).read()["s", "drop"] == drop("v1", True)


async def test_what_is_not_written_at_the_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    FullDisk(monkeypatch)
    approvals = open_approvals(tmp_path)
    approvals.saw([drop("v1", True)])
    await approvals.aclose()
    assert caplog.messages[-1] == (
        "the forms of 1 tools are not kept and are new after a restart: [Errno 28] No space left on device"
    )


@pytest.mark.requirement("RTE-4")
async def test_an_approval_that_the_disk_did_not_confirm_is_not_made_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unconfirmed(file: ApprovalFile, changes: Any) -> Any:
        change(file, changes)
        raise UnconfirmedError(5, "Input/output error", "approvals.json")

    change = ApprovalFile.change
    daemon, pipe = open_approvals(tmp_path), open_approvals(tmp_path)
    daemon.saw([drop("v1", True)])
    await daemon.approve([])
    with monkeypatch.context() as patch:
        patch.setattr(ApprovalFile, "change", unconfirmed)
        with pytest.raises(TransientError, match="Input/output error"):
            await daemon.approve([drop("v1", False)])
    await pipe.look()
    pipe.saw([drop("v1", True)])
    await pipe.aclose()
    await daemon.aclose()
    assert ApprovalFile(tmp_path).read() == {("s", "drop"): drop("v1", True)}


class Hands:
    """Stands in for the thread of one process: what it is given is done when the test says so."""

    def __init__(self) -> None:
        self._given: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []

    def run(self, name: str, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._given.append((outcome, function))
        return outcome

    def end(self) -> None:
        pass

    async def do_one(self, fails: bool = False) -> bool:
        """Whether there was anything to do."""
        if not self._given:
            return False
        outcome, function = self._given.pop(0)
        if fails:
            outcome.set_exception(OSError("full"))
        else:
            outcome.set_result(function())
        await asyncio.sleep(0)
        return True


class Processes:
    """Two processes with one state directory, and what must hold of them at any moment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all = [self._start(), self._start()]
        self._owed = False

    def _start(self) -> tuple[Approvals, Hands]:
        approvals, hands = open_approvals(self._folder), Hands()
        approvals._worker = hands  # type: ignore[assignment]
        return approvals, hands

    def _is_approving(self, which: int) -> bool:
        """Whether an approval of this process is not written yet."""
        return any(isinstance(each, Approval) for each in self._all[which][0]._unkept.values())

    @property
    def _file(self) -> Seen | None:
        return ApprovalFile(self._folder).read().get(("s", "drop"))

    async def works(self, which: int, fails: bool = False) -> bool:
        """Do what the process has to do next; a mark only goes, and its form only changes, by an approval."""
        before, is_approving = self._file, self._is_approving(which)
        done = await self._all[which][1].do_one(fails)
        if before is not None and before.destructive and not is_approving:
            assert self._file == before
        return done

    async def lists(self, which: int, seen: Seen, looks: bool) -> None:
        """Judge a list and put it into force, with the newest state or without."""
        approvals = self._all[which][0]
        if looks:
            looking = asyncio.create_task(approvals.look())
            await asyncio.sleep(0)
            while await self.works(which):
                pass
            await looking
            if not self._is_approving(which):
                self._check(approvals, seen)
        approvals.saw([seen])
        self._owed |= seen.destructive and not any(map(self._is_approving, (0, 1)))
        known = approvals.known("s", "drop")
        assert known is not None
        assert known.destructive >= seen.destructive

    def _check(self, approvals: Approvals, seen: Seen) -> None:
        kept = self._file
        if kept is not None and kept.destructive:
            judged = verdict(approvals, seen.schema, seen.destructive)
            is_known = kept.schema == seen.schema
            assert judged == (Approved() if is_known else Changed(waits=True))
            assert approvals.known("s", "drop") == kept

    async def approves(self, which: int, seen: Seen) -> None:
        self._owed &= seen.destructive
        approving = asyncio.create_task(self._all[which][0].approve([seen]))
        await asyncio.sleep(0)
        approving.add_done_callback(lambda task: task.exception())

    async def ends(self, which: int) -> None:
        closing = asyncio.create_task(self._all[which][0].aclose())
        await asyncio.sleep(0)
        while not closing.done():
            await self.works(which)
            await asyncio.sleep(0)

    async def restarts(self, which: int) -> None:
        await self.ends(which)
        self._all[which] = self._start()

    async def end(self) -> None:
        for which in (0, 1):
            await self.ends(which)
        kept = self._file
        assert not self._owed or (kept is not None and kept.destructive)


FORMS = st.builds(drop, st.sampled_from(["v1", "v2", "v3"]), st.booleans())
WHICH = st.sampled_from([0, 1])
STEPS = st.one_of(
    st.tuples(st.just("lists"), WHICH, FORMS, st.booleans()),
    st.tuples(st.just("approves"), WHICH, FORMS),
    st.tuples(st.just("works"), WHICH, st.booleans()),
    st.tuples(st.just("restarts"), WHICH),
)


@pytest.mark.requirement("RTE-4")
@settings(max_examples=200, deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_in_no_order_of_two_processes_a_mark_goes_without_an_approval(
    steps: list[tuple[Any, ...]],
) -> None:
    async def play(folder: Path) -> None:
        processes = Processes(folder)
        for name, *given_to in steps:
            await getattr(processes, name)(*given_to)
        await processes.end()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))
