"""Links that are swapped and parts of paths that come back are noticed by events alone."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from session_runtime.config.fingerprint import Watched
from session_runtime.config.look import see
from tests.config.living import Place, living, results, watching
from tests.config.test_watch import in_place

pytestmark = pytest.mark.requirement("REL-5")


def swap(link: Path, target: str) -> None:
    """Put a link in the place of another one in one step, as Kubernetes and releases do."""
    new = link.with_name("..data_tmp")
    new.symlink_to(target)
    new.rename(link)


def tool(folder: Path) -> None:
    (folder / "group" / "a").mkdir(parents=True)
    (folder / "group" / "a" / "handler.py").write_text(f"# {folder}")


@asynccontextmanager
async def by_events(file: Path, more: str) -> AsyncIterator[Place]:
    """Watched so that from now on only events tell of anything."""
    in_place(file, results(1, more))
    async with living(file, mode="events", recheck_s=600.0) as place:
        await watching(place)
        for number in (2, 3):  # the first look after listening is at everything
            in_place(file, results(number, more))
            await place.live.in_force(number)
        yield place


@pytest.mark.requirement("REL-1")
async def test_a_release_is_put_into_force_with_its_own_tools(tmp_path: Path) -> None:
    for release in (1, 2):
        tool(tmp_path / f"release{release}" / "h")
    swap(tmp_path / "current", "release1")
    file = tmp_path / "current" / "config.toml"
    more = "[handlers]\npaths = ['h']\n"
    (tmp_path / "release2" / "config.toml").write_text(results(9, more))
    async with by_events(file, more) as place:
        swap(tmp_path / "current", "release2")
        await place.live.in_force(9)
        assert place.builder.touched[-1] is None
        (tmp_path / "release2" / "config.toml").write_text(results(10, more))
        await place.live.in_force(10)


async def test_a_folder_of_tools_behind_a_swapped_link_is_read_anew(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    for version in ("..v1", "..v2"):
        tool(tools / version)
    swap(tools / "..data", "..v1")
    (tools / "group").symlink_to("..data/group")
    async with by_events(tmp_path / "config.toml", "[handlers]\npaths = ['tools']\n") as place:
        swap(tools / "..data", "..v2")
        receipt = await place.live.next_receipt()
        touched = place.builder.touched[-1]
    assert receipt.trigger == "source"
    assert touched is None or str(tools) in touched


async def test_a_folder_of_tools_that_was_gone_is_heard_of_again(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tool(tools)
    async with by_events(tmp_path / "config.toml", "[handlers]\npaths = ['tools']\n") as place:
        tools.rename(tmp_path / "away")
        assert (await place.live.next_receipt()).trigger == "source"
        (tmp_path / "away").rename(tools)
        assert (await place.live.next_receipt()).trigger == "source"
        await watching(place)
        (tools / "group" / "a" / "handler.py").write_text("edited")
        assert (await place.live.next_receipt()).trigger == "source"


async def test_a_prompt_whose_folder_was_gone_is_read_again(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts"
    prompts.mkdir()
    (prompts / "p.md").write_text("old")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "p.md").write_text("new")
    async with by_events(
        tmp_path / "config.toml", "[ask]\nprompt_file = 'prompts/p.md'\n"
    ) as place:
        prompts.rename(tmp_path / "away")
        await place.live.until("rejected")
        (tmp_path / "new").rename(prompts)
        await place.live.until("applied")
        assert place.live.snapshot.system_prompt == "new"


@pytest.mark.requirement("CFG-4b")
async def test_a_secret_behind_a_link_that_was_gone_is_read_again(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets"
    for version in ("..v1", "..v2"):
        (secrets / version).mkdir(parents=True)
        (secrets / version / "key").write_text(version)
    swap(secrets / "..data", "..v1")
    (secrets / "key").symlink_to("..data/key")
    more = (
        f'[runtime]\nsecret_sources = ["file:{secrets}"]\n[models.m]\nmodel = "x"\n'
        f'base_url = "http://127.0.0.1:9/v1"\napi_key = "file:{secrets / "key"}"\n'
    )
    async with by_events(tmp_path / "config.toml", more) as place:
        (secrets / "..data").unlink()
        await place.live.until("rejected")
        swap(secrets / "..data", "..v2")
        await place.live.until("applied")
        key = place.live.snapshot.settings.models["m"].api_key
    assert key is not None
    assert key.get_secret_value() == "..v2"


async def test_a_configuration_below_a_link_that_was_gone_is_followed_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "release").mkdir()
    swap(tmp_path / "current", "release")
    async with by_events(tmp_path / "current" / "config.toml", "") as place:
        (tmp_path / "current").unlink()
        await place.live.until("rejected")
        (tmp_path / "release" / "config.toml").write_text(results(8))
        swap(tmp_path / "current", "release")
        await place.live.in_force(8)
        await watching(place)
        (tmp_path / "release" / "config.toml").write_text(results(9))
        await place.live.in_force(9)


def test_around_folders_of_tools_only_what_may_be_read_is_asked_for_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system tells nothing of a folder that may only be passed, and fails for all of them."""
    tools, file = tmp_path / "home" / "tools", tmp_path / "config.toml"
    tools.mkdir(parents=True)
    watched = Watched(file, trees=(tools,))
    assert [each for each, *_ in see(watched, None).armed.folders] == [tmp_path, tools.parent]
    monkeypatch.setattr(os, "access", lambda path, mode: path != tools.parent)
    assert [each for each, *_ in see(watched, None).armed.folders] == [tmp_path]
