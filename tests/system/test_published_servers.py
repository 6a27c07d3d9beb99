"""Servers of tools that others have published, from start to answer; `make soak` installs them."""

import json
from pathlib import Path

import pytest

from tests.support import calls, opened, says, scripted
from tests.system.leftovers import nothing_left
from tests.system.server_config import table
from tests.system.test_servers import ALL_TOOLS, ask, mcp, names, results, statuses

INSTALLED = Path(__file__).parents[2] / ".soak" / "servers"

TIME = INSTALLED / "bin" / "mcp-server-time"
FILES = INSTALLED / "node_modules" / ".bin" / "mcp-server-filesystem"

pytestmark = pytest.mark.soak


def needs(program: Path) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not program.exists(), reason=f"make soak did not install {program}")


@needs(TIME)
@pytest.mark.requirement("RTE-1")
async def test_a_server_of_the_python_index_tells_the_time(tmp_path: Path) -> None:
    time = table("time", command=str(TIME), args=["--local-timezone=UTC"])
    wanted = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    script = scripted(tmp_path, calls(("time.convert_time", wanted)), says("done"))
    with nothing_left():
        async with opened(tmp_path, ALL_TOOLS + mcp(time) + script) as runtime:
            assert {"time.convert_time", "time.get_current_time"} <= set(names(runtime))
            assert statuses(runtime)["time"]["state"] == "ready"
            (converted,) = results(
                await ask(runtime, "When it is noon in UTC, what is it in Tokyo?")
            )
            assert "21:00" in converted


@needs(FILES)
@pytest.mark.requirement("RTE-9")
async def test_a_server_of_the_javascript_index_reads_files_and_waits_before_it_writes_them(
    tmp_path: Path,
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "note.txt").write_text("the plums were cold", "utf-8")
    files = table(
        "files",
        command=str(FILES),
        args=[str(shared)],
    )
    read = ("files.read_text_file", {"path": str(shared / "note.txt")})
    write = ("files.write_file", {"path": str(shared / "note.txt"), "content": "gone"})
    script = scripted(tmp_path, calls(read), calls(write), says("done"))
    text = (
        f"{ALL_TOOLS}{mcp(files)}[mcp.servers.files.tools.write_file]\ndestructive = true\n{script}"
    )
    with nothing_left():
        async with opened(tmp_path, text) as runtime:
            asked = await ask(runtime, "Read the note, then empty it.")
            assert "the plums were cold" in results(asked)[0]
            assert asked.result.outcome == "needs_confirmation"
            assert json.loads(json.dumps(dict(asked.result.pending[0].arguments))) == write[1]
            assert (shared / "note.txt").read_text("utf-8") == "the plums were cold"
