"""The catalogue of a generation answers for tools and sources, and leaves bad tools out alone."""

import pytest

from session_runtime.errors import ConfigError
from session_runtime.registry.catalog import Catalog, Quarantined, build_catalog
from session_runtime.registry.spec import Annotations
from tests.registry.tools import FunctionSource, nothing, spec


def source(source_id: str, *names: str) -> FunctionSource:
    return FunctionSource(source_id, {spec(name): nothing for name in names})


@pytest.fixture
async def catalog() -> Catalog:
    dangerous = spec("files.delete", annotations=Annotations(destructive=True))
    files = FunctionSource("files", {spec("files.read"): nothing, dangerous: nothing})
    return await build_catalog([source("chat", "send", "end"), files])


@pytest.mark.requirement("REG-5")
async def test_the_catalogue_knows_sources_and_tools(catalog: Catalog) -> None:
    assert [each.name for each in catalog.specs] == ["end", "files.delete", "files.read", "send"]
    assert catalog.servers() == ("chat", "files")
    assert [each.name for each in catalog.tools("files")] == ["files.delete", "files.read"]
    assert catalog.status("chat") == {"id": "chat", "tools": 2}
    assert catalog.lookup("send").source_id == "chat"
    assert catalog.position("files.read") == 2
    assert (catalog.destructive("files.delete"), catalog.destructive("send")) == (True, False)


@pytest.mark.requirement("REG-5")
async def test_a_name_without_a_tool_is_a_key_error(catalog: Catalog) -> None:
    with pytest.raises(KeyError):
        catalog.lookup("Send")


@pytest.mark.requirement("REG-4")
async def test_one_bad_tool_costs_one_tool() -> None:
    names = [f"t{number}" for number in range(311)]
    tools = {spec(name): nothing for name in names}
    broken = FunctionSource("far", {**tools, spec("bad", {"type": "string"}): nothing})
    catalog = await build_catalog([broken], [Quarantined("older", "a/b", "no handler.py")])
    assert [each.name for each in catalog.specs] == sorted(names)
    assert catalog.quarantined == (
        Quarantined("older", "a/b", "no handler.py"),
        Quarantined("bad", "far", 'parameters: the root must have "type": "object", got "string"'),
    )


@pytest.mark.requirement("REG-4")
async def test_a_name_of_two_sources_is_refused_and_both_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        await build_catalog([source("a", "run", "x"), source("b", "run", "x")])
    assert [str(problem) for problem in caught.value.problems] == [
        f"tool {name!r} of 'a' also exists in 'b': rename one of them or list it under [handlers] "
        "disabled"
        for name in ("run", "x")
    ]


async def test_checks_that_exist_already_are_taken_over(catalog: Catalog) -> None:
    compiled = {spec.digest: catalog.checks[spec.name] for spec in catalog.specs}
    edited = FunctionSource("chat", {spec("send"): nothing, spec("end", digest="new"): nothing})
    after = await build_catalog([edited], compiled=compiled)
    assert after.checks["send"] is catalog.checks["send"]
    assert after.checks["end"] is not catalog.checks["end"]
