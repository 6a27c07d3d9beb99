"""What is computed once per tool is kept while generations come and go, and then forgotten."""

from session_runtime.models.memo import SpecMemo
from session_runtime.registry.names import WireNames, build_wire_names
from session_runtime.registry.spec import ToolSpec
from tests.models.building import tool

SPEC = tool("a.b")


def test_a_value_is_computed_once_per_generation_and_for_the_last_four() -> None:
    computed: list[str] = []

    def compute(spec: ToolSpec, names: WireNames) -> str:
        computed.append(names.separator)
        return f"{spec.name} as {names.encode(spec.name)}"

    memo = SpecMemo(compute)
    generations = [build_wire_names(["a.b"], "-" * size) for size in (1, 2, 3, 4, 5)]
    assert [memo.get(SPEC, generations[at]) for at in (0, 1, 0, 0)] == [
        "a.b as a-b",
        "a.b as a--b",
        "a.b as a-b",
        "a.b as a-b",
    ]
    for at in (2, 3, 4, 0, 4):
        memo.get(SPEC, generations[at])
    assert computed == ["-", "--", "---", "----", "-----"]
    memo.get(SPEC, generations[1])
    assert computed[5:] == ["--"]
