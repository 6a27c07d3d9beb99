"""What Prometheus's own tool says of the alerts, of the board's queries and of the numbers themselves."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import FOLDER, ROOT
from tests.deploy.test_monitoring import board_expressions, rules
from tests.support import opened

INSTALLED = ROOT / ".soak" / "prometheus" / "usr" / "bin"
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=INSTALLED)
ALERTS = FOLDER / "prometheus-alerts.yml"
EVALUATED = "90m"

pytestmark = [
    pytest.mark.soak,
    pytest.mark.requirement("OPS-1b"),
    pytest.mark.skipif(PROMTOOL is None, reason="make soak did not install promtool"),
]


def promtool(*arguments: str | Path, given: str = "") -> str:
    """What the tool prints; it has to be content."""
    done = subprocess.run(
        [str(PROMTOOL), *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_alerts_are_rules_that_prometheus_reads() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", "--lint-fatal", ALERTS)


def test_the_queries_of_the_board_are_such_that_prometheus_reads(tmp_path: Path) -> None:
    wanted = [_filled_in(each) for each in board_expressions()]
    read = [{"record": f"board:{at}", "expr": each} for at, each in enumerate(wanted)]
    file = tmp_path / "board.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": read}]}), "utf-8")
    assert f"{len(wanted)} rules found" in promtool("check", "rules", file)


def _filled_in(expression: str) -> str:
    """A query as Grafana sends it."""
    filled = re.sub(r"\$(__rate_interval|__interval)", "5m", expression)
    return filled.replace("$instance", ".*")


async def test_the_numbers_are_named_as_those_of_prometheus_are(tmp_path: Path) -> None:
    async with opened(tmp_path, '[mcp.servers.a]\ncommand = "false"\n') as runtime:
        text = runtime.metrics()
    assert promtool("check", "metrics", given=text) == ""


@dataclass(frozen=True)
class Case:
    """Series that make an alert fire, the same as they are on a good day, and labels of the alert."""

    bad: Mapping[str, str]
    good: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=lambda: {"instance": "a"})


def of(name: str, labels: str = "") -> str:
    return f'{name}{{instance="a"{labels}}}'


def sr(name: str, labels: str = "") -> str:
    return of(f"session_runtime_{name}", labels)


def asks(outcome: str, values: str) -> dict[str, str]:
    return {sr("asks_total", f',outcome="{outcome}"'): values}


def turns(quick: str, all_: str) -> dict[str, str]:
    bucket = "daemon_turn_seconds_bucket"
    bounds = {"0.1": quick, "0.5": all_, "+Inf": all_}
    return {sr(bucket, f',le="{le}"'): values for le, values in bounds.items()}


def hashes(other: str) -> dict[str, str]:
    of_b = 'session_runtime_config_hash{instance="b"}'
    return {sr("config_hash"): "7x90", of_b: f"{other}x90"}


def refused(values: str) -> dict[str, str]:
    return {sr("asks_refused_total", ',code="busy.queue"'): values}


SERVER = ',server="shop"'
CASES: Mapping[str, Case] = {
    "SessionRuntimeDown": Case(
        {of("up", ',job="session-runtime"'): "0x90"},
        {of("up", ',job="session-runtime"'): "1x90"},
        {"instance": "a", "job": "session-runtime"},
    ),
    "SessionRuntimeConfigRejected": Case(
        {sr("config_in_force"): "0x90"}, {sr("config_in_force"): "1x90"}
    ),
    "SessionRuntimeConfigsDiffer": Case(hashes("8"), hashes("7"), {}),
    "SessionRuntimeServerDown": Case(
        {sr("server_ready", SERVER): "0x90"},
        {sr("server_ready", SERVER): "1x90"},
        {"instance": "a", "server": "shop"},
    ),
    "SessionRuntimeAsksFail": Case(
        asks("failed", "0+2x90") | asks("answered", "0+8x90"),
        asks("failed", "0+1x90") | asks("answered", "0+99x90"),
    ),
    "SessionRuntimeAsksRefused": Case(
        refused("0+60x90"), refused("0+1x90"), {"instance": "a", "code": "busy.queue"}
    ),
    "SessionRuntimeDaemonSlow": Case(turns("0+50x90", "0+100x90"), turns("0+99x90", "0+100x90")),
    "SessionRuntimeAuditFails": Case({sr("audit_failing"): "1x90"}, {sr("audit_failing"): "0x90"}),
    "SessionRuntimeRecordsLost": Case(
        {sr("trace_dropped_total"): "0+1x90"}, {sr("trace_dropped_total"): "5x90"}
    ),
    "SessionRuntimeToolsWait": Case({sr("tools_waiting"): "1x90"}, {sr("tools_waiting"): "0x90"}),
}


def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    assert CASES.keys() == {rule["alert"] for rule in rules()}
    tests = [_test(name, series, case) for name, case in CASES.items() for series in _both(case)]
    file = tmp_path / "tests.yml"
    said = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    file.write_text(yaml.safe_dump(said), "utf-8")
    assert "SUCCESS" in promtool("test", "rules", file)


def _both(case: Case) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return case.bad, case.good


def _test(name: str, series: Mapping[str, str], case: Case) -> dict[str, object]:
    """What has to come of an alert while there are these series."""
    [rule] = [each for each in rules() if each["alert"] == name]
    annotations = {
        key: re.sub(r"{{ \$labels\.(\w+) }}", lambda found: case.labels[found[1]], text)
        for key, text in rule["annotations"].items()
    }
    fires = {"exp_labels": {**case.labels, **rule["labels"]}, "exp_annotations": annotations}
    return {
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "alert_rule_test": [
            {
                "eval_time": EVALUATED,
                "alertname": name,
                "exp_alerts": [fires] if series is case.bad else [],
            }
        ],
    }
