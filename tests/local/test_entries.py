"""Functions that the configuration names become tools, as folders do, without being imported."""

import sys
from pathlib import Path

import pytest

from session_runtime.config.handlers import Deprecation, HandlerEntry, ToolOptions
from session_runtime.errors import ConfigError, Problem
from session_runtime.local.code import ImportPath
from session_runtime.local.scan import Scan
from session_runtime.registry.catalog import Quarantined
from tests.support import manifest, scan_of, write_handler

SCHEMA = {"type": "object", "properties": {"article": {"type": "string"}}}
PLACE = 'handlers.entries."shop.price" (acme.shop:price)'


def entry(imported: str = "acme.shop:price", **keys: object) -> HandlerEntry:
    """An entry that describes itself, unless ``keys`` name a file."""
    described = {} if "schema" in keys else {"description": "Tells a price."}
    return HandlerEntry.model_validate({"import": imported, **described, **keys})


def registered(**entries: HandlerEntry) -> Scan:
    return scan_of(entries={name.replace("__", "."): given for name, given in entries.items()})


def problems(**entries: HandlerEntry) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        registered(**entries)
    return caught.value.problems


@pytest.mark.requirement("REG-6")
def test_an_entry_that_describes_itself_is_a_tool() -> None:
    runtime = ToolOptions(
        requires=("clerk",), aliases=("cost",), deprecated=Deprecation(replacement="shop.offer")
    )
    [tool] = registered(shop__price=entry(parameters=SCHEMA, runtime=runtime)).tools
    spec = tool.spec
    assert tool.code == ImportPath("acme.shop", "price")
    assert (spec.name, spec.native_name, spec.origin) == (
        "shop.price",
        "acme.shop:price",
        "handler",
    )
    assert (spec.place, spec.description, spec.parameters) == (PLACE, "Tells a price.", SCHEMA)
    assert (spec.requires, spec.aliases) == (frozenset({"clerk"}), ("cost",))
    assert spec.deprecated is not None
    assert spec.deprecated.replacement == "shop.offer"
    assert "acme" not in sys.modules


@pytest.mark.requirement("REG-6")
def test_what_an_entry_says_about_its_parameters_is_kept_to_the_letter() -> None:
    address = {"type": "string", "default": "https://a.example/?token=abc", "examples": ["x", 1.5]}
    parameters = {"type": "object", "properties": {"url": address}}
    [tool] = registered(a=entry(parameters=parameters)).tools
    assert tool.spec.parameters == parameters


@pytest.mark.requirement("REG-6")
def test_an_entry_may_be_described_by_a_file(tmp_path: Path) -> None:
    file = tmp_path / "price.json"
    file.write_text(manifest("price", timeout_s=5))
    [tool] = registered(shop__price=entry(schema=file)).tools
    assert (tool.spec.description, tool.spec.timeout_s) == ("Does price.", 5)


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a b", "cannot be a name: write 'a_b'"),
        ("a.b.c", "cannot be a name: write tool or group.tool"),
        ("a/b", "cannot be a name: write tool or group.tool"),
        ("a.", "cannot be a name: write tool or group.tool"),
        ("...", "cannot be a name: it holds nothing that can be read"),
        ("a" * 129, "cannot be a name: it has 129 characters, at most 128 are allowed"),
        ("a._b", "cannot be a name: no part of it may begin with _"),
        ("agents.writer", "cannot be a name: agents is kept for sub-agents"),
    ],
)
def test_a_name_that_no_tool_can_have_is_a_fault_of_the_configuration(name: str, told: str) -> None:
    [problem] = problems(**{name: entry()})
    assert problem.message == told
    assert problem.key.startswith("handlers.entries.")


@pytest.mark.requirement("REG-6")
def test_a_file_that_is_not_there_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    gone = tmp_path / "gone.json"
    assert problems(a=entry(schema=gone)) == (
        Problem(f"there is no file {gone}", "handlers.entries.a.schema"),
    )


@pytest.mark.requirement("REG-6")
def test_an_entry_that_cannot_be_used_costs_no_other_tool(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    (tmp_path / "folder.json").mkdir()
    found = registered(
        good=entry(),
        syntax=entry(schema=broken),
        folder=entry(schema=tmp_path / "folder.json"),
        text=entry(parameters={"type": "string"}),
        alias=entry(runtime=ToolOptions(aliases=("a b",))),
    )
    assert [tool.spec.name for tool in found.tools] == ["good"]
    assert {each.name: each.reason for each in found.quarantined} == {
        "alias": "the entry: runtime: 'a b' cannot be a name: write 'a_b'",
        "folder": "folder.json is not a regular file",
        "syntax": "broken.json: not valid JSON: EOF while parsing an object at line 1 column 1",
        "text": 'parameters: the root must have "type": "object", got "string"',
    }


@pytest.mark.requirement("REG-6")
def test_an_entry_and_a_folder_of_one_name_are_both_left_out(tmp_path: Path) -> None:
    write_handler(tmp_path, "other")
    folder = write_handler(tmp_path, "shop.price")
    found = scan_of(tmp_path, entries={"shop.price": entry()})
    reason = f"the name stands for {folder} and {PLACE}: rename or remove all but one"
    assert [tool.spec.name for tool in found.tools] == ["other"]
    assert found.quarantined == (
        Quarantined("shop.price", str(folder), reason),
        Quarantined("shop.price", PLACE, reason),
    )


@pytest.mark.requirement("REG-6")
def test_an_entry_replaces_a_bundled_tool_and_says_so(tmp_path: Path) -> None:
    write_handler(tmp_path, "shop.price")
    found = scan_of(bundled=tmp_path, entries={"shop.price": entry()})
    assert [tool.code for tool in found.tools] == [ImportPath("acme.shop", "price")]
    assert found.warnings == (f"tool 'shop.price' in {PLACE} replaces the bundled one",)


@pytest.mark.requirement("REG-6")
def test_entries_obey_the_lists_of_enabled_and_disabled_names() -> None:
    entries = {"shop.price": entry(), "shop.stock": entry(), "other": entry()}
    found = scan_of(entries=entries, enabled=("shop.*",), disabled=("*.stock",))
    assert [tool.spec.name for tool in found.tools] == ["shop.price"]


@pytest.mark.requirement("REG-6")
def test_the_digest_of_a_tool_covers_its_description_and_its_function() -> None:
    digests = {
        registered(a=each).tools[0].spec.digest
        for each in (
            entry(),
            entry("acme.shop:other"),
            entry(description="Tells another price."),
            entry(parameters=SCHEMA),
            entry(runtime=ToolOptions(timeout_s=1)),
        )
    }
    assert len(digests) == 5
    assert registered(a=entry()).digest == registered(a=entry()).digest
