"""Edits are noticed however they are saved, on a real file system."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from session_runtime.app.reader import ConfigReader
from session_runtime.config import watch
from session_runtime.config.fingerprint import concerned, counts_in_tree
from session_runtime.config.watch import Mode, Watcher
from tests.config.living import Live, NoteTaker, living, looked_again, results, watching

Save = Callable[[Path, str], None]
pytestmark = pytest.mark.requirement("REL-5")


def in_place(file: Path, text: str) -> None:
    file.write_text(text)


def in_pieces(file: Path, text: str) -> None:
    with file.open("w") as opened:
        for char in text:
            opened.write(char)
            opened.flush()
            os.fsync(opened.fileno())


def by_rename(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def as_vim_does(file: Path, text: str) -> None:
    backup = file.with_name(file.name + "~")
    file.rename(backup)
    file.write_text(text)
    backup.unlink()


def deleted_and_made_again(file: Path, text: str) -> None:
    file.unlink()
    file.write_text(text)


def by_hard_link(file: Path, text: str) -> None:
    other = file.with_name("other")
    other.write_text(text)
    file.unlink()
    os.link(other, file)
    other.unlink()


def with_byte_order_mark(file: Path, text: str) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())


def with_windows_lines(file: Path, text: str) -> None:
    file.write_bytes(text.replace("\n", "\r\n").encode())


def of_the_same_size_and_time(file: Path, text: str) -> None:
    fact = file.stat()
    file.write_text(text.ljust(fact.st_size, "\n"))
    os.utime(file, ns=(fact.st_atime_ns, fact.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (fact.st_size, fact.st_mtime_ns)


STYLES = (
    in_place,
    in_pieces,
    by_rename,
    as_vim_does,
    deleted_and_made_again,
    by_hard_link,
    with_byte_order_mark,
    with_windows_lines,
    of_the_same_size_and_time,
)


@pytest.mark.parametrize("mode", ["events", "polling"])
@pytest.mark.parametrize("save", STYLES, ids=lambda save: save.__name__)
async def test_each_save_of_this_style_takes_effect(save: Save, mode: Mode, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    recheck_s = 60.0 if mode == "events" else 0.02
    async with living(file, mode=mode, recheck_s=recheck_s) as place:
        await watching(place, mode)
        for number in (2, 3, 4):
            save(file, results(number))
            receipt = await place.live.in_force(number)
            assert receipt.trigger == "watch"


async def test_styles_may_follow_one_another(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        for number, save in enumerate((in_place, by_rename, in_place, by_rename, as_vim_does), 2):
            save(file, results(number))
            await place.live.in_force(number)


async def test_a_mounted_folder_that_is_swapped_by_a_link_is_followed(tmp_path: Path) -> None:
    def version(name: str, number: int) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(results(number))
        (tmp_path / "..data_tmp").symlink_to(name)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    version("..v1", 1)
    file = tmp_path / "config.toml"
    file.symlink_to("..data/config.toml")
    async with living(file, mode="events") as place:
        await watching(place)
        for number in (2, 3):
            version(f"..v{number}", number)
            (tmp_path / f"..v{number - 1}" / "config.toml").unlink()
            (tmp_path / f"..v{number - 1}").rmdir()
            await place.live.in_force(number)
        file.resolve().write_text(results(4))
        await place.live.in_force(4)


async def test_a_file_behind_a_link_to_another_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real.toml"
    real.write_text(results(1))
    file = tmp_path / "here" / "config.toml"
    file.symlink_to(real)
    async with living(file, mode="events") as place:
        await watching(place)
        by_rename(real, results(2))
        await place.live.in_force(2)


async def test_a_folder_that_is_replaced_as_a_whole_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    file = folder / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events", recheck_s=0.05) as place:
        await watching(place)
        folder.rename(tmp_path / "old")
        folder.mkdir()
        file.write_text(results(2))
        await place.live.in_force(2)
        in_place(file, results(3))
        await place.live.in_force(3)


@pytest.mark.requirement("REL-2")
async def test_a_file_that_is_emptied_before_it_is_written_never_means_defaults(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        with file.open("w") as opened:
            await looked_again(place)
            opened.write(results(2))
        assert (await place.live.in_force(2)).verdict == "applied"
        assert [each.verdict for each in place.live.receipts.newest()] == ["applied", "applied"]


@pytest.mark.requirement("REL-2")
async def test_a_file_that_stays_empty_is_rejected_in_the_end(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        file.write_text("")
        receipt = await place.live.until("rejected")
        assert "is empty" in str(receipt.errors[0])


@pytest.mark.requirement("CFG-4b")
async def test_a_rotated_secret_file_reaches_the_next_ask(tmp_path: Path) -> None:
    secret = tmp_path / "secrets" / "key"
    secret.parent.mkdir()
    secret.write_text("first")
    file = tmp_path / "config.toml"
    file.write_text(
        f'[runtime]\nsecret_sources = ["file:{secret.parent}"]\n[models.m]\nmodel = "x"\n'
        f'base_url = "http://127.0.0.1:9/v1"\napi_key = "file:{secret}"\n'
    )
    async with living(file, mode="events") as place:
        await watching(place)
        by_rename(secret, "second")
        receipt = await place.live.until("applied")
        key = place.live.snapshot.settings.models["m"].api_key
    assert (receipt.trigger, key and key.get_secret_value()) == ("secret", "second")


@pytest.mark.requirement("ASK-2b")
async def test_a_new_text_in_the_prompt_file_reaches_the_next_ask(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text("old")
    file = tmp_path / "config.toml"
    file.write_text('[ask]\nprompt_file = "prompt.md"\n')
    async with living(file, mode="events") as place:
        await watching(place)
        prompt.write_text("new")
        await place.live.until("applied")
        assert place.live.snapshot.system_prompt == "new"


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("/home/me/.tools/files/read/handler.py", True),
        ("/home/me/.tools/files/read/config.json", True),
        ("/home/me/.tools/files", True),
        ("/home/me/.tools/files/read/__pycache__/handler.cpython-311.pyc", False),
        ("/home/me/.tools/files/.git/index", False),
        ("/home/me/.tools/files/read/.handler.py.swp", False),
        ("/home/me/.tools/files/read/cache.db", False),
        ("/home/me/.tools/..data", True),
        ("/home/me/.tools/files/..data", True),
        ("/home/me/.tools/.git/..data", False),
        ("/home/me/.tools/..2026_11_30/files/read/handler.py", False),
        ("/home/me/.tools.d/files/read/handler.py", True),
        ("/home/me/.tools.d/files/read/.git/index", False),
        ("/home/me/.tools", True),
        ("/home/me/.tools.d", True),
        ("/home/me", True),
    ],
)
def test_of_a_folder_of_tools_only_what_makes_tools_counts(path: str, counts: bool) -> None:
    trees = [Path("/home/me/.tools"), Path("/home/me/.tools.d")]
    assert counts_in_tree(path, trees) is counts


def test_a_swapped_link_is_about_all_that_lies_beside_it() -> None:
    paths = ["/tools/..data", "/tools/files/..data", "/tools/files/read/handler.py"]
    assert [concerned(path) for path in paths] == ["/tools", "/tools/files", paths[-1]]


async def test_other_files_that_are_written_beside_the_configuration_are_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: set[str] = set()
    works = watch.awatch

    async def noted(*paths: Path, **options: Any) -> AsyncIterator[Any]:
        async for changes in works(*paths, **options):
            heard.update(path for _, path in changes)
            yield changes

    monkeypatch.setattr(watch, "awatch", noted)
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    async with living(file, mode="events") as place:
        await watching(place)
        for number in range(50):
            (tmp_path / "trace.jsonl").write_text(f"{number}")
        file.write_text(results(2))
        await place.live.in_force(2)
    assert heard == {str(file)}


@pytest.mark.requirement("REL-7")
async def test_of_tools_only_what_events_told_of_is_looked_at(tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "group" / "a"
    tool.mkdir(parents=True)
    code = tool / "handler.py"
    code.write_text("one")
    file = tmp_path / "config.toml"
    paths = f"[handlers]\npaths = ['{tmp_path / 'tools'}']\n"
    file.write_text(results(1, paths))
    async with living(file, mode="events") as place:
        await watching(place)
        for number in (2, 3):  # the first look after listening is at everything
            file.write_text(results(number, paths))
            await place.live.in_force(number)
        code.write_text("two")
        assert (await place.live.next_receipt()).trigger == "source"
        (tmp_path / "tools" / "new" / "b").mkdir(parents=True)
        assert (await place.live.next_receipt()).trigger == "source"
    of_key, of_code, of_folder = place.builder.touched[-3:]
    assert (of_key, of_code) == (set(), {str(code)})
    assert of_folder is not None
    assert str(tmp_path / "tools" / "new") in of_folder


@pytest.mark.parametrize("mode", ["events", "polling"])
async def test_what_is_saved_between_the_start_and_the_watching_is_not_lost(
    mode: Mode, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(results(1))
    read = ConfigReader(file, {})
    live = Live(read, NoteTaker())
    await live.start(read())
    file.write_text(results(2))
    async with Watcher(live, file, mode, 0.05).running():
        await live.in_force(2)
