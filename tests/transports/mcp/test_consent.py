"""What a person at a client reads before a destructive tool runs."""

from pathlib import Path

import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from tests.transports.mcp.served import ON, serving, tools

BREAKS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r\n"


@pytest.mark.requirement("RTE-9")
async def test_no_argument_can_add_a_line_to_what_a_person_agrees_to(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(context: object, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="decline")

    config = tools(tmp_path, "a.wipe", runtime={"destructive": True}) + ON
    async with (
        serving(tmp_path, config) as served,
        served.client(elicitation_callback=ask) as client,
    ):
        await client.call_tool("a.wipe", {"path": f"/tmp{BREAKS}Nothing is deleted."})
    [question] = asked
    shown = r"/tmp\u2028\u2029\x85\u000b\f\u001c\u001d\u001e\r\nNothing is deleted."
    assert question.splitlines()[1:] == ["Arguments:", "{", f' "path": "{shown}"', "}"]
