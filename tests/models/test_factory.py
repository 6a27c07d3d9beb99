"""Opening the model of a profile, and which profiles may share one."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime.config.models import ModelProfile
from session_runtime.errors import ConfigError
from session_runtime.models.chat import ChatModel
from session_runtime.models.deferred import DeferredModel
from session_runtime.models.factory import open_model, profile_digest
from session_runtime.models.responses import ResponsesModel
from session_runtime.models.scripted import ScriptedModel
from tests.models.building import KEY, profile


def scripted(path: Path) -> ModelProfile:
    return ModelProfile(wire="scripted", script=path)


@pytest.mark.requirement("INT-1")
async def test_each_wire_opens_its_model(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("{}", "utf-8")
    profiles = [
        profile("http://model.test/v1"),
        profile("http://model.test/v1", wire="responses"),
        scripted(script),
        ModelProfile(wire="offline"),
    ]
    models = [open_model("main", settings) for settings in profiles]
    kinds = [ChatModel, ResponsesModel, ScriptedModel, DeferredModel]
    assert [type(model) for model in models] == kinds
    for model in models:
        await model.aclose()


def test_a_script_that_cannot_be_read_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        open_model("main", scripted(tmp_path / "nowhere.json"))


def test_an_address_that_is_none_is_a_fault_of_the_configuration() -> None:
    settings = profile("http://model.test/v1").model_copy(update={"base_url": "http://h:x/v1"})
    with pytest.raises(ConfigError, match=r"models\.main\.base_url: is no address"):
        open_model("main", settings)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"timeout_s": 9.0},
        {"api_key": "another"},
        {"api_key": None},
        {"chain": False},
    ],
)
def test_profiles_that_differ_in_anything_have_different_digests(change: dict[str, Any]) -> None:
    same = profile_digest(profile("http://model.test/v1"))
    assert same == profile_digest(profile("http://model.test/v1"))
    assert same != profile_digest(profile("http://model.test/v1", **change))


@pytest.mark.requirement("CFG-4")
def test_a_digest_shows_no_key() -> None:
    assert KEY not in profile_digest(profile("http://model.test/v1"))


def test_a_script_that_was_edited_is_another_model(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("{}", "utf-8")
    before = profile_digest(scripted(script))
    assert profile_digest(scripted(script)) == before
    script.write_text('{"replies": []}', "utf-8")
    assert profile_digest(scripted(script)) != before
