"""Calculates arithmetic expressions exactly, with a parser of its own and bounds on every step."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Any

from session_runtime.handler import HandlerContext, ToolError

Number = Fraction | float

_MAX_BITS = 4096  # of a numerator or denominator: about 1,200 digits
_MAX_DEPTH = 40
_MAX_EXPONENT = 400  # of a number such as 1e400
_MAX_PLACES = 100
_EXACT_DIGITS = 50
_ROUNDED_DIGITS = 15

_PLAIN_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII)
_GROUPED_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d*)?(?![\d,])", re.ASCII)
_MAYBE_GROUPED = re.compile(r"(\d{1,3}),(\d{3})(?!\d)", re.ASCII)
_WORD = re.compile(r"[a-z]\w*", re.ASCII)
_OPERATOR = re.compile(r"\*\*|//|[-+*/%^]")
_OTHER_SIGNS = str.maketrans(
    "×·÷−–－＋＊／％（），．０１２３４５６７８９", "**/---+*/%(),.0123456789"
)


async def execute(args: dict[str, Any], context: HandlerContext) -> str:
    """Give the value as a decimal number: exact, or rounded to 15 digits where it has no end."""
    del context
    return _decimal(_Parser(args["expression"]).parse())


@dataclass(slots=True)
class _Parser:
    """Reads one expression from left to right; ``position`` is the next character.

    ``in_call`` tells that a comma separates arguments here, and not thousands; what could be either
    is refused.
    """

    given: str
    text: str = ""
    position: int = 0
    depth: int = 0
    in_call: bool = False

    def parse(self) -> Number:
        """Evaluate the whole text; ToolError says what is wrong and where."""
        self.text = self.given.translate(_OTHER_SIGNS).lower()
        try:
            value = self._nested(self._sum)
        except ZeroDivisionError:
            raise ToolError("The expression divides by zero.") from None
        except OverflowError:
            raise _too_large() from None
        if self._next():
            raise self._unexpected()
        return value

    def _nested(self, read: Callable[[], Number]) -> Number:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ToolError(f"The expression is nested more than {_MAX_DEPTH} levels deep.")
        value = read()
        self.depth -= 1
        return value

    def _sum(self) -> Number:
        value = self._product()
        while (sign := self._operator("+", "-")) is not None:
            term = self._product()
            value = _bounded(value + term if sign == "+" else value - term)
        return value

    def _product(self) -> Number:
        value = self._signed()
        while (sign := self._operator("*", "/", "//", "%") or self._of()) is not None:
            value = _bounded(_multiplied(value, sign, self._signed()))
        return value

    def _signed(self) -> Number:
        negative = False
        while (sign := self._operator("+", "-")) is not None:
            negative ^= sign == "-"
        value = self._power()
        return -value if negative else value

    def _power(self) -> Number:
        base = self._percent()
        if self._operator("**", "^") is None:
            return base
        return _bounded(_raised(base, self._nested(self._signed)))

    def _percent(self) -> Number:
        value = self._atom()
        while self._next() == "%" and not self._operand_follows():
            self.position += 1
            value = value / 100
        return value

    def _atom(self) -> Number:
        if self._next() == "(":
            (value,) = self._arguments(in_call=False)
            return value
        if found := self._number():
            self.position = found.end()
            return _literal(found[0].replace(",", ""))
        if found := _WORD.match(self.text, self.position):
            self.position = found.end()
            return self._named(found[0])
        raise self._unexpected()

    def _number(self) -> re.Match[str] | None:
        plain = _PLAIN_NUMBER.match(self.text, self.position)
        if not self.in_call:
            return _GROUPED_NUMBER.match(self.text, self.position) or plain
        if found := _MAYBE_GROUPED.match(self.text, self.position):
            raise ToolError(
                f"{found[0]!r} can be one number or two values here: write {found[1]}{found[2]} or "
                f"{found[1]}, {found[2]}."
            )
        return plain

    def _named(self, name: str) -> Number:
        if self._next() != "(":
            if name in _CONSTANTS:
                return _CONSTANTS[name]
            raise ToolError(f"{name!r} is not known. {_KNOWN}")
        if name not in _FUNCTIONS:
            raise ToolError(f"There is no function {name!r}. {_KNOWN}")
        function, least, most = _FUNCTIONS[name]
        values = self._arguments(in_call=True)
        if not least <= len(values) <= most:
            raise ToolError(
                f"{name} was given {len(values)} values. Between the parentheses of a function a "
                "comma separates values: write thousands without commas there."
            )
        try:
            return _bounded(function(*values))
        except ValueError:
            raise ToolError(f"{name} has no real value for what it was given.") from None

    def _arguments(self, *, in_call: bool) -> list[Number]:
        outside, self.in_call = self.in_call, in_call
        self.position += 1
        values = [self._nested(self._sum)]
        while in_call and self._next() == ",":
            self.position += 1
            values.append(self._nested(self._sum))
        if self._next() != ")":
            raise self._unexpected()
        self.position += 1
        self.in_call = outside
        return values

    def _next(self) -> str:
        """Skip blanks and give the next character, "" at the end."""
        while self.text[self.position : self.position + 1].isspace():
            self.position += 1
        return self.text[self.position : self.position + 1]

    def _operator(self, *wanted: str) -> str | None:
        self._next()
        found = _OPERATOR.match(self.text, self.position)
        if found is None or found[0] not in wanted:
            return None
        self.position = found.end()
        return found[0]

    def _of(self) -> str | None:
        found = _WORD.match(self.text, self.position)
        if found is None or found[0] != "of":
            return None
        self.position = found.end()
        return "*"

    def _operand_follows(self) -> bool:
        """Whether the ``%`` here divides by what comes next, instead of standing for a hundredth."""
        rest = self.text[self.position + 1 :].lstrip()
        return bool(re.match(r"[\d.(]|(?!of\b)[a-z]", rest, re.ASCII))

    def _unexpected(self) -> ToolError:
        if not self._next():
            return ToolError("The expression ends too early: something is missing at its end.")
        return ToolError(
            f"Character {self.position + 1} of the expression is unexpected: "
            f"{self.given[self.position : self.position + 20]!r}."
        )


def _multiplied(left: Number, sign: str, right: Number) -> Number:
    match sign:
        case "*":
            return left * right
        case "/":
            return left / right
        case "//":
            return Fraction(left // right)
        case _:
            return left % right


def _raised(base: Number, exponent: Number) -> Number:
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and exponent.denominator == 1:
        if max(_bits(base) - 1, 0) * abs(exponent) > _MAX_BITS:
            raise _too_large()
        return Fraction(base ** int(exponent))
    try:
        return math.pow(base, exponent)
    except ValueError:
        raise ToolError("This power has no real value.") from None


def _literal(text: str) -> Fraction:
    _, _, exponent = text.partition("e")
    if exponent and (len(exponent) > 5 or abs(int(exponent)) > _MAX_EXPONENT):
        raise _too_large()
    return Fraction(text)


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Number) -> Number:
    within = _bits(value) <= _MAX_BITS if isinstance(value, Fraction) else math.isfinite(value)
    if not within:
        raise _too_large()
    return value


def _too_large() -> ToolError:
    return ToolError("A number in this calculation is too large or has too many digits.")


def _sqrt(value: Number) -> Number:
    if isinstance(value, Fraction) and value >= 0:
        top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return math.sqrt(value)


def _round(value: Number, places: Number = Fraction(0)) -> Number:
    """Round half away from zero, as people do on paper."""
    if places != int(places) or abs(places) > _MAX_PLACES:
        raise ToolError(f"round takes a whole number of places, at most {_MAX_PLACES}.")
    scale = Fraction(Fraction(10) ** int(places))
    scaled = Fraction(str(value)) * scale
    whole = math.floor(abs(scaled) + Fraction(1, 2))
    return Fraction(whole if scaled >= 0 else -whole) / scale


def _log(value: Number, base: Number = Fraction(10)) -> float:
    if base == 10:
        return math.log10(value)
    return math.log2(value) if base == 2 else math.log(value) / math.log(base)


def _without_noise(function: Callable[[float], float]) -> Callable[[Number], float]:
    """Round to 15 places, so that sin(pi) is 0."""
    return lambda angle: round(function(float(angle)), 15)


_CONSTANTS = {"pi": math.pi, "e": math.e}
_FUNCTIONS: dict[str, tuple[Callable[..., Number], int, int]] = {
    "sqrt": (_sqrt, 1, 1),
    "abs": (abs, 1, 1),
    "round": (_round, 1, 2),
    "min": (min, 1, 500),
    "max": (max, 1, 500),
    "floor": (lambda value: Fraction(math.floor(value)), 1, 1),
    "ceil": (lambda value: Fraction(math.ceil(value)), 1, 1),
    "log": (_log, 1, 2),
    "ln": (math.log, 1, 1),
    "exp": (math.exp, 1, 1),
    "sin": (_without_noise(math.sin), 1, 1),
    "cos": (_without_noise(math.cos), 1, 1),
    "tan": (_without_noise(math.tan), 1, 1),
}
_KNOWN = f"Known are {', '.join(sorted(_FUNCTIONS))} and the constants pi and e."


def _decimal(value: Number) -> str:
    if isinstance(value, float):
        return f"{value + 0.0:.{_ROUNDED_DIGITS}g}"
    if value.denominator == 1:
        return str(value.numerator)
    exactly = Context(prec=_EXACT_DIGITS, traps=[])
    decimal = exactly.divide(Decimal(value.numerator), Decimal(value.denominator))
    if exactly.flags[Inexact]:
        rounded = Context(prec=_ROUNDED_DIGITS, traps=[])
        decimal = rounded.divide(Decimal(value.numerator), Decimal(value.denominator))
        return str(decimal.normalize(rounded))
    return f"{decimal.normalize(exactly):f}"
