"""What the watcher does when something fails, or is not what it should be."""

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from session_runtime.config import watch
from tests.config.living import living, looked_again, open_files, results, watching
from tests.config.test_watch import by_rename

pytestmark = pytest.mark.requirement("REL-5")


async def test_a_rejected_edit_is_tried_again_when_what_it_lacked_is_there(tmp_path: Path) -> None:
    file, secret = tmp_path / "config.toml", tmp_path / "elsewhere" / "key"
    file.write_text(results(1))
    async with living(file, mode="events", recheck_s=0.05) as place:
        await watching(place)
        file.write_text(
            f'[runtime]\nsecret_sources = ["file:{secret.parent}"]\n[models.m]\nmodel = "x"\n'
            f'base_url = "http://127.0.0.1:9/v1"\napi_key = "file:{secret}"\n'
        )
        await place.live.until("rejected")
        secret.parent.mkdir()
        secret.write_text("late")
        assert (await place.live.next_receipt()).verdict == "applied"


async def test_a_rejected_edit_that_stays_as_it_is_leaves_one_receipt(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="polling", recheck_s=0.001) as place:
        file.write_text(results(0))
        await place.live.until("rejected")
        for _ in range(5):
            await looked_again(place)
        assert len(place.live.receipts.newest()) == 2


async def test_a_watcher_that_fails_says_so_and_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file, failed = tmp_path / "config.toml", asyncio.Event()
    file.write_text(results(1))
    works = watch.awatch

    def broken(*paths: Path, **options: object) -> object:
        failed.set()
        monkeypatch.setattr(watch, "awatch", works)
        raise OSError(28, "no space left for watches")

    monkeypatch.setattr(watch, "awatch", broken)
    async with living(file, mode="events", recheck_s=0.05) as place:
        await failed.wait()
        file.write_text(results(2))
        await place.live.in_force(2)
        await watching(place)
        file.write_text(results(3))
        await place.live.in_force(3)
        assert place.watcher.status()["restarts"] == 1
        assert place.watcher.mode == "events"
    assert "no space left for watches" in caplog.text


async def test_a_watcher_whose_tasks_are_cancelled_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        for task in asyncio.all_tasks():
            if task.get_name() in ("follow edits", "events of files"):
                task.cancel()
        file.write_text(results(2))
        await place.live.in_force(2)
        assert place.watcher.status()["restarts"] == 2


@pytest.mark.parametrize("edits", [1_000, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_a_storm_of_edits_ends_with_the_last_one_and_few_reloads(
    edits: int, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        handles = open_files()
        for number in range(2, edits + 1):
            by_rename(file, results(number))
            if number % 100 == 0:
                await asyncio.sleep(0)
        await place.live.in_force(edits)
        assert place.live.receipts.newest()[0].id < edits // 20
        assert open_files() <= handles


async def test_a_file_that_is_a_mount_point_is_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "with blank.toml"
    file.write_text(results(1))
    mounts = tmp_path / "mountinfo"
    escaped = str(file).replace(" ", "\\040")
    mounts.write_text(
        f"36 35 98:0 / / rw - ext3 /dev/root rw\n37 36 98:0 /x {escaped} rw - x y z\n"
    )
    monkeypatch.setattr("session_runtime.config.fingerprint.MOUNTS", mounts)
    async with living(file, mode="polling") as place:
        assert "is itself a mount point" in place.watcher.status()["warnings"][0]
        assert "mount its folder instead" in place.watcher.status()["warnings"][0]


async def test_a_pipe_in_the_place_of_the_file_holds_nothing_up(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        file.unlink()
        os.mkfifo(file)
        await place.live.until("rejected")
        file.unlink()
        file.write_text(results(2))
        await place.live.in_force(2)
        assert place.watcher.alive


async def test_links_that_lead_to_each_other_are_rejected_and_can_be_mended(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        file.unlink()
        file.symlink_to(file)
        await place.live.until("rejected")
        assert place.watcher.status()["warnings"] == []
        file.unlink()
        file.write_text(results(2))
        await place.live.in_force(2)


async def test_what_is_watched_only_since_an_edit_is_looked_at_at_once(tmp_path: Path) -> None:
    """The file of the prompt changes after it was read and before events of its folder come."""
    prompt = tmp_path / "prompts" / "prompt.md"
    prompt.parent.mkdir()
    prompt.write_text("old")
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        place.builder.gate.clear()
        file.write_text('[ask]\nprompt_file = "prompts/prompt.md"\n')
        while place.builder.prepared < 2:  # noqa: ASYNC110 - it is about to
            await asyncio.sleep(0.001)
        prompt.write_text("new")
        place.builder.gate.set()
        while place.live.snapshot.system_prompt != "new":
            await place.live.next_receipt()


async def test_a_fault_deep_in_groups_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*paths: Path, **options: object) -> object:
        fault = OSError(28, "no space left for watches")
        raise ExceptionGroup("outer", [ExceptionGroup("inner", [fault])])

    monkeypatch.setattr(watch, "awatch", broken)
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events", recheck_s=0.001) as place:
        async with asyncio.timeout(20):
            while not place.watcher.status()["restarts"]:
                await looked_again(place)
        assert place.watcher.status()["failure"] == "OSError: [Errno 28] no space left for watches"
    assert "Group" not in caplog.text


async def test_names_that_are_not_utf_8_do_not_end_the_watching(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / os.fsdecode(b"notes-\xe9.txt")).write_text("not UTF-8")
    file = tmp_path / "config.toml"
    file.write_text(results(1, f"[handlers]\npaths = ['{tools}']\n"))
    async with living(file, mode="events", recheck_s=0.05) as place:
        (tools / os.fsdecode(b"more-\xe9.txt")).write_text("not UTF-8")
        file.write_text(results(2, f"[handlers]\npaths = ['{tools}']\n"))
        await place.live.in_force(2)


async def test_a_process_without_open_files_calls_no_file_unreadable_and_looks_again(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    (tmp_path / "tools" / "a").mkdir(parents=True)
    file.write_text(results(1, "[handlers]\npaths = ['tools']\n"))
    async with living(file, mode="polling", recheck_s=0.01) as place:
        await looked_again(place)
        with no_open_files_left():
            async with asyncio.timeout(20):
                while not place.watcher.status()["restarts"]:  # noqa: ASYNC110 - no event tells it
                    await asyncio.sleep(0)
        file.write_text(results(2, "[handlers]\npaths = ['tools']\n"))
        await place.live.in_force(2)
        assert [each.verdict for each in place.live.receipts.newest()] == ["applied", "applied"]


@contextmanager
def no_open_files_left() -> Iterator[None]:
    """Let this process open nothing more; what is open stays usable."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/dev/null", os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe, limits[1]))
    os.close(probe)
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
