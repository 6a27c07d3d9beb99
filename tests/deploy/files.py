"""The files of docs/deploy as the tests of them read them."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from session_runtime.config.load import load
from session_runtime.config.snapshot import ConfigSnapshot

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "deploy"
COMPOSE = FOLDER / "compose.yaml"
KUBERNETES = FOLDER / "kubernetes"
CONTAINERFILE = FOLDER / "Containerfile"
SECRETS = Path("/run/secrets")
UID = 10_001

_REFERENCE = re.compile(r'"file:/run/secrets/([\w/.-]+)"')


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Containerfile, its lines joined; ``stage`` counts from 0."""

    name: str
    text: str
    stage: int

    def words(self) -> list[str]:
        """The list form that it has to be in."""
        found = json.loads(self.text)
        assert isinstance(found, list)
        return found


def instructions() -> Iterator[Instruction]:
    """The instructions of the Containerfile in order."""
    text = re.sub(r"^#.*\n", "", CONTAINERFILE.read_text("utf-8"), flags=re.MULTILINE)
    stage = -1
    for line in text.replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        stage += name == "FROM"
        if name:
            yield Instruction(name, rest.strip(), stage)


def last(name: str) -> Instruction:
    """The instruction of this name that counts for the image."""
    return [each for each in instructions() if each.name == name][-1]


def environment() -> dict[str, str]:
    """The variables of the image."""
    pairs = [each.text for each in instructions() if each.name == "ENV" and each.stage == 1]
    return dict(pair.split("=", 1) for text in pairs for pair in text.split())


def compose() -> Any:
    """What compose.yaml says."""
    return yaml.safe_load(COMPOSE.read_text("utf-8"))


def manifest(name: str) -> Any:
    """What one of the manifests for Kubernetes says."""
    return yaml.safe_load((KUBERNETES / f"{name}.yaml").read_text("utf-8"))


def loaded(config: Path, folder: Path, env: Mapping[str, str]) -> ConfigSnapshot:
    """The configuration as the daemon reads it, with every secret in ``folder`` instead of /run/secrets."""
    text = config.read_text("utf-8")
    named = [Path(value) for name, value in env.items() if name.endswith("_FILE")]
    for name in (*_REFERENCE.findall(text), *(str(each.relative_to(SECRETS)) for each in named)):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("a secret of more than 32 characters", "utf-8")
    moved = {name: value.replace(str(SECRETS), str(folder)) for name, value in env.items()}
    sources = {"SESSION_RUNTIME__RUNTIME__SECRET_SOURCES": json.dumps([f"file:{folder}"])}
    said = text.replace(str(SECRETS), str(folder)).encode()
    return load(config, named=True, env=moved | sources, text=said)
