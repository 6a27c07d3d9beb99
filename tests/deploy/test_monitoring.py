"""The board and the alerts that are in the docs read numbers that there are, by labels that they have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.files import FOLDER, ROOT
from tests.support import opened

pytestmark = pytest.mark.requirement("OPS-1b")

BOARD = json.loads((FOLDER / "grafana-board.json").read_text("utf-8"))
ALERTS = yaml.safe_load((FOLDER / "prometheus-alerts.yml").read_text("utf-8"))
PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
NAME = re.compile(r"session_runtime_\w+")
SELECTED = re.compile(r"(session_runtime_\w+)\{([^}]*)\}")
GROUPED = re.compile(r"by \(([^)]*)\) \(rate\((session_runtime_\w+)")
OF_PROMETHEUS = {"instance", "job", "le"}


def board_expressions() -> list[str]:
    targets = [target["expr"] for panel in BOARD["panels"] for target in panel.get("targets", ())]
    return [*targets, *(each["expr"] for each in BOARD["annotations"]["list"])]


def rules() -> list[dict[str, Any]]:
    [group] = ALERTS["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def expressions() -> list[str]:
    return [*board_expressions(), *(rule["expr"] for rule in rules())]


async def exposed(folder: Path) -> tuple[set[str], dict[str, set[str]]]:
    """Families, and each sample's name with its labels."""
    async with opened(folder, '[mcp.servers.a]\ncommand = "false"\n') as runtime:
        text = runtime.metrics()
    samples: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(session_runtime_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        samples.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE)), samples


async def test_every_number_that_is_read_exists(tmp_path: Path) -> None:
    _, samples = await exposed(tmp_path)
    wanted = {name for text in expressions() for name in NAME.findall(text)}
    assert len(wanted) > 30
    assert sorted(wanted - samples.keys()) == []


async def test_every_label_that_is_read_exists(tmp_path: Path) -> None:
    _, samples = await exposed(tmp_path)
    labels = {
        (name, label)
        for text in expressions()
        for name, selected in SELECTED.findall(text)
        for label in re.findall(r"(\w+)[=!]", selected)
    } | {
        (name, label.strip())
        for text in expressions()
        for grouped, name in GROUPED.findall(text)
        for label in grouped.split(",")
    }
    wrong = [
        (name, label)
        for name, label in labels
        if label not in OF_PROMETHEUS and label not in samples[name]
    ]
    assert ("session_runtime_asks_total", "outcome") in labels
    assert wrong == []


async def test_every_value_of_a_label_that_is_read_exists(tmp_path: Path) -> None:
    async with opened(tmp_path, '[mcp.servers.a]\ncommand = "false"\n') as runtime:
        told = set(re.findall(r'(\w+="[^"]*")', runtime.metrics()))
    wanted = {
        f'{label}="{value}"'
        for text in expressions()
        for _, selected in SELECTED.findall(text)
        for label, values in re.findall(r'(\w+)(?:=~|!=|=)"([^"$]+)"', selected)
        for value in values.split("|")
    }
    assert {'outcome="failed"', 'code="busy.queue"', 'found="hit"'} <= wanted
    assert sorted(wanted - told) == []


def test_what_grafana_fills_in_is_defined_on_the_board() -> None:
    of_grafana = {"__rate_interval", "__interval"}
    defined = {each["name"] for each in BOARD["templating"]["list"]} | of_grafana
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(BOARD)))
    assert used - defined == {"__all"}  # the value that stands for all of them


def test_every_query_of_the_board_has_a_source_a_letter_of_its_own_and_a_legend() -> None:
    assert type(BOARD["schemaVersion"]) is int
    queried = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
    for panel in queried:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters) > 0
        assert all(target["legendFormat"] for target in panel["targets"])
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]


def test_the_panels_of_the_board_fill_it_without_covering_each_other() -> None:
    fields: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        own = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not fields & own, panel["title"]
        assert at["x"] + at["w"] <= 24
        fields |= own
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["expr"].count("(") == rule["expr"].count(")")
    assert len({rule["alert"] for rule in rules()}) == len(rules())


async def test_the_page_lists_every_number_and_no_other(tmp_path: Path) -> None:
    families, _ = await exposed(tmp_path)
    table = [line for line in PAGE.splitlines() if line.startswith("| `session_runtime_")]
    listed = {name for line in table for name in NAME.findall(line.split("|")[1])}
    elsewhere = set(NAME.findall(PAGE)) - listed
    assert sorted(families - listed - elsewhere) == []
    assert sorted(listed - families) == []
