"""What an installed package consists of."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.shape.tree import HANDLERS, PACKAGE, ROOT


def _files(folder: Path, inside: str) -> set[str]:
    return {
        f"{inside}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.requirement("REG-1")
def test_the_wheel_holds_the_package_and_the_bundled_handlers_and_nothing_else(
    tmp_path: Path,
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = _files(PACKAGE, "session_runtime") | _files(HANDLERS, "session_runtime/bundled")
    assert names == expected
