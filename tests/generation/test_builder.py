"""What a generation is built with."""

from dataclasses import fields
from pathlib import Path

import pytest

from session_runtime.app.reader import ConfigReader
from session_runtime.app.runtime import bundled_handlers
from session_runtime.config.tools import SearchSettings
from session_runtime.errors import ConfigError
from session_runtime.generation import Generation, GenerationBuilder
from session_runtime.models.limited import LimitedModel
from session_runtime.registry.registry import Registry
from session_runtime.search import FieldWeights
from tests.support import put_in_force, write_config


@pytest.mark.requirement("TS-8")
def test_the_configured_weights_start_as_those_that_the_search_has_without_a_daemon() -> None:
    configured = dict(SearchSettings())
    assert configured.pop("synonyms") == ()
    known = {field.name for field in fields(FieldWeights)}
    assert configured.keys() == known
    assert configured == {name: getattr(FieldWeights(), name) for name in configured}


TWINS = """
[models.main]
wire = "offline"
max_concurrency = {most}
fallback = "twin"
[models.twin]
wire = "offline"
max_concurrency = 2
[models.free]
wire = "offline"
"""


async def next_generation(building: GenerationBuilder, folder: Path, text: str) -> Generation:
    await put_in_force(ConfigReader(write_config(folder, text), {})(), building)
    return building.generations.current


@pytest.mark.requirement("INT-1b")
async def test_a_limit_of_requests_is_that_of_a_profile_and_goes_on_over_a_reload(
    tmp_path: Path,
) -> None:
    building = GenerationBuilder(Registry(), bundled_handlers())
    first = await next_generation(building, tmp_path, TWINS.format(most=2))
    reloaded = await next_generation(
        building, tmp_path, "[ask]\nmax_steps = 3" + TWINS.format(most=2)
    )
    edited = await next_generation(building, tmp_path, TWINS.format(most=3))
    models = [{name: p.model for name, p in g.profiles.items()} for g in (first, reloaded, edited)]
    assert [isinstance(model, LimitedModel) for model in models[0].values()] == [True, True, False]
    assert models[0]["main"] is not models[0]["twin"]
    assert models[0] == models[1]
    assert models[2]["main"] is not models[1]["main"]
    assert models[2]["twin"] is models[1]["twin"]
    await building.generations.aclose()


@pytest.mark.requirement("ASK-9b")
async def test_fallbacks_follow_one_another_to_the_end_of_the_chain(tmp_path: Path) -> None:
    building = GenerationBuilder(Registry(), bundled_handlers())
    generation = await next_generation(building, tmp_path, TWINS.format(most=1))
    chains = {
        name: [following.name for following in generation.fallbacks(profile)]
        for name, profile in generation.profiles.items()
    }
    assert chains == {"main": ["twin"], "twin": [], "free": []}
    await building.generations.aclose()


BAD_SCRIPTS = """
[models.one]
wire = "scripted"
script = "one.json"
[models."gpt-4.1"]
wire = "scripted"
script = "two.json"
[models.three]
wire = "scripted"
script = "one.json"
"""


@pytest.mark.requirement("CFG-1")
async def test_every_script_that_cannot_be_used_is_told_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{}")
    (tmp_path / "two.json").write_text('{\n"replies": 3')
    assert await refused(tmp_path, BAD_SCRIPTS) == [
        f'config.toml:7: models."gpt-4.1".script: {tmp_path / "two.json"}: not valid JSON: EOF while'
        " parsing an object at line 2 column 12",
    ]
    (tmp_path / "one.json").write_text('{"replys": []}')
    told = f"{tmp_path / 'one.json'}: replys: unknown key; did you mean replies?"
    assert [
        problem for problem in await refused(tmp_path, BAD_SCRIPTS) if "one.json" in problem
    ] == [
        f"config.toml:4: models.one.script: {told}",
        f"config.toml:10: models.three.script: {told}",
    ]


async def refused(folder: Path, text: str) -> list[str]:
    building = GenerationBuilder(Registry(), bundled_handlers())
    with pytest.raises(ConfigError) as caught:
        await building.prepare(ConfigReader(write_config(folder, text), {})())
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.requirement("TS-8")
async def test_words_that_an_operator_calls_the_same_find_each_other_from_the_next_generation_on(
    tmp_path: Path,
) -> None:
    place = tmp_path / "tools" / "zoo" / "okapi"
    place.mkdir(parents=True)
    (place / "config.json").write_text(
        '{"type": "function", "function": {"name": "zoo.okapi", "description": "Shows an okapi",'
        ' "parameters": {"type": "object", "properties": {}}}}'
    )
    (place / "handler.py").write_text("def execute(args, context):\n    return ''\n")
    text = '[handlers]\npaths = ["tools"]\n[models.main]\nwire = "offline"\n'
    building = GenerationBuilder(Registry(), bundled_handlers())
    plain = await next_generation(building, tmp_path, text)
    assert plain.index.rank("forestgiraffe", 5) == []
    grouped = await next_generation(
        building, tmp_path, f'{text}[search]\nsynonyms = ["Okapi forestgiraffe 鹿"]\n'
    )
    for word in ("forestgiraffe", "ForestGiraffe", "鹿"):
        assert [name for name, _ in grouped.index.rank(word, 1)] == ["zoo.okapi"]
    assert plain.index.rank("forestgiraffe", 5) == []
    await building.generations.aclose()
