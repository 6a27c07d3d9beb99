"""A folder of installed packages that Python finds while a test runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import importable


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    site = tmp_path / "site"
    site.mkdir()
    with importable(site):
        yield site
