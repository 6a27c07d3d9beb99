"""What ships is complete, described, and findable."""

import pytest

from session_runtime.local.scan import Scan


@pytest.mark.requirement("REG-1")
def test_all_bundled_tools_are_usable(bundled: Scan) -> None:
    names = [tool.spec.name for tool in bundled.tools]
    assert names == [
        "agents.file_agent.check",
        "end",
        "file_agent",
        "files.edit",
        "files.list",
        "files.read",
        "files.search",
        "files.write",
        "get_current_time",
        "math.evaluate",
        "notes.add",
        "notes.delete",
        "notes.list",
        "notes.search",
        "results.read",
        "send_message",
        "web.fetch",
    ]
    assert (bundled.quarantined, bundled.warnings) == ((), ())
    assert {tool.spec.origin for tool in bundled.tools} == {"agent", "bundled"}


def test_every_bundled_tool_explains_itself_and_each_of_its_arguments(bundled: Scan) -> None:
    for tool in bundled.tools:
        spec = tool.spec
        assert spec.description.endswith(".")
        assert spec.search_hints or spec.owner
        assert spec.examples or spec.owner
        assert spec.parameters["additionalProperties"] is False
        undescribed = [
            name
            for name, schema in spec.parameters["properties"].items()
            if not schema["description"]
        ]
        assert undescribed == []
