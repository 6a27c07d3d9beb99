import json

import pytest

from session_runtime.registry.names import TOOL_SEARCH
from session_runtime.search import PROMPT_RULE, tool_search_spec


@pytest.mark.requirement("TS-5")
def test_the_tool_takes_a_query_and_a_number_and_nothing_else() -> None:
    parameters = json.loads(json.dumps(tool_search_spec(5).parameters))
    for schema in parameters["properties"].values():
        del schema["description"]
    assert parameters == {
        "type": "object",
        "properties": {"query": {"type": "string"}, "max_results": {"type": "integer"}},
        "required": ["query"],
        "additionalProperties": False,
    }


@pytest.mark.requirement("TS-11")
def test_the_tool_is_the_same_to_the_byte_for_the_same_cap() -> None:
    first, again, other = tool_search_spec(5), tool_search_spec(5), tool_search_spec(6)
    assert json.dumps([first.description, first.parameters]) == json.dumps(
        [again.description, again.parameters]
    )
    assert first.digest == again.digest != other.digest


@pytest.mark.requirement("TS-12")
def test_the_model_is_told_that_loading_is_not_doing() -> None:
    spec = tool_search_spec(5)
    assert (spec.name, spec.origin) == (TOOL_SEARCH, "virtual")
    for advice in ("select:", "next turn", "call it", "keywords"):
        assert advice in spec.description
        assert advice in PROMPT_RULE
