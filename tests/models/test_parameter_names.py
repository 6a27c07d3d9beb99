"""Names of parameters that a service refuses: other ones are sent, and the tool gets its own back."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_runtime.models.parameter_names import ParameterNames

ODATA = {
    "type": "object",
    "properties": {"$top": {"type": "integer"}, "_top": {}, "filter[id]": {}, "name": {}},
    "required": ["$top", "name"],
}


def test_unfit_names_are_replaced_and_fit_ones_stay() -> None:
    assert ParameterNames(ODATA).schema(ODATA) == {
        "type": "object",
        "properties": {"_top_2": {"type": "integer"}, "_top": {}, "filter_id_": {}, "name": {}},
        "required": ["_top_2", "name"],
    }


def test_arguments_go_out_and_come_back_under_the_right_names() -> None:
    names, own = ParameterNames(ODATA), {"$top": 5, "_top": 1, "other": [2]}
    assert names.sent(own) == {"_top_2": 5, "_top": 1, "other": [2]}
    assert json.loads(names.own('{"_top_2": 5, "_top": 1, "other": [2]}')) == own


@pytest.mark.parametrize(
    "text",
    [
        '{"_top_2": 1, "_top_2": 2}',
        '{"$top": 1, "_top_2": 2}',
        "{",
        "",
        "[1]",
        '{"name": 1.50}',
        '{"a": ' * 100_000,
    ],
)
def test_arguments_without_such_a_name_come_back_as_they_are(text: str) -> None:
    assert ParameterNames(ODATA).own(text) == text


def test_a_schema_whose_names_all_fit_is_sent_as_it_is() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a.b-c": {}}}
    assert ParameterNames(schema).schema(schema) is schema
    assert ParameterNames(schema).own('{ "a.b-c": 1 }') == '{ "a.b-c": 1 }'


@given(st.lists(st.text(max_size=70), unique=True, max_size=8))
def test_whatever_parameters_are_called_all_names_fit_and_lead_back(given: list[str]) -> None:
    schema = {"type": "object", "properties": {name: {} for name in given}}
    names, arguments = ParameterNames(schema), {name: at for at, name in enumerate(given)}
    sent = names.schema(schema)["properties"]
    assert len(sent) == len(given)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name) for name in sent)
    assert json.loads(names.own(json.dumps(names.sent(arguments)))) == arguments
