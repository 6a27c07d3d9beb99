"""The bundled sub-agent ``file_agent``, and the check that is its own."""

from pathlib import Path

import pytest

from session_runtime import AskRequest
from session_runtime.handler import HandlerContext
from session_runtime.services import Services
from session_runtime.testing.replies import reply_calls, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import ToolFinished
from tests.support import ask, chat_profile, opened
from tests.toolbox.file_trees import make_tree

CHECK = "agents.file_agent.check"
BROKEN = {
    "a.json": ('{"a": 1,}', "line 1, column "),
    "b.json": ('{"a": ' * 100_000, "nested too deeply"),
    "a.toml": ("a = 1\na = 2\n", "Cannot overwrite a value"),
    "a.ini": ("[a]\n[a]\n", "section 'a' already exists"),
    "a.csv": ("a,b\n1,2\n1\n", "line 3: 1 cells, the first line has 2"),
    "a.py": ("x = (\n", "line 1: '(' was never closed"),
}
GOOD = {
    "a.json": '{"a": 1}',
    "a.toml": "a = 1\n",
    "a.ini": "[a]\nb = %(c\n",
    "a.csv": "a,b\n1,2\n\n3,4\n",
    "a.py": "import os\nos.remove('x')\n",
}


@pytest.fixture
def context(tmp_path: Path) -> HandlerContext:
    return HandlerContext(services=Services(files=make_tree(tmp_path)))


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_wrong_with_a_file_is_told(
    run, context: HandlerContext, tmp_path: Path, name: str
) -> None:
    content, problem = BROKEN[name]
    (tmp_path / "docs" / name).write_text(content)
    assert problem in (await run(CHECK, context, path=f"docs/{name}")).content


@pytest.mark.parametrize("name", GOOD)
async def test_a_file_that_can_be_read_is_ok(
    run, context: HandlerContext, tmp_path: Path, name: str
) -> None:
    (tmp_path / "docs" / name).write_text(GOOD[name])
    assert (await run(CHECK, context, path=f"docs/{name}")).content == "ok"


async def test_a_file_of_another_kind_is_refused_with_those_that_are_known(
    run, context: HandlerContext
) -> None:
    result = await run(CHECK, context, path="docs/a.txt")
    assert result.status == "error"
    assert ".json, .toml, .ini, .csv, .py" in result.content


@pytest.mark.requirement("ASK-11")
async def test_the_agent_reads_edits_reads_again_and_checks(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "s.toml").write_text("port = 80\n")
    path = {"path": "docs/s.toml"}
    replies = [
        reply_calls(("file_agent", {"task": "Set port to 8080 in docs/s.toml."})),
        reply_calls(("files__read", path)),
        reply_calls(("files__edit", {**path, "old": "port = 80", "new": "port = 8080"})),
        reply_calls(("files__read", path), ("agents__file_agent__check", path)),
        reply_text("docs/s.toml: port is 8080 now; checked."),
        reply_text("The port is 8080 now."),
    ]
    roots = f'[files.roots.docs]\npath = "{tmp_path / "docs"}"\nwritable = true\n'
    async with (
        Upstream(replies) as upstream,
        opened(tmp_path, roots + chat_profile(upstream.base_url)) as runtime,
    ):
        asked = await ask(runtime, AskRequest(text="Change the port."))
    assert asked.result.text == "The port is 8080 now."
    assert (tmp_path / "docs" / "s.toml").read_text() == "port = 8080\n"
    finished = [(each.agent, each.name, each.status) for each in asked.of(ToolFinished)]
    side_by_side = slice(2, 4)
    finished[side_by_side] = sorted(finished[side_by_side])
    assert finished == [
        ("file_agent", "files.read", "ok"),
        ("file_agent", "files.edit", "ok"),
        ("file_agent", CHECK, "ok"),
        ("file_agent", "files.read", "ok"),
        (None, "file_agent", "ok"),
    ]


async def test_without_folders_of_files_there_is_no_such_agent(tmp_path: Path) -> None:
    async with opened(tmp_path, "") as runtime:
        names = [spec.name for spec in runtime.generation.catalog.specs]
    assert "file_agent" not in names
    assert CHECK not in names
