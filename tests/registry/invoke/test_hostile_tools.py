"""Tools whose results and errors are traps: each costs its own call and nothing else."""

import enum
from typing import Any

import pytest

from session_runtime.errors import ToolError
from tests.registry.invoke.test_pipeline import invoke, raising, returning


class Reason(enum.Enum):
    NOT_FOUND = "nf"


class TrapDict(dict[str, Any]):
    """Cannot be read."""

    def items(self) -> Any:
        raise RuntimeError("trap")


class TrapText(str):
    """Ends the process when it is encoded."""

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise SystemExit(3)


class TrapError(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.requirement("ASK-4")
async def test_a_result_that_cannot_be_read_is_an_error_result() -> None:
    result = await invoke(returning(TrapDict(a=1)))
    assert result.status == "error"


@pytest.mark.requirement("ASK-4")
async def test_text_that_is_a_trap_is_taken_as_text() -> None:
    result = await invoke(returning(TrapText("hello")))
    assert (result.status, result.content) == ("ok", "hello")


@pytest.mark.requirement("ASK-4")
async def test_an_error_that_cannot_say_what_it_is_is_an_error_result() -> None:
    result = await invoke(raising(TrapError()))
    assert (result.status, result.error_code) == ("error", "tool.failed")


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("code", [Reason.NOT_FOUND, None, "", 7])
async def test_a_code_that_is_none_becomes_the_general_one(code: Any) -> None:
    result = await invoke(raising(ToolError("no such city", code=code)))
    assert (result.status, result.error_code, result.content) == (
        "error",
        "tool.failed",
        "no such city",
    )
