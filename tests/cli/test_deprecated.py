"""Commands show which tools should no longer be used, and what to use instead (RTE-12)."""

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support import write_handler


@pytest.mark.requirement("RTE-12")
def test_a_deprecated_tool_is_marked_in_the_list_and_explained_when_shown(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text('[handlers]\npaths = ["tools"]\nbundled = false\n')
    old = {"deprecated": {"reason": "slow", "replacement": "new"}}
    write_handler(tmp_path / "tools", "old", runtime=old)
    write_handler(tmp_path / "tools", "new")
    assert run("tools", "list").out == "new  Does new.\nold  (deprecated) Does old.\n"
    assert run("tools", "show", "old").out.splitlines()[1:] == [
        "Does old.",
        "deprecated: slow; use new",
    ]
