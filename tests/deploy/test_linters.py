"""What linters and schemas of others say of the files of docs/deploy."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.deploy.files import COMPOSE, CONTAINERFILE, FOLDER, KUBERNETES, ROOT

LINTERS = ROOT / ".soak" / "linters" / "bin"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"

pytestmark = pytest.mark.soak


def program(name: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a linter that make soak installs, or that is there; the test is skipped without it."""
    found = shutil.which(name, path=f"{LINTERS}:{Path(sys.executable).parent}:{PATH}")
    if found is None:
        pytest.skip(f"{name} is not installed here")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [found, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_containerfile_has_nothing_to_be_warned_of() -> None:
    done = program("hadolint")("--failure-threshold", "warning", CONTAINERFILE)
    assert done.returncode == 0, done.stdout


def test_the_compose_file_is_one_by_the_specification() -> None:
    check = program("check-jsonschema")
    done = check("--builtin-schema", "vendor.compose-spec", COMPOSE)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_the_manifests_are_what_kubernetes_knows(version: str) -> None:
    files = [path for path in sorted(KUBERNETES.glob("*.yaml")) if "kustom" not in path.name]
    done = program("kubernetes-validate")("--strict", "-k", version, *files)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kustomize_puts_the_configuration_in_as_it_is() -> None:
    done = program("kubectl")("kustomize", KUBERNETES)
    assert done.returncode == 0, done.stderr
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    config = (KUBERNETES / "config.toml").read_text("utf-8")
    assert made["ConfigMap"]["data"] == {"config.toml": config}
    assert made["ConfigMap"]["metadata"]["name"] == "session-runtime"
    [container] = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "session-runtime:local"


def test_systemd_knows_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    unit = FOLDER / "session-runtime.service"
    done = analyze("security", "--offline=true", "--threshold=20", "--no-pager", unit)
    assert done.returncode == 0, done.stdout
    text = unit.read_text("utf-8").replace("/opt/session-runtime/bin/session-runtime", "/bin/true")
    older = tmp_path / unit.name  # systemd before 253 does not know notify-reload
    older.write_text(text.replace("notify-reload", "notify"), "utf-8")
    done = analyze("verify", older)
    assert (done.returncode, done.stderr) == (0, "")
