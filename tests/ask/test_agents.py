"""Sub-agents in whole asks: what they see, what they may do, what is told of them, how they end."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from session_runtime import AskEvent, AskRequest, Identity
from session_runtime.testing.replies import reply_calls, reply_error, reply_text
from session_runtime.testing.upstream import Upstream
from session_runtime.types import (
    Notice,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from tests.ask.agent_plays import BY, CONFIG, SHARED, USAGE, Play, calls, played, recorded
from tests.support import ECHO, HANGS, ask, chat_profile, opened, write_agent, write_handler


@pytest.mark.requirement("ASK-11")
async def test_an_agent_answers_a_call_with_what_it_found_by_its_own_tools(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared", code=BY)
    write_handler(root, "other")
    write_agent(root, "writer", prompt="W", settings=SHARED, tools={"draft": ECHO})
    play = Play(
        {
            "": [calls("writer", task="Write it."), reply_text("Done.", usage=USAGE)],
            "W": [
                reply_calls(("shared", {}), ("agents__writer__draft", {})),
                reply_text("It is written.", usage=USAGE),
            ],
        }
    )
    asked = await played(tmp_path, play)
    assert asked.result.text == "Done."
    assert play.tools("") == ["other", "shared", "writer"]
    assert play.tools("W") == ["agents__writer__draft", "shared"]
    assert play.requests["W"][0]["messages"] == [
        {"role": "system", "content": "W"},
        {"role": "user", "content": "Write it."},
    ]
    assert play.said("") == "It is written."
    assert play.requests["W"][1]["messages"][-2]["content"] == f"c0/c0 {asked.result.ask_id}:c0/c0"


@pytest.mark.requirement("ASK-11")
async def test_what_an_agent_does_is_told_as_part_of_the_ask_and_its_text_is_not(
    tmp_path: Path,
) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_agent(root, "writer", prompt="W", settings=SHARED)
    play = Play(
        {
            "": [calls("writer", task="x"), reply_text("Done.", usage=USAGE)],
            "W": [calls("shared"), reply_text("secret thoughts", usage=USAGE)],
        }
    )
    asked = await played(tmp_path, play)
    turns = [(each.agent, each.step, each.exposed) for each in asked.of(TurnStarted)]
    assert turns == [
        (None, 1, ("shared", "writer")),
        ("writer", 1, ("shared",)),
        ("writer", 2, ("shared",)),
        (None, 2, ("shared", "writer")),
    ]
    started = [(each.agent, each.call_id, each.name) for each in asked.of(ToolStarted)]
    assert started == [(None, "c0", "writer"), ("writer", "c0/c0", "shared")]
    finished = [(each.agent, each.call_id) for each in asked.of(ToolFinished)]
    assert finished == [("writer", "c0/c0"), (None, "c0")]
    assert "".join(each.text for each in asked.of(TextDelta)) == "Done."
    assert asked.result.steps == 2
    assert asked.result.usage.model_calls == 4


@pytest.mark.requirement("ASK-11")
async def test_the_trace_holds_the_turns_of_agents(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_agent(root, "writer", prompt="W", settings=SHARED)
    play = Play(
        {
            "": [calls("writer", task="x"), reply_text("Done.")],
            "W": [calls("shared"), reply_text("ok")],
        }
    )
    [agent] = (await recorded(tmp_path, play)).agents
    assert (agent.agent, agent.call_id, agent.outcome, agent.error_code) == (
        "writer",
        "c0",
        "answered",
        None,
    )
    assert [[call.name for call in turn.calls] for turn in agent.turns] == [["shared"], []]


@pytest.mark.requirement("ASK-11")
async def test_agents_call_those_that_let_them_and_neither_themselves_nor_who_called_them(
    tmp_path: Path,
) -> None:
    root = tmp_path / "tools"
    for name, callers in (("a", '["main", "b"]'), ("b", '["a"]'), ("c", '["main"]')):
        settings = f'tools = ["*"]\ncallers = {callers}\n'
        write_agent(root, name, prompt=name.upper(), settings=settings)
    play = Play(
        {
            "": [calls("a", task="x"), reply_text("Done.")],
            "A": [calls("b", task="y"), reply_text("a is done")],
            "B": [calls("a", task="z"), reply_text("b is done")],
        }
    )
    await played(tmp_path, play)
    assert (play.tools(""), play.tools("A"), play.tools("B")) == (["a", "c"], ["b"], [])
    assert "there is no tool named 'a' here" in play.said("B")
    assert play.said("A") == "b is done"


@pytest.mark.requirement("ASK-11")
@pytest.mark.parametrize("searching", [False, True])
async def test_an_agent_that_only_others_may_call_is_not_there_for_the_model_of_the_ask(
    tmp_path: Path, searching: bool
) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_agent(root, "inner", prompt="I", settings='callers = ["outer"]\n')
    first = calls("tool_search", query="select:inner") if searching else calls("inner", task="x")
    skills = f"tool_search_enabled = {str(searching).lower()}\ntool_search_always_loaded = []\n"
    play = Play({"": [first, reply_text("Then not.")], "I": []})
    asked = await played(tmp_path, play, more=skills)
    assert "inner" not in json.dumps(play.requests[""][0])
    [finished] = asked.of(ToolFinished)
    assert finished.error_code == (None if searching else "tool.unknown")
    assert not searching or json.loads(play.said(""))["not_found"] == ["inner"]


@pytest.mark.requirement("ASK-11")
async def test_the_depth_of_agents_is_bounded(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    for name in ("a", "b", "c"):
        write_agent(
            root, name, prompt=name.upper(), settings='tools = ["*"]\ncallers = ["main", "*"]\n'
        )
    play = Play(
        {
            "": [calls("a", task="x"), reply_text("Done.")],
            "A": [calls("b", task="y"), reply_text("ok")],
            "B": [reply_text("ok")],
        }
    )
    await played(tmp_path, play, more="[agents]\nmax_depth = 2")
    assert (play.tools("A"), play.tools("B")) == (["b", "c"], [])


@pytest.mark.requirement("ASK-11")
@pytest.mark.parametrize(
    ("limit", "settings", "code"),
    [
        ("max_tool_calls = 2", "", "limit.calls"),
        ("max_total_tokens = 15", "", "limit.tokens"),
        ("", "max_steps = 1\n", "limit.steps"),
        ("", "max_tool_calls = 1\n", "limit.calls"),
    ],
)
async def test_budgets_are_shared_and_an_agent_has_its_own_beside(
    tmp_path: Path, limit: str, settings: str, code: str
) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_agent(root, "writer", prompt="W", settings=SHARED + settings)
    again = [reply_calls(("shared", {"n": at}), text="So far.") for at in range(9)]
    play = Play({"": [calls("writer", task="x"), *([reply_text("So what.")] * 2)], "W": again})
    record = await recorded(tmp_path, play, f"[ask]\n{limit}")
    [agent] = record.agents
    assert (agent.outcome, agent.error_code) == ("limit", code)
    [call] = record.turns[0].calls
    assert (call.name, call.status, call.error_code) == ("writer", "error", "agent.limit")


@pytest.mark.requirement("ASK-11")
async def test_an_agent_whose_model_fails_is_a_failed_call_and_the_ask_goes_on(
    tmp_path: Path,
) -> None:
    write_agent(tmp_path / "tools", "writer", prompt="W")
    refusal = reply_error(400, "no such thing")
    play = Play({"": [calls("writer", task="x"), reply_text("A pity.")], "W": [refusal]})
    asked = await played(tmp_path, play)
    [finished] = asked.of(ToolFinished)
    assert (finished.status, finished.error_code) == ("error", "agent.failed")
    assert asked.result.text == "A pity."


@pytest.mark.requirement("ASK-11")
async def test_who_asks_limits_what_an_agent_may_use(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_handler(root, "secret")
    write_agent(root, "writer", prompt="W", settings='tools = ["*"]\n', tools={"draft": ECHO})
    rules = '[access.rules.no]\nroles = ["guest"]\ndeny = ["secret"]\n'
    for role, seen in (("guest", ["shared"]), ("staff", ["secret", "shared"])):
        play = Play({"": [calls("writer", task="x"), reply_text("Done.")], "W": [reply_text("ok")]})
        request = AskRequest(text="go", identity=Identity(roles=frozenset({role})))
        await played(tmp_path, play, more=rules, request=request)
        assert play.tools("W") == ["agents__writer__draft", *seen]


@pytest.mark.requirement("ASK-11")
async def test_nothing_of_an_agents_own_tools_can_be_seen_or_called_by_the_model_of_the_ask(
    tmp_path: Path,
) -> None:
    root = tmp_path / "tools"
    for at in range(3):
        write_handler(root, f"shared{at}")
    write_agent(root, "writer", prompt="W", tools={"draft": ECHO})
    search = calls("tool_search", query="draft")
    play = Play(
        {"": [search, calls("agents__writer__draft"), reply_text("No.")], "W": []},
    )
    skills = "tool_search_enabled = true\ntool_search_always_loaded = []\n"
    asked = await played(tmp_path, play, more=skills)
    sent = json.dumps(play.requests[""][0])
    assert "draft" not in sent
    first, second = asked.of(ToolFinished)
    assert (first.name, second.status, second.error_code) == (
        "tool_search",
        "refused",
        "tool.unknown",
    )
    assert "agents__writer__draft" in play.said("")
    assert "agents.writer" not in play.said("")


@pytest.mark.requirement("ASK-11")
async def test_a_destructive_call_of_an_agent_asks_nobody_and_does_not_run(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared", runtime={"destructive": True})
    write_agent(root, "writer", prompt="W", settings=SHARED)
    play = Play(
        {
            "": [calls("writer", task="x"), reply_text("Please do it.")],
            "W": [calls("shared"), reply_text("It needs a yes.")],
        }
    )
    asked = await played(tmp_path, play)
    assert (asked.result.outcome, asked.result.pending) == ("answered", ())
    assert "a person has to agree" in play.said("W")


@pytest.mark.requirement("ASK-10")
@pytest.mark.parametrize(
    ("mode", "lines"),
    [
        ("none", []),
        ("agent", ["calling a", "calling b"]),
        ("tools", ["calling a", "calling shared"]),
        ("clean", ["calling a", "calling b", "calling shared"]),
        ("all", ["calling a", "calling b", "calling shared"]),
    ],
)
async def test_calls_of_agents_are_announced_as_the_mode_says(
    tmp_path: Path, mode: str, lines: list[str]
) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_agent(root, "a", prompt="A", settings='tools = ["b"]\n')
    write_agent(root, "b", prompt="B", settings='tools = ["shared"]\ncallers = ["a"]\n')
    play = Play(
        {
            "": [calls("a", task="x"), reply_text("Done.")],
            "A": [calls("b", task="y"), reply_text("ok")],
            "B": [calls("shared"), reply_text("ok")],
        }
    )
    asked = await played(tmp_path, play, more=f'[notices]\nmode = "{mode}"\n')
    assert [each.text for each in asked.of(Notice)] == lines


async def test_several_arguments_are_given_to_the_agent_as_json(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"city": {}, "days": {}}}
    write_agent(tmp_path / "tools", "writer", prompt="W", parameters=schema)
    play = Play(
        {"": [calls("writer", city="Köln", days=2), reply_text("Done.")], "W": [reply_text("ok")]}
    )
    await played(tmp_path, play)
    assert play.said("W") == '{"city": "Köln", "days": 2}'


@pytest.mark.requirement("ASK-11")
async def test_an_agent_of_an_unknown_model_or_server_is_left_out_alone(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_agent(root, "good", prompt="G")
    write_agent(root, "odd", prompt="O", settings='model = "mian"\nservers = ["x"]\n')
    config = CONFIG.format(tools=str(root), more="") + chat_profile("http://127.0.0.1:1/v1")
    async with opened(tmp_path, config) as runtime:
        [bad] = runtime.generation.catalog.quarantined
    assert bad.name == "odd"
    assert bad.reason.startswith(
        'agent.toml: model: no profile of [models] has this name (given: "mian")'
    )
    assert "servers: there is no server 'x'" in bad.reason


@pytest.mark.requirement("ASK-11")
async def test_cancelling_the_ask_cancels_what_an_agent_runs(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    cancelled: list[str] = []
    write_handler(root, "shared", code=HANGS)
    write_agent(root, "writer", prompt="W", settings=SHARED)
    play = Play({"": [calls("writer", task="x")], "W": [calls("shared")]})
    config = CONFIG.format(tools=str(root), more="")
    running = asyncio.Event()

    def emit(event: AskEvent) -> None:
        if isinstance(event, ToolProgress):
            running.set()

    async with (
        Upstream(play) as upstream,
        opened(
            tmp_path, config + chat_profile(upstream.base_url), resources={"cancelled": cancelled}
        ) as runtime,
    ):
        asked = asyncio.create_task(runtime.ask(AskRequest(text="go"), emit))
        await running.wait()
        asked.cancel()
        await asyncio.wait([asked])
    assert cancelled == ["c0/c0"]


@pytest.mark.requirement("ASK-11")
async def test_long_results_are_read_by_whoever_got_them_alone(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    long = "async def execute(args, context):\n    return args['of'] * 30_000\n"
    for name in ("shared", "mine"):
        write_handler(root, name, code=long)
    write_agent(root, "writer", prompt="W", settings='tools = ["shared", "results.read"]\n')
    reading, second = (calls("results__read", reference=f"result_{n}") for n in (1, 2))
    play = Play(
        {
            "": [calls("mine", of="m"), calls("writer", task="x"), reading, reply_text("Done.")],
            "W": [reading, calls("shared", of="s"), second, reply_text("ok")],
        }
    )
    config = f"[handlers]\npaths = ['{root}']\n[skills]\nprefetch_tools = []\n"
    async with Upstream(play) as upstream:
        async with opened(tmp_path, config + chat_profile(upstream.base_url)) as runtime:
            await ask(runtime, AskRequest(text="go"))
    first, _, third = (each["messages"][-1]["content"] for each in play.requests["W"][1:])
    assert "There is no result" in first
    assert ("sss" in third, "mmm" in third) == (True, False)
    assert "mmm" in play.said("")


@pytest.mark.requirement("ASK-11")
@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_broke_off_says_so(tmp_path: Path, reason: str) -> None:
    write_agent(tmp_path / "tools", "writer", prompt="W")
    cut = replace(reply_text("The three files are"), finish_reason=reason)
    play = Play({"": [calls("writer", task="x"), reply_text("Done.")], "W": [cut]})
    await played(tmp_path, play)
    assert play.said("") == f"The three files are\n(This answer was cut off: {reason}.)"


async def test_the_limit_that_is_told_is_the_one_that_is_reached(tmp_path: Path) -> None:
    root = tmp_path / "tools"
    write_handler(root, "shared")
    write_agent(root, "writer", prompt="W", settings=SHARED)
    again = [calls("shared", n=at) for at in range(4)]
    play = Play({"": [calls("writer", task="x"), reply_text("So what.")], "W": again})
    record = await recorded(tmp_path, play, "[ask]\nmax_tool_calls = 2\n")
    assert record.agents[0].error_code == "limit.calls"
    assert "the limit of 2 tool calls is reached" in play.said("")
