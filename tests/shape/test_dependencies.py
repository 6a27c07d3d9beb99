"""What pyproject.toml asks for, the lock pins, and the page of decisions explains."""

import re
import tomllib

from packaging.requirements import Requirement

from tests.shape.tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK = (ROOT / "requirements-dev.lock").read_text("utf-8")
REQUIRED = PROJECT["project"]["dependencies"]
DEVELOPMENT = PROJECT["dependency-groups"]["dev"]


def test_the_lock_pins_every_dependency_within_its_bounds() -> None:
    pins = re.findall(r"^(\S+)==(\S+)", LOCK, re.MULTILINE)
    wanted = map(Requirement, [*REQUIRED, *DEVELOPMENT, *PROJECT["build-system"]["requires"]])
    unpinned = [
        str(requirement)
        for requirement in wanted
        if not any(name == requirement.name and pin in requirement.specifier for name, pin in pins)
    ]
    assert not unpinned, "run make lock"


def test_the_lock_holds_no_address() -> None:
    lines = LOCK.splitlines()
    assert [line for line in lines if "://" in line or " @ " in line or line.startswith("-")] == []


def test_every_dependency_has_its_reason_in_the_docs() -> None:
    page = (ROOT / "docs" / "decisions" / "dependencies.md").read_text("utf-8")
    names = [Requirement(text).name for text in REQUIRED]
    assert [name for name in names if f"\n| {name} |" not in page] == []
    assert [n for n in (Requirement(t).name for t in DEVELOPMENT) if n not in page] == []
