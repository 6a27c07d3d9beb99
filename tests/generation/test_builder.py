"""What a generation is built with."""

from dataclasses import fields

import pytest

from session_runtime.config.tools import SearchSettings
from session_runtime.search import FieldWeights


@pytest.mark.requirement("TS-8")
def test_the_configured_weights_start_as_those_that_the_search_has_without_a_daemon() -> None:
    configured = dict(SearchSettings())
    known = {field.name for field in fields(FieldWeights)}
    assert configured.keys() <= known
    assert configured == {name: getattr(FieldWeights(), name) for name in configured}
