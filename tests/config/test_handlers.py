"""The keys of [handlers]: functions that are registered one by one, and installed packages."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.config.explain import explain, show
from session_runtime.config.handlers import Deprecation, import_fault
from session_runtime.local.code import ImportPath
from tests.config.conftest import Reader

FULL = """\
[handlers.entries."shop.price"]
import = "acme.shop:price"
description = "Tells a price."
[handlers.entries."shop.price".parameters]
type = "object"
required = ["article"]
[handlers.entries."shop.price".parameters.properties.article]
type = "string"
[handlers.entries."shop.price".runtime]
read_only = true
requires = ["clerk"]
deprecated.replacement = "shop.offer"
"""
KEY = 'handlers.entries."shop.price"'


@pytest.mark.requirement("REG-6")
def test_an_entry_says_all_that_a_config_json_says(read: Reader) -> None:
    entry = read(FULL).settings.handlers.entries["shop.price"]
    assert (entry.import_, entry.schema_) == ("acme.shop:price", None)
    assert entry.description == "Tells a price."
    assert entry.parameters == {
        "type": "object",
        "required": ("article",),
        "properties": {"article": {"type": "string"}},
    }
    assert entry.runtime.read_only
    assert entry.runtime.requires == ("clerk",)
    assert entry.runtime.deprecated == Deprecation(replacement="shop.offer")


@pytest.mark.requirement("REG-6")
def test_the_file_of_an_entry_counts_from_the_folder_of_the_configuration(read: Reader) -> None:
    snapshot = read('[handlers.entries.a]\nimport = "a:b"\nschema = "a.json"\n')
    assert snapshot.settings.handlers.entries["a"].schema_ == read.folder / "a.json"


@pytest.mark.requirement("CFG-3")
def test_an_entry_is_shown_and_explained_as_it_is_written(read: Reader) -> None:
    snapshot = read(FULL)
    shown = {each.key: each.value for each in show(snapshot)}
    assert shown[f"{KEY}.import"] == "acme.shop:price"
    assert shown[f"{KEY}.parameters.properties"] == {"article": {"type": "string"}}
    assert shown[f"{KEY}.runtime.deprecated.replacement"] == "shop.offer"
    assert explain(snapshot, f"{KEY}.import").source == "config.toml:2"


@pytest.mark.requirement("CFG-2")
def test_variables_give_whole_tables_and_single_keys_of_entries(read: Reader) -> None:
    prefix = "SESSION_RUNTIME__HANDLERS__"
    env = {
        f"{prefix}PLUGINS": "acme-shop, other",
        f"{prefix}ENTRIES": json.dumps({"a.b": {"import": "a:b", "description": "Does b."}}),
        f"{prefix}ENTRIES__SHOP_PRICE__IMPORT": "acme.shop:newer",
        f"{prefix}ENTRIES__SHOP_PRICE__PARAMETERS": '{"additionalProperties": false}',
        f"{prefix}ENTRIES__SHOP_PRICE__RUNTIME__TIMEOUT_S": "5",
    }
    handlers = read(FULL, env=env).settings.handlers
    price = handlers.entries["shop.price"]
    assert handlers.plugins == ("acme-shop", "other")
    assert handlers.entries["a.b"].import_ == "a:b"
    assert (price.import_, price.runtime.timeout_s) == ("acme.shop:newer", 5.0)
    assert price.parameters["additionalProperties"] is False
    assert price.parameters["type"] == "object"


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('description = "D."', 'config.toml:1: K.import: is missing: name the function as "package'),
        ('import = "a"\ndescription = "D."', 'config.toml:2: K.import: must name a function as "pa'),
        ('import = "a:b"', "config.toml:1: K: needs either schema (a file) or description"),
        (
            'import = "a:b"\nschema = "s"\ndescription = "D."',
            "config.toml:1: K: has a schema, whose file says everything: remove it, or remove desc",
        ),
        (
            'import = "a:b"\nschema = "s"\nruntime.read_only = true',
            "config.toml:1: K: has a schema, whose file says everything: remove it, or remove desc",
        ),
        ('imprt = "a:b"', 'config.toml:2: K.imprt: unknown key (given: "a:b"); did you mean import?'),
        (
            'import = "a:b"\ndescription = "D."\nruntime.timout_s = 5',
            "config.toml:4: K.runtime.timout_s: unknown key (given: 5); did you mean timeout_s?",
        ),
        (
            'import = "a:b"\ndescription = "D."\nruntime = {read_only = true, destructive = true}',
            "config.toml:4: K.runtime: a tool cannot be both destructive and read_only",
        ),
        (
            'import = "a:b"\ndescription = "D."\nparameters.when = 1979-05-27',
            "config.toml:4: K.parameters.when: must be what JSON can say",
        ),
    ],
)  # fmt: skip
def test_a_fault_of_an_entry_is_told_with_its_line(read: Reader, lines: str, told: str) -> None:
    problems = read.problems(f"[{KEY}]\n{lines}\n")
    assert any(each.startswith(told.replace("K", KEY, 1)) for each in problems), problems


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize("text", ["a:b", "a.b.c:d", "包:函数", "a._b:C.method", "__main__:f"])
def test_a_function_is_named_by_module_and_name(text: str) -> None:
    assert import_fault(text) is None


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    "text",
    ["", "a", "a:", ":b", "a.:b", ".a:b", "a:b:c", "a b:c", "a:b()", "a-b:c", "class:b", "a:b [x]"],
)
def test_what_names_no_function_is_refused(text: str) -> None:
    assert import_fault(text) == 'must name a function as "package.module:function"'


@pytest.mark.requirement("REG-6")
@given(st.text("a1._:é \n", max_size=8))
def test_what_is_found_without_fault_can_be_split_and_written_again(text: str) -> None:
    if import_fault(text) is None:
        path = ImportPath.parse(text)
        assert str(path) == text
        assert path.module
        assert path.function


@pytest.mark.requirement("REG-6")
def test_a_fault_of_an_entry_names_what_a_variable_gives(read: Reader) -> None:
    [told] = read.problems(
        '[handlers.entries.a]\nimport = "a.b:c"\ndescription = "d"\n',
        env={"SESSION_RUNTIME__HANDLERS__ENTRIES__A__SCHEMA": "a.json"},
    )
    assert told.startswith("config.toml:1: handlers.entries.a: has a schema, whose file says ")
    assert told.endswith(
        "runtime (schema is given by env SESSION_RUNTIME__HANDLERS__ENTRIES__A__SCHEMA)"
    )
