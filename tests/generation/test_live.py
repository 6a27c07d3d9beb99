"""Sharing, pinning and retiring of generations."""

import asyncio
from pathlib import Path

import pytest

from session_runtime.app.reader import ConfigReader
from session_runtime.app.runtime import bundled_handlers
from session_runtime.errors import ConfigError
from session_runtime.generation import Generation, GenerationBuilder, UsagePool
from session_runtime.handler import HandlerContext
from session_runtime.local.source import LocalSource
from session_runtime.models.deferred import DeferredModel
from session_runtime.registry.registry import Registry
from tests.support import check, put_in_force, tool_folder, write_config, write_handler


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


@pytest.mark.requirement("REL-1a")
async def test_two_who_want_a_resource_at_once_share_one_opening() -> None:
    pool: UsagePool[Door] = UsagePool()
    opened: list[Door] = []

    async def slowly() -> Door:
        await asyncio.sleep(0)
        opened.append(Door())
        return opened[-1]

    first, second = await asyncio.gather(pool.acquire("a", slowly), pool.acquire("a", slowly))
    assert [first, second] == opened * 2
    await pool.release("a")
    assert not first.closed
    await pool.release("a")
    assert first.closed


@pytest.mark.requirement("REL-1a")
async def test_an_opening_that_fails_fails_for_all_who_wait_and_is_forgotten() -> None:
    pool: UsagePool[Door] = UsagePool()

    async def failing() -> Door:
        await asyncio.sleep(0)
        raise OSError("no")

    waiting = [pool.acquire("a", failing) for _ in range(3)]
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["no"] * 3
    assert not (await pool.acquire("a", open_door)).closed


@pytest.mark.requirement("REL-1a")
@pytest.mark.parametrize("others", [0, 1])
async def test_who_is_cancelled_while_waiting_holds_nothing(others: int) -> None:
    pool: UsagePool[Door] = UsagePool()
    door, opening, go_on = Door(), asyncio.Event(), asyncio.Event()

    async def slowly() -> Door:
        opening.set()
        await go_on.wait()
        return door

    cancelled, *staying = [
        asyncio.create_task(pool.acquire("a", slowly)) for _ in range(1 + others)
    ]
    await opening.wait()
    cancelled.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert await asyncio.gather(*staying) == [door] * others
    assert door.closed is (others == 0)


def builder() -> GenerationBuilder:
    return GenerationBuilder(Registry(), bundled_handlers())


@pytest.mark.requirement("REL-1a")
async def test_a_running_ask_keeps_its_generation_and_the_last_one_retires_it(
    tmp_path: Path,
) -> None:
    building = builder()
    config = write_config(tmp_path, "")
    await put_in_force(ConfigReader(config, {})(), building)
    with building.generations.pin() as old:
        config.write_text("[skills]\ntool_search_enabled = true\n")
        await put_in_force(ConfigReader(config, {})(), building)
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
    await put_in_force(ConfigReader(config, {})(), building)
    await check(ConfigReader(config, {"TOOL_SEARCH_ENABLED": "true"})(), building)
    assert building.generations.current.number == 1
    assert building.generations.next_number == 2
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_a_preparation_that_fails_changes_nothing_and_releases_what_it_opened(
    tmp_path: Path,
) -> None:
    building = builder()
    await put_in_force(ConfigReader(write_config(tmp_path, ""), {})(), building)
    broken = write_config(tmp_path, '[handlers]\npaths = ["missing"]\n')
    with pytest.raises(ConfigError, match="missing"):
        await check(ConfigReader(broken, {})(), building)
    script = write_config(tmp_path, '[models.m]\nwire = "scripted"\nscript = "nowhere.json"\n')
    with pytest.raises(ConfigError, match=r"nowhere\.json"):
        await check(ConfigReader(script, {})(), building)
    assert building.generations.current.number == 1
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_the_digest_names_configuration_and_tools_and_no_secret(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "a")
    text = '[handlers]\npaths = ["tools"]\n[models.m]\nwire = "offline"\napi_key = "{}"\n'
    digests = []
    for key in ("one", "two"):
        building = builder()
        await put_in_force(ConfigReader(write_config(tmp_path, text.format(key)), {})(), building)
        digests.append(building.generations.current.digest)
        await building.generations.aclose()
    write_handler(tmp_path / "tools", "b")
    building = builder()
    await put_in_force(ConfigReader(tmp_path / "config.toml", {})(), building)
    assert digests[0] == digests[1] != building.generations.current.digest
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_closing_waits_for_what_retires(tmp_path: Path) -> None:
    building = builder()
    await put_in_force(ConfigReader(write_config(tmp_path, ""), {})(), building)
    await building.generations.aclose()
    assert building.generations.report() == []
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not any(name.startswith("close generation") for name in names)


