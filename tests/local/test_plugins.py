"""Installed packages that are named bring tools along; none of their code runs to find them."""

import sys
from pathlib import Path

import pytest

from session_runtime.errors import ConfigError
from session_runtime.local.code import ImportPath
from session_runtime.local.scan import Scan
from tests.support import install, manifest, scan_of, write_handler

EXPLODES = "raise AssertionError('imported')\n"
PRICE = {"shop.price": "acme_shop.price.handler:execute"}
FILES = {
    "acme_shop/__init__.py": EXPLODES,
    "acme_shop/price/__init__.py": EXPLODES,
    "acme_shop/price/handler.py": EXPLODES,
    "acme_shop/price/config.json": manifest("price", read_only=True),
}


def names(found: Scan) -> list[str]:
    return [tool.spec.name for tool in found.tools]


def problems(*plugins: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        scan_of(plugins=plugins)
    assert {problem.key for problem in caught.value.problems} == {"handlers.plugins"}
    return [problem.message for problem in caught.value.problems]


@pytest.mark.requirement("REG-6")
def test_a_named_package_brings_its_tools_and_is_not_imported(site: Path) -> None:
    install(site, "acme-shop", "1.2", PRICE, FILES)
    [tool] = scan_of(plugins=("acme-shop",)).tools
    spec = tool.spec
    assert tool.code == ImportPath("acme_shop.price.handler", "execute")
    assert (spec.name, spec.origin, spec.annotations.read_only) == ("shop.price", "handler", True)
    assert spec.native_name == "acme_shop.price.handler:execute"
    assert spec.place == "acme-shop 1.2 (shop.price = acme_shop.price.handler:execute)"
    assert not [name for name in sys.modules if name.startswith("acme_shop")]


@pytest.mark.requirement("REG-6")
def test_a_package_that_is_not_named_brings_nothing(site: Path) -> None:
    install(site, "acme-shop", "1.2", PRICE, FILES)
    other = {"b/__init__.py": EXPLODES, "b/config.json": manifest("b")}
    install(site, "other", "1", {"b": "b:execute"}, other)
    assert names(scan_of(plugins=("other",))) == ["b"]
    assert names(scan_of()) == []


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize("name", ["Acme_Shop", "acme.shop", "ACME-SHOP"])
def test_a_package_may_be_spelled_as_pip_spells_it(site: Path, name: str) -> None:
    install(site, "acme-shop", "1.2", PRICE, FILES)
    assert names(scan_of(plugins=(name,))) == ["shop.price"]


@pytest.mark.requirement("REG-6")
@pytest.mark.parametrize(
    ("value", "config"),
    [
        ("acme:execute", "acme/config.json"),
        ("acme.price:execute", "acme/config.json"),
        ("acme.inner:execute", "acme/inner/config.json"),
        ("space.price:execute", "space/config.json"),
        ("space.inner.price:execute", "space/inner/config.json"),
    ],
)
def test_the_config_json_lies_in_the_folder_of_the_module(
    site: Path, value: str, config: str
) -> None:
    modules = ("acme/__init__", "acme/price", "acme/inner/__init__", "space/price")
    files = dict.fromkeys((f"{each}.py" for each in (*modules, "space/inner/price")), EXPLODES)
    install(site, "acme", "1", {"price": value}, {**files, config: manifest("price")})
    assert names(scan_of(plugins=("acme",))) == ["price"]


@pytest.mark.requirement("REG-6")
def test_a_package_that_is_not_there_is_a_fault_of_the_configuration(site: Path) -> None:
    install(site, "acme-shop", "1.2", PRICE, FILES)
    install(site, "plain", "1", {}, {})
    assert problems("acme-shp", "nowhere", "plain") == [
        "no package 'acme-shp' is installed; did you mean 'acme-shop'?",
        "no package 'nowhere' is installed; install it where the daemon runs",
        "'plain' has no entry points of the group session_runtime.handlers",
    ]


@pytest.mark.requirement("REG-6")
def test_a_tool_of_a_package_that_cannot_be_used_costs_no_other(site: Path) -> None:
    points = {
        **PRICE,
        "a b": "acme_shop.price.handler:execute",
        "agents.x": "acme_shop.price.handler:execute",
        "bad": "acme_shop.price.handler",
        "extra": "acme_shop.price.handler:execute [x]",
        "gone": "acme_shop.gone:execute",
        "lost": "nowhere.at_all:execute",
        "alone": "alone:execute",
        "bare": "acme_shop.bare.tool:execute",
        "broken": "acme_shop.broken:execute",
        "renamed": "acme_shop.price:execute",
    }
    files = {
        **FILES,
        "alone.py": EXPLODES,
        "acme_shop/bare/tool.py": EXPLODES,
        "acme_shop/broken/__init__.py": EXPLODES,
        "acme_shop/broken/config.json": "{",
    }
    install(site, "acme-shop", "1.2", points, files)
    found = scan_of(plugins=("acme-shop",))
    reasons = {each.name: each.reason for each in found.quarantined}
    form = 'its entry point must name a function as "package.module:function"'
    nowhere = "there is no module {} in a package, beside which config.json could be"
    assert names(found) == ["shop.price"]
    assert reasons == {
        "a b": "its name cannot be used: write 'a_b'",
        "agents.x": "its name cannot be used: agents is kept for sub-agents",
        "alone": nowhere.format("alone"),
        "bad": form,
        "bare": f"there is no {site}/acme_shop/bare/config.json, which its package has to bring along",
        "broken": "config.json: not valid JSON: EOF while parsing an object at line 1 column 1",
        "extra": form,
        "gone": nowhere.format("acme_shop.gone"),
        "lost": nowhere.format("nowhere.at_all"),
        "renamed": "function.name is 'price' but it is registered as 'renamed': rename one",
    }


@pytest.mark.requirement("REG-6")
def test_a_package_without_a_usable_tool_is_a_fault_of_the_configuration(site: Path) -> None:
    install(site, "acme-shop", "1.2", PRICE, {**FILES, "acme_shop/price/config.json": "{"})
    [told] = problems("acme-shop")
    assert told == (
        "acme-shop holds no usable tool: shop.price: config.json: not valid JSON: EOF while parsing an object"
        " at line 1 column 1"
    )
    assert scan_of(plugins=("acme-shop",), disabled=("shop.*",)).quarantined == ()


@pytest.mark.requirement("REG-6")
def test_a_package_that_is_named_twice_is_told_however_it_is_spelled(site: Path) -> None:
    install(site, "acme-shop", "1.2", PRICE, FILES)
    assert problems("acme-shop", "Acme_Shop") == [
        "item 2 is the same package as item 1: remove one of them"
    ]


@pytest.mark.requirement("REG-6")
def test_packages_and_folders_follow_the_same_rules_about_names(site: Path, tmp_path: Path) -> None:
    install(site, "acme-shop", "1.2", PRICE, FILES)
    write_handler(tmp_path / "bundled", "shop.price")
    replaced = scan_of(bundled=tmp_path / "bundled", plugins=("acme-shop",))
    assert [tool.spec.origin for tool in replaced.tools] == ["handler"]
    assert len(replaced.warnings) == 1
    folder = write_handler(tmp_path / "tools", "shop.price")
    write_handler(tmp_path / "tools", "other")
    install(site, "acme-more", "1", {**PRICE, "more": PRICE["shop.price"]}, {})
    with pytest.raises(ConfigError) as caught:
        scan_of(tmp_path / "tools", plugins=("acme-shop", "acme-more"))
    [problem, _] = caught.value.problems
    assert f"the name stands for {folder} and acme-shop 1.2 (" in problem.message


@pytest.mark.requirement("REG-6")
def test_the_digest_of_a_tool_covers_the_version_of_its_package(site: Path) -> None:
    install(site, "acme-shop", "1.2", PRICE, FILES)
    before = scan_of(plugins=("acme-shop",))
    (site / "acme_shop-1.2.dist-info" / "METADATA").write_text("Name: acme-shop\nVersion: 1.3\n")
    after = scan_of(plugins=("acme-shop",))
    assert before.tools[0].spec.digest != after.tools[0].spec.digest
    assert before.digest != after.digest
