"""What is computed once per tool is kept while the tool is in use, and then forgotten."""

import gc
import weakref

from session_runtime.models.memo import SpecMemo
from session_runtime.registry.spec import ToolSpec
from tests.models.building import tool


def test_a_value_is_computed_once_per_tool_and_wire_name() -> None:
    computed: list[str] = []

    def compute(spec: ToolSpec, wire_name: str) -> str:
        computed.append(wire_name)
        return f"{spec.name} as {wire_name}"

    memo, spec = SpecMemo(compute), tool("a.b")
    values = [memo.get(spec, name) for name in ("a-b", "a__b", "a-b", "a__b")]
    assert values == ["a.b as a-b", "a.b as a__b", "a.b as a-b", "a.b as a__b"]
    assert computed == ["a-b", "a__b"]
    assert memo.get(tool("a.b"), "a-b") == "a.b as a-b"
    assert computed == ["a-b", "a__b", "a-b"]


def test_a_tool_that_is_gone_is_not_kept_by_what_was_computed_of_it() -> None:
    memo, spec = SpecMemo(lambda spec, wire_name: wire_name), tool("a.b")
    memo.get(spec, "a-b")
    gone = weakref.ref(spec)
    del spec
    gc.collect()
    assert gone() is None