@pytest.mark.requirement("REL-1a")
async def test_two_preparations_at_once_get_numbers_of_their_own(tmp_path: Path) -> None:
    building = builder()
    snapshot = ConfigReader(write_config(tmp_path, ""), {})()
    first, second = await asyncio.gather(building.prepare(snapshot), building.prepare(snapshot))
    second.commit()
    assert building.generations.current.number == 1
    first.commit()
    assert building.generations.current.number == 2
    await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_a_resource_that_fails_to_close_is_logged_and_the_others_are_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[object] = []

    async def jammed(resource: object) -> None:
        tried.append(type(resource))
        raise OSError("jammed")

    for kind in (DeferredModel, LocalSource):
        monkeypatch.setattr(kind, "aclose", jammed)
    building = builder()
    config = write_config(tmp_path, '[models.m]\nwire = "offline"\n')
    await put_in_force(ConfigReader(config, {})(), building)
    await building.generations.aclose()
    assert tried == [DeferredModel, LocalSource]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert building.generations.report() == []


COUNTING = "calls = []\ndef execute(a, c):\n    calls.append(1)\n    return len(calls)\n"


async def count(generation: Generation, name: str) -> str:
    """Call a tool that counts its calls in a variable of its module."""
    catalog = generation.catalog
    result = await generation.invoker.invoke(catalog, catalog.lookup(name), {}, HandlerContext())
    return result.content


@pytest.mark.requirement("REL-1a")
async def test_a_tool_that_nobody_touched_keeps_its_module_and_its_state_across_generations(
    tmp_path: Path,
) -> None:
    for name in ("same", "edited"):
        write_handler(tmp_path / "tools", name, code=COUNTING)
    config, building = write_config(tmp_path, tool_folder(tmp_path)), builder()
    await put_in_force(ConfigReader(config, {})(), building)
    with building.generations.pin() as old:
        assert [await count(old, name) for name in ("same", "edited")] == ["1", "1"]
        (tmp_path / "tools" / "edited" / "handler.py").write_text(f"{COUNTING}\n")
        await check(ConfigReader(config, {})(), building)
        await put_in_force(ConfigReader(config, {})(), building)
        with building.generations.pin() as new:
            assert [await count(new, name) for name in ("same", "edited")] == ["2", "1"]
        assert [await count(old, name) for name in ("same", "edited")] == ["3", "2"]
    with building.generations.pin() as new:
        assert await count(new, "same") == "4"
    await building.generations.aclose()


async def test_a_builder_whose_generations_were_closed_can_prepare_another(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "same", code=COUNTING)
    config, building = write_config(tmp_path, tool_folder(tmp_path)), builder()
    for _ in range(2):
        await put_in_force(ConfigReader(config, {})(), building)
        assert await count(building.generations.current, "same") == "1"
        await building.generations.aclose()


@pytest.mark.requirement("REL-1a")
async def test_what_is_closed_is_closed_to_the_end_although_who_let_go_is_cancelled() -> None:
    closing, go_on, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow:
        async def aclose(self) -> None:
            closing.set()
            await go_on.wait()
            closed.set()

    async def open_slow() -> Slow:
        return Slow()

    pool: UsagePool[Slow] = UsagePool()
    await pool.acquire("a", open_slow)
    letting_go = asyncio.create_task(pool.release("a"))
    await closing.wait()
    letting_go.cancel()
    with pytest.raises(asyncio.CancelledError):
        await letting_go
    go_on.set()
    async with asyncio.timeout(20):
        await closed.wait()


@pytest.mark.requirement("REL-1a")
async def test_everything_that_a_generation_held_is_closed_although_who_let_go_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: asyncio.Queue[type] = asyncio.Queue()

    async def close(resource: object) -> None:
        await asyncio.sleep(0)
        tried.put_nowait(type(resource))

    for kind in (DeferredModel, LocalSource):
        monkeypatch.setattr(kind, "aclose", close)
    building = builder()
    config = write_config(tmp_path, '[models.m]\nwire = "offline"\n')
    prepared = await building.prepare(ConfigReader(config, {})())
    letting_go = asyncio.create_task(building.let_go(prepared.generation))
    await asyncio.sleep(0)  # it has begun
    letting_go.cancel()
    async with asyncio.timeout(20):
        assert {await tried.get(), await tried.get()} == {DeferredModel, LocalSource}


@pytest.mark.requirement("REL-1a")
async def test_whoever_waits_for_a_newer_generation_is_given_the_one_in_force(
    tmp_path: Path,
) -> None:
    snapshot = ConfigReader(write_config(tmp_path, ""), {})()
    builder = GenerationBuilder(Registry(), bundled_handlers())
    await put_in_force(snapshot, builder)
    generations = builder.generations
    waiting = asyncio.create_task(generations.newer_than(1))
    await asyncio.sleep(0)
    assert not waiting.done()
    await put_in_force(snapshot, builder)
    assert await waiting is generations.current
    assert (await generations.newer_than(1)).number == 2
    await generations.aclose()
