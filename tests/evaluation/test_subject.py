"""A case is put as an ask would search: over the visible tools, with what is loaded anyway left out."""

import itertools
from collections.abc import Sequence

from session_runtime.config.settings import Settings
from session_runtime.config.tools import SearchSettings, SkillsSettings
from session_runtime.evaluation import Case, Subject, evaluate
from session_runtime.generation import schema_tokens
from session_runtime.registry.spec import ToolSpec


def tool(name: str, description: str) -> ToolSpec:
    return ToolSpec(name, description, {"type": "object"}, "virtual", "", name, "")


TOOLS = (
    tool("send_message", "Sends a message about the weather."),
    tool("weather.forecast", "Tells the weather of the next days."),
    tool("weather.past", "Tells the weather of past days."),
    tool("music.play", "Plays a song."),
)


def subject(specs: Sequence[ToolSpec] = TOOLS, **skills: object) -> Subject:
    return Subject.of_tools(specs, Settings(skills=SkillsSettings.model_validate(skills)))


def test_the_ranking_has_all_tools_and_the_load_only_what_was_held_back() -> None:
    (outcome,) = evaluate(subject(), [Case(1, "weather", ("weather.past",))])
    assert outcome.found == ("weather.forecast", "weather.past", "send_message")
    assert outcome.loaded == ("weather.forecast", "weather.past")
    assert outcome.wasted == 1
    assert outcome.tokens == schema_tokens(TOOLS[1]) + schema_tokens(TOOLS[2])


def test_no_more_is_loaded_than_a_search_may_load() -> None:
    (outcome,) = evaluate(
        subject(tool_search_max_results=1), [Case(1, "weather", ("weather.past",))]
    )
    assert outcome.loaded == ("weather.forecast",)
    assert outcome.ranks == {"weather.past": 2}


def test_every_case_is_put_for_itself() -> None:
    cases = [Case(line, "weather", ("weather.past",)) for line in (1, 2)]
    first, second = evaluate(subject(), cases)
    assert (first.found, first.loaded) == (second.found, second.loaded)


def test_a_query_without_a_word_finds_and_loads_nothing() -> None:
    (outcome,) = evaluate(subject(), [Case(1, "+", ("music.play",))])
    assert (outcome.found, outcome.loaded, outcome.tokens) == ((), (), 0)


def test_the_time_of_the_ranking_alone_counts() -> None:
    ticks = itertools.count(0, 0.5)
    outcomes = evaluate(
        subject(), [Case(1, "weather", ("a",)), Case(2, "song", ("a",))], lambda: next(ticks)
    )
    assert [outcome.seconds for outcome in outcomes] == [0.5, 0.5]


def test_configured_weights_decide_the_ranking() -> None:
    tools = (tool("rain.alarm", "Rings."), tool("bell", "Rings when there is rain."))
    cases = [Case(1, "rain when", ("bell",))]
    by_name = Subject.of_tools(tools, Settings(search=SearchSettings(description=0)))
    as_given = Subject.of_tools(tools, Settings(search=SearchSettings(name=0, namespace=0)))
    assert "bell" not in evaluate(by_name, cases)[0].found
    assert evaluate(as_given, cases)[0].found[0] == "bell"


def test_wanted_names_that_no_tool_has_are_told() -> None:
    cases = [Case(1, "a", ("music.play", "music.plya")), Case(2, "b", ("nope",))]
    assert subject().unknown(cases) == [(cases[0], "music.plya"), (cases[1], "nope")]
