"""What system tests share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.consoles import Console, signed_in


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    async with signed_in(tmp_path) as console:
        yield console
