"""The calculator is exact where that is possible, and answers at once whatever it is given."""

import string
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


async def value(run: Any, expression: str) -> str:
    result = await run("math.evaluate", expression=expression)
    assert result.status == "ok", result.content
    text: str = result.content
    return text


async def fault(run: Any, expression: str) -> str:
    result = await run("math.evaluate", expression=expression)
    assert (result.status, result.error_code) == ("error", "tool.failed")
    text: str = result.content
    return text


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("15% of 2480", "372"),
        ("50% of 20% of 80", "8"),
        ("200 * 10%", "20"),
        ("10% + 5", "5.1"),
        ("0.1 + 0.2", "0.3"),
        ("1/3 * 3", "1"),
        ("2 / 7", "0.285714285714286"),
        ("1/1024", "0.0009765625"),
        ("1,250 + 99.90", "1349.9"),
        ("1,234,567.5 * 2", "2469135"),
        ("100000000000000000000 + 1", "100000000000000000001"),
        ("1.5e3", "1500"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("10 % 3", "1"),
        ("-7 % 3", "2"),
        ("10 % (3)", "1"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("2 ** 3 ** 2", "512"),
        ("2^10", "1024"),
        ("-2 ** 2", "-4"),
        ("2 ** -2", "0.25"),
        ("4 ** 0.5", "2"),
        ("--3 - +4", "-1"),
        ("3×(2＋1)÷9", "1"),
        ("１２＋３", "15"),
    ],
)
async def test_arithmetic(run: Any, expression: str, expected: str) -> None:
    assert await value(run, expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sqrt(2.25)", "1.5"),
        ("sqrt(2)", "1.4142135623731"),
        ("abs(-3.50)", "3.5"),
        ("round(2.5)", "3"),
        ("round(-2.675, 2)", "-2.68"),
        ("round(1250, -2)", "1300"),
        ("min(3, 1, 2) + max(1, 2)", "3"),
        ("max((1,234), 5)", "1234"),
        ("max(1234,567) + max(1,2345) + max(1, 234) + max(1.5,200)", "4013"),
        ("max(1,2) + 1,000", "1002"),
        ("floor(-2.5) + ceil(2.1)", "0"),
        ("log(1000)", "3"),
        ("log(8, 2)", "3"),
        ("ln(e)", "1"),
        ("exp(0)", "1"),
        ("sin(pi) + cos(0) + tan(0)", "1"),
        ("PI", "3.14159265358979"),
    ],
)
async def test_functions_and_constants(run: Any, expression: str, expected: str) -> None:
    assert await value(run, expression) == expected


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (" ", "ends too early"),
        ("2 +", "ends too early"),
        ("(1", "ends too early"),
        ("1)", "Character 2 of the expression is unexpected: ')'"),
        ("1 2", "Character 3"),
        ("12,34", "Character 3 of the expression is unexpected: ',34'"),
        ("1,2345", "Character 2"),
        ("__import__('os')", "Character 1"),
        ("a.b", "'a' is not known. Known are abs, ceil"),
        ("eval(1)", "There is no function 'eval'. Known are"),
        ("round(1, 2, 3)", "round was given 3 values"),
        ("min(1,000,2)", "'1,000' can be one number or two values here: write 1000 or 1, 000"),
        ("max(2, 1,000)", "'1,000' can be one number"),
        ("round(1,234.5, 2)", "'1,234' can be one number"),
        ("abs(2*1,234,567)", "'1,234' can be one number"),
        ("sqrt(-1)", "sqrt has no real value"),
        ("ln(0)", "ln has no real value"),
        ("(-8) ** (1/3)", "no real value"),
        ("1 / 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("5 % (2 - 2)", "divides by zero"),
        ("round(1, 0.5)", "a whole number of places"),
    ],
)
async def test_what_cannot_be_calculated_is_explained(run: Any, expression: str, says: str) -> None:
    assert says in await fault(run, expression)


@pytest.mark.parametrize(
    "expression",
    ["9**9**9", "9**9**9**9", "2 ** 5000", "2 ** -5000", "1e400 ** 11", "1e9999", "exp(1000)",
     "1e300 * 1e300 * sin(1)", "1e99999999999", "*".join(["9**900"] * 60)],
)  # fmt: skip
async def test_what_would_grow_too_large_is_refused_at_once(run: Any, expression: str) -> None:
    assert "too large" in await fault(run, expression)


@pytest.mark.parametrize("expression", ["(" * 60 + "1" + ")" * 60, "2**" * 100 + "1"])
async def test_deep_nesting_is_refused(run: Any, expression: str) -> None:
    assert "nested more than 40 levels deep" in await fault(run, expression)


async def test_a_long_row_of_signs_is_no_nesting(run: Any) -> None:
    assert await value(run, "-" * 499 + "1") == "-1"


NUMBERS = st.integers(0, 10**6).map(str) | st.decimals(0, 1000, places=3).map(str)
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
        lambda p: f"({' '.join(p)})"
    ),
    max_leaves=6,
)
ANY_INSTANCE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def exactly(expression: str) -> Fraction:
    """What Python itself makes of the expression, with fractions for numbers."""
    words = expression.replace("(", " ( ").replace(")", " ) ").split()
    code = [word if word in "()+-*/" else f"Fraction('{word}')" for word in words]
    result: Fraction = eval(" ".join(code), {"Fraction": Fraction})
    return result


@ANY_INSTANCE
@given(EXPRESSIONS)
async def test_plain_arithmetic_agrees_with_fractions(run: Any, expression: str) -> None:
    try:
        expected = exactly(expression)
    except ZeroDivisionError:
        assert "divides by zero" in await fault(run, expression)
        return
    answer = Fraction(await value(run, expression))
    assert abs(answer - expected) <= abs(expected) / 10**14


@ANY_INSTANCE
@given(st.text(string.digits + "+-*/%().,e " + "of", min_size=1, max_size=40))
async def test_any_text_is_a_number_or_an_explanation(run: Any, expression: str) -> None:
    result = await run("math.evaluate", expression=expression)
    assert result.error_code in (None, "tool.failed")
    assert "Error" not in result.content
