"""Sharing, pinning and retiring of generations."""

import asyncio
from pathlib import Path

import pytest

from session_runtime.app.runtime import bundled_handlers, read_config
from session_runtime.config.live import check, put_in_force
from session_runtime.errors import ConfigError
from session_runtime.generation import GenerationBuilder, UsagePool
from session_runtime.registry.registry import Registry
from tests.support import write_config, write_handler


class Door:
    """A resource that remembers whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    async def aclose(self) -> None:
        self.closed = True


async def open_door() -> Door:
    return Door()


@pytest.mark.requirement("REL-1a")
async def test_a_shared_resource_is_opened_once_and_closed_by_its_last_holder() -> None:
    pool: UsagePool[Door] = UsagePool()
    first, second = await pool.acquire("a", open_door), await pool.acquire("a", open_door)
    other = await pool.acquire("b", open_door)
    assert first is second
    await pool.release("a")
    assert not first.closed
    await pool.release("a")
    assert (first.closed, other.closed) == (True, False)
    assert await pool.acquire("a", open_door) is not first


@pytest.mark.requirement("REL-1a")
async def test_opening_that_fails_leaves_nothing_in_the_pool() -> None:
    pool: UsagePool[Door] = UsagePool()

    async def failing() -> Door:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await pool.acquire("a", failing)
    assert not (await pool.acquire("a", open_door)).closed


def builder() -> GenerationBuilder:
    return GenerationBuilder(Registry(), bundled_handlers())


@pytest.mark.requirement("REL-1a")
async def test_a_running_ask_keeps_its_generation_and_the_last_one_retires_it(
    tmp_path: Path,
) -> None:
    building = builder()
    config = write_config(tmp_path, "")
    await put_in_force(read_config(config, {}), building)
    with building.generations.pin() as old:
        config.write_text("[skills]\ntool_search_enabled = true\n")
        await put_in_force(read_config(config, {}), building)
        with building.generations.pin() as new:
            assert (old.number, new.number) == (1, 2)
            assert not old.settings.skills.tool_search_enabled
            assert new.settings.skills.tool_search_enabled
            report = building.generations.report()
            assert [(g["generation"], g["asks"], g["in_force"]) for g in report] == [
                (2, 1, True),
                (1, 1, False),
            ]
    assert [g["generation"] for g in building.generations.report()] == [2]
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_a_generation_that_is_only_checked_is_never_in_force(tmp_path: Path) -> None:
    building = builder()
    config = write_config(tmp_path, "")
    await put_in_force(read_config(config, {}), building)
    await check(read_config(config, {"TOOL_SEARCH_ENABLED": "true"}), building)
    assert building.generations.current.number == 1
    assert building.generations.next_number == 2
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_a_preparation_that_fails_changes_nothing_and_releases_what_it_opened(
    tmp_path: Path,
) -> None:
    building = builder()
    await put_in_force(read_config(write_config(tmp_path, ""), {}), building)
    broken = write_config(tmp_path, '[handlers]\npaths = ["missing"]\n')
    with pytest.raises(ConfigError, match="missing"):
        await check(read_config(broken, {}), building)
    script = write_config(tmp_path, '[models.m]\nwire = "scripted"\nscript = "nowhere.json"\n')
    with pytest.raises(ConfigError, match=r"nowhere\.json"):
        await check(read_config(script, {}), building)
    assert building.generations.current.number == 1
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_the_digest_names_configuration_and_tools_and_no_secret(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "a")
    text = '[handlers]\npaths = ["tools"]\n[models.m]\nwire = "offline"\napi_key = "{}"\n'
    digests = []
    for key in ("one", "two"):
        building = builder()
        await put_in_force(read_config(write_config(tmp_path, text.format(key)), {}), building)
        digests.append(building.generations.current.digest)
        await building.generations.aclose()
    write_handler(tmp_path / "tools", "b")
    building = builder()
    await put_in_force(read_config(tmp_path / "config.toml", {}), building)
    assert digests[0] == digests[1] != building.generations.current.digest
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_closing_waits_for_what_retires(tmp_path: Path) -> None:
    building = builder()
    await put_in_force(read_config(write_config(tmp_path, ""), {}), building)
    await building.generations.aclose()
    assert building.generations.report() == []
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not any(name.startswith("close generation") for name in names)
