"""Filling the arguments of tools that the offline model has never seen."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.models.offline.arguments import fill
from session_runtime.models.offline.spans import analyse
from tests.models.building import properties

S, WHOLE, N, B = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
WORDS = {"type": "array", "items": S}
DATE = {"type": "string", "format": "date"}


def about(kind: dict[str, Any], description: str) -> dict[str, Any]:
    return {**kind, "description": description}


FILLED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("What is 15% of 2480?", properties("expression", expression=S), {"expression": "15% of 2480"}),
    (
        "What is (3 + 4) * 12?",
        properties("expression", expression=S, precision=WHOLE),
        {"expression": "(3 + 4) * 12"},
    ),
    ("How much is 2 times 3.5?", properties("expression", expression=S), {"expression": "2 * 3.5"}),
    ("帮我算一下 3 乘以 25", properties("expression", expression=S), {"expression": "3 * 25"}),
    ("10 divided by 4 ×2", properties("expression", expression=S), {"expression": "10 / 4 * 2"}),
    (
        "What is the square root of 144?",
        properties("expression", expression=S),
        {"expression": "sqrt(144)"},
    ),
    ("(3+4)*2等于多少", properties("expression", expression=S), {"expression": "(3+4)*2"}),
    ("What time is it in Asia/Tokyo?", properties(timezone=S), {"timezone": "Asia/Tokyo"}),
    ("What time is it in New York?", properties(timezone=S), {"timezone": "America/New_York"}),
    ("What time is it?", properties(timezone=S), {}),
    (
        "Reserve a table at 'Blue Lagoon' for 4 guests for dinner",
        properties(
            "restaurant",
            "guests",
            "meal",
            restaurant=S,
            guests=WHOLE,
            meal={"type": "string", "enum": ["breakfast", "lunch", "dinner"]},
        ),
        {"restaurant": "Blue Lagoon", "guests": 4, "meal": "dinner"},
    ),
    (
        "Book a flight from Berlin to Madrid on 2025-03-04 for two passengers",
        properties(
            "origin", "to", "date", "passengers", origin=S, to=S, date=DATE, passengers=WHOLE
        ),
        {"origin": "Berlin", "to": "Madrid", "date": "2025-03-04", "passengers": 2},
    ),
    (
        "Send 'see you at 8' to Alice",
        properties("to", "text", to=S, text=S),
        {"to": "Alice", "text": "see you at 8"},
    ),
    (
        "Send a message to Alice and Bob saying lunch is ready",
        properties("to", "text", to=WORDS, text=S),
        {"to": ["Alice", "Bob"], "text": "lunch is ready"},
    ),
    (
        "What's the weather in paris tomorrow?",
        properties("city", city=S, date=S),
        {"city": "paris", "date": "tomorrow"},
    ),
    (
        "Weather for city Paris in Fahrenheit",
        properties("city", city=S, unit={"enum": ["celsius", "fahrenheit"]}),
        {"city": "Paris", "unit": "fahrenheit"},
    ),
    (
        "Convert 100 USD to EUR",
        properties(
            "amount", "from_currency", "to_currency", amount=N, from_currency=S, to_currency=S
        ),
        {"amount": 100, "from_currency": "USD", "to_currency": "EUR"},
    ),
    (
        "Convert 10 miles to kilometers",
        properties("value", "from_unit", "to_unit", value=N, from_unit=S, to_unit=S),
        {"value": 10, "from_unit": "miles", "to_unit": "kilometers"},
    ),
    (
        "Translate 'good morning' into French",
        properties("text", "target_language", text=S, target_language=S),
        {"text": "good morning", "target_language": "French"},
    ),
    ("Where is order A-1234?", properties("order_id", order_id=S), {"order_id": "A-1234"}),
    ("Cancel order 4521 please", properties("order_id", order_id=S), {"order_id": "4521"}),
    (
        "Transfer 2,480 to account 12345",
        properties("amount", "account", amount=N, account=S),
        {"amount": 2480, "account": "12345"},
    ),
    (
        "Search the web for cheap flights to Rome",
        properties("query", query=S, limit=WHOLE),
        {"query": "cheap flights to Rome"},
    ),
    (
        "Give me 3 results about solar power",
        properties("query", query=S, limit=about(WHOLE, "Number of results")),
        {"query": "solar power", "limit": 3},
    ),
    (
        "Why is the sky blue?",
        properties("question", question=S),
        {"question": "Why is the sky blue?"},
    ),
    (
        "title: Weekly review, priority: high",
        properties("title", title=S),
        {"title": "Weekly review"},
    ),
    ("List files including hidden ones", properties(include_hidden=B), {"include_hidden": True}),
    ("List files without hidden ones", properties(include_hidden=B), {"include_hidden": False}),
    ("List all, archived: yes", properties(archived=B), {"archived": True}),
    ("Make a password of 16 characters", properties("length", length=WHOLE), {"length": 16}),
    ("Take 15% off", properties("rate", rate={**N, "maximum": 1}), {"rate": 0.15}),
    ("Take 15% off", properties("percent", percent=N), {"percent": 15}),
    (
        "Roll 2 dice with 6 sides",
        properties("count", "sides", sides=WHOLE, count=WHOLE),
        {"count": 2, "sides": 6},
    ),
    (
        "What is the sum of 3, 4 and 5.5?",
        properties("numbers", numbers={"type": "array", "items": N}),
        {"numbers": [3, 4, 5.5]},
    ),
    (
        "Mail to bob@example.org",
        properties("address", address={**S, "format": "email"}),
        {"address": "bob@example.org"},
    ),
    (
        "Fetch https://example.org/a?b=1.",
        properties("url", url=S),
        {"url": "https://example.org/a?b=1"},
    ),
    ("Read notes/today.txt", properties("path", path=S), {"path": "notes/today.txt"}),
    ("Set both alerts", properties("kind", kind={"const": "alert"}), {"kind": "alert"}),
    (
        "Do it",
        properties("mode", mode={"enum": ["fast", "slow"], "default": "fast"}),
        {"mode": "fast"},
    ),
    (
        "Pick the very high one",
        properties("level", level={"enum": ["high", "very_high"]}),
        {"level": "very_high"},
    ),
    (
        "Use fit",
        {
            "type": "object",
            "required": ["f"],
            "properties": {"f": {"$ref": "#/$defs/F"}},
            "$defs": {"F": {"enum": ["fit", "raw"]}},
        },
        {"f": "fit"},
    ),
    (
        "Wait 5 minutes",
        properties("minutes", minutes={"type": ["null", "integer"]}),
        {"minutes": 5},
    ),
    ("Meet at 09:30", properties("time", time={"anyOf": [S, {"type": "null"}]}), {"time": "09:30"}),
    (
        "Create an event titled 'Standup' on 2025-05-06 at 09:30 with Bob",
        properties(
            "title",
            "start",
            title=S,
            start=properties("date", "time", date=DATE, time=S),
            place=properties("city", city=S),
            attendees=WORDS,
        ),
        {
            "title": "Standup",
            "start": {"date": "2025-05-06", "time": "09:30"},
            "attendees": ["Bob"],
        },
    ),
    (
        "把“早上好”翻译成英文",
        properties("text", "target_language", text=S, target_language=S),
        {"text": "早上好", "target_language": "英文"},
    ),
    ("北京的天气怎么样？", properties("city", city=about(S, "城市")), {"city": "北京"}),
    (
        "预订4人的晚餐",
        properties("guests", "meal", guests=WHOLE, meal={"enum": ["早餐", "午餐", "晚餐"]}),
        {"guests": 4, "meal": "晚餐"},
    ),
]


@pytest.mark.parametrize(
    ("question", "schema", "arguments"), FILLED, ids=[row[0] for row in FILLED]
)
def test_values_are_found_in_the_question(
    question: str, schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    filled = fill(analyse(question), schema)
    assert (filled.arguments, filled.missing) == (arguments, ())


@pytest.mark.parametrize(
    ("question", "schema", "missing"),
    [
        (
            "Reserve a table",
            properties("restaurant", "guests", restaurant=S, guests=WHOLE),
            ("restaurant", "guests"),
        ),
        ("Reserve for 2.5 guests", properties("guests", guests=WHOLE), ("guests",)),
        (
            "Reserve for 40 guests",
            properties("guests", guests={**WHOLE, "maximum": 10}),
            ("guests",),
        ),
        ("Choose something", properties("mode", mode={"enum": ["fast", "slow"]}), ("mode",)),
        ("Begin on 2025-02-30", properties("day", day=DATE), ("day",)),
        ("Delete everything", properties("path", path=S), ("path",)),
        ("Store this", properties("data", data={"type": "object"}), ("data",)),
        ("Meet", properties("start", start=properties("date", date=DATE)), ("start.date",)),
        ("Turn it on or off", properties("enabled", enabled=B), ("enabled",)),
    ],
)
def test_a_required_value_that_is_not_there_is_missed_and_not_invented(
    question: str, schema: dict[str, Any], missing: tuple[str, ...]
) -> None:
    assert fill(analyse(question), schema).missing == missing


def test_a_schema_that_contains_itself_comes_to_an_end() -> None:
    node = {"type": "object", "properties": {"name": S, "next": {"$ref": "#/$defs/Node"}}}
    schema = {**properties("first", first={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}
    assert fill(analyse("named 'x'"), schema).arguments == {"first": {"name": "x"}}
    circle = {**properties("a", a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert fill(analyse("'x'"), circle).arguments == {"a": "x"}


def test_one_number_is_not_used_twice() -> None:
    schema = properties("guests", guests=WHOLE, nights=WHOLE, children=WHOLE)
    assert fill(analyse("a table for 4 guests"), schema).arguments == {"guests": 4}


TEXTS = st.lists(
    st.sampled_from(
        "What is 15% of 2480 ? 'Blue Lagoon' for 4 guests dinner to Alice in Paris name: x on "
        "2025-03-04 at 19:30 three #42 A-1 https://a.b/c a@b.org not include city 在 北京 的 “猫” ( * -3.5 "
        "Asia/Tokyo".split()
    ),
    max_size=12,
).map(" ".join) | st.text(max_size=40)
SCALARS = st.sampled_from(
    [
        S,
        WHOLE,
        N,
        B,
        DATE,
        {"enum": ["a", "dinner", 3]},
        {**WHOLE, "minimum": 3},
        {**S, "maxLength": 8},
    ]
)
LEAVES = SCALARS | SCALARS.map(lambda item: {"type": "array", "items": item})
NAMES = st.sampled_from(
    "guests to city name text query date time path id amount timezone unit x".split()
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def named(fields: dict[str, Any]) -> st.SearchStrategy[Any]:
        required = st.lists(st.sampled_from(sorted(fields)), unique=True) if fields else st.just([])
        return required.map(lambda names: properties(*names, **fields))

    return st.dictionaries(NAMES, inner, max_size=4).flatmap(named)


SCHEMAS = objects(st.recursive(LEAVES, objects, max_leaves=5))


def test_an_item_of_a_list_keeps_to_the_length_that_the_list_allows() -> None:
    schema = properties("text", text={"type": "array", "items": {**S, "maxLength": 8}})
    assert fill(analyse("000000000"), schema).missing
    assert fill(analyse("'short'"), schema).arguments == {"text": ["short"]}


@given(question=TEXTS, schema=SCHEMAS)
def test_what_is_complete_satisfies_the_schema(question: str, schema: dict[str, Any]) -> None:
    filled = fill(analyse(question), schema)
    json.dumps(filled.arguments)
    if not filled.missing:
        jsonschema_rs.validate(schema, filled.arguments)
