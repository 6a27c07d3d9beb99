"""``results.read`` reads what an ask kept, part by part, and never says more than the limit allows."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_runtime.ask.kept import KeptResults
from session_runtime.handler import HandlerContext
from session_runtime.services import Services
from tests.handlers.conftest import Run

LIMIT = 500


def holding(text: str) -> HandlerContext:
    """The context of an ask that kept one result."""
    store = KeptResults(LIMIT)
    place = store.place(readable=True)
    assert place is not None
    place.keep(text)
    return HandlerContext(services=Services(results=store))


@pytest.mark.requirement("ASK-8b")
async def test_a_part_stands_below_a_line_that_says_where_it_is_and_how_to_go_on(run: Run) -> None:
    context = holding("".join(f"{n:04}\n" for n in range(200)))
    result = await run("results.read", context, reference="result_1", length=10)
    assert result.content == (
        "result_1, characters 0 to 10 of 1000. Go on with offset 10.\n0000\n0001\n"
    )
    result = await run("results.read", context, reference="result_1", offset=995)
    assert result.content == "result_1, characters 995 to 1000 of 1000. This is the end.\n0199\n"


@pytest.mark.requirement("ASK-8b")
async def test_a_part_begins_a_little_before_the_text_that_was_looked_for(run: Run) -> None:
    context = holding("x" * 3_000 + "needle" + "y" * 3_000 + "needle")
    result = await run("results.read", context, reference="result_1", find="needle", length=100)
    assert result.content == (
        "result_1, characters 2975 to 3075 of 6012, found at 3000. Go on with offset 3075.\n"
        f"{'x' * 25}needle{'y' * 69}"
    )
    result = await run("results.read", context, reference="result_1", find="needle", offset=3_001)
    assert ", found at 6006. This is the end.\n" in result.content


@pytest.mark.requirement("ASK-8b")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"reference": "result_2"}, "results.unknown"),
        ({"reference": "result_1", "offset": 600}, "results.out_of_range"),
        ({"reference": "result_1", "find": "y"}, "results.not_found"),
        ({"reference": "result_1", "offset": -1}, "tool.invalid_arguments"),
        ({"reference": "result_1", "length": 0}, "tool.invalid_arguments"),
        ({}, "tool.invalid_arguments"),
    ],
)
async def test_what_cannot_be_read_is_an_error_of_its_own(
    run: Run, arguments: dict[str, object], code: str
) -> None:
    result = await run("results.read", holding("x" * 600), **arguments)
    assert (result.status, result.error_code) == ("error", code)


@pytest.mark.requirement("ASK-8b")
async def test_outside_of_an_ask_there_is_nothing_to_read(run: Run) -> None:
    result = await run("results.read", reference="result_1")
    assert (result.status, result.error_code) == ("error", "tool.not_configured")


@pytest.mark.requirement("ASK-8b")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(min_size=1, max_size=2_000), st.integers(1, 3_000) | st.none())
async def test_reading_on_until_the_end_gives_the_whole(
    run: Run, text: str, length: int | None
) -> None:
    context, read, chosen = holding(text), "", {} if length is None else {"length": length}
    while len(read) < len(text) and len(read) < 60 * (length or LIMIT):
        result = await run(
            "results.read", context, reference="result_1", offset=len(read), **chosen
        )
        assert (result.status, result.whole_chars) == ("ok", None)
        assert len(result.content) <= LIMIT
        read += result.content.partition("\n")[2]
    assert text.startswith(read)
    assert read == text or length is not None


@pytest.mark.requirement("ASK-8b")
async def test_whole_numbers_may_be_written_with_a_point(run: Run) -> None:
    arguments = {"reference": "result_1", "offset": 1.0, "length": 2.0}
    result = await run("results.read", holding("abcdef"), **arguments)
    assert result.content.endswith("\nbc")
