"""Opening, describing and closing a runtime in this process."""

import asyncio
import json
from pathlib import Path

import pytest

from session_runtime import AskRequest, ConfigError, Identity, Runtime
from session_runtime.app.reader import ConfigReader
from tests.support import (
    HANGS,
    ask,
    calls,
    opened,
    says,
    scripted,
    write_config,
    write_handler,
)


@pytest.mark.requirement("CFG-6")
async def test_without_a_file_at_the_default_path_defaults_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with Runtime.open(env={"SESSION_RUNTIME__TRACE__ENABLED": "false"}) as runtime:
        result = await runtime.ask(AskRequest("What is 15% of 2480?"))
    assert "372" in result.text


@pytest.mark.requirement("CFG-6")
@pytest.mark.parametrize("by_variable", [True, False])
def test_a_named_file_that_is_absent_is_an_error(tmp_path: Path, by_variable: bool) -> None:
    missing = tmp_path / "nowhere.toml"
    env = {"SESSION_RUNTIME_CONFIG": str(missing)} if by_variable else {}
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        ConfigReader(None if by_variable else missing, env)()


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize("by_variable", [True, False])
async def test_a_dotenv_file_that_is_named_is_read(tmp_path: Path, by_variable: bool) -> None:
    file = tmp_path / "my.env"
    file.write_text("TOOL_SEARCH_MAX_RESULTS=4\n")
    env = {"SESSION_RUNTIME_ENV_FILE": str(file)} if by_variable else {}
    path = write_config(tmp_path, "[skills]\ntool_search_max_results = 2\n")
    env_file = None if by_variable else file
    async with Runtime.open(path, env=env, env_file=env_file) as runtime:
        assert runtime.generation.settings.skills.tool_search_max_results == 4


@pytest.mark.requirement("CFG-2")
async def test_a_dotenv_file_that_nobody_named_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("TOOL_SEARCH_MAX_RESULTS=4\n")
    async with opened(tmp_path, "[skills]\ntool_search_max_results = 2\n") as runtime:
        assert runtime.generation.settings.skills.tool_search_max_results == 2


@pytest.mark.requirement("CFG-2")
async def test_explicit_values_win_over_everything(tmp_path: Path) -> None:
    text = "[skills]\ntool_search_max_results = 2\n"
    explicit = {"skills.tool_search_max_results": 4}
    async with opened(tmp_path, text, explicit=explicit) as runtime:
        assert runtime.generation.settings.skills.tool_search_max_results == 4


@pytest.mark.requirement("REG-5")
async def test_tools_are_described_with_what_they_did_and_only_to_whom_they_are_permitted(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "a.good")
    write_handler(tmp_path / "tools", "a.bad", code="def execute(args, context):\n    1 / 0\n")
    text = '[handlers]\npaths = ["tools"]\nbundled = false\n[skills]\nprefetch_tools = []\n'
    text += '[access.rules.r]\nusers = ["guest"]\ndeny = ["a.bad"]\n'
    script = scripted(tmp_path, calls(("a.good", {}), ("a.bad", {})), says("done"))
    async with opened(tmp_path, text + script) as runtime:
        await ask(runtime, AskRequest("go", identity=Identity(user="boss")))
        bad, good = runtime.tools()
        permitted = runtime.tools(Identity(user="guest"))
    assert (good["name"], good["description"], good["source"]) == (
        "a.good",
        "Does a.good.",
        "handlers",
    )
    assert [good["statistics"][k] for k in ("calls", "ok", "failed", "imported")] == [1, 1, 0, True]
    assert [bad["statistics"][k] for k in ("calls", "ok", "failed")] == [1, 0, 1]
    assert "ZeroDivisionError" in bad["statistics"]["last_error"]
    assert [tool["name"] for tool in permitted] == ["a.good"]


@pytest.mark.requirement("REG-4")
async def test_a_bad_tool_costs_one_tool_and_is_named_in_the_status(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "good")
    write_handler(tmp_path / "tools", "bad", parameters={"type": "string"})
    async with opened(tmp_path, '[handlers]\npaths = ["tools"]\nbundled = false\n') as runtime:
        status = runtime.status()
    assert status["tools"] == 1
    assert [bad["name"] for bad in status["quarantined"]] == ["bad"]
    json.dumps(status)


@pytest.mark.requirement("REG-4")
async def test_a_configured_folder_without_a_usable_tool_is_a_loud_failure(tmp_path: Path) -> None:
    write_handler(tmp_path / "tools", "bad", parameters={"type": "string"})
    config = write_config(tmp_path, '[handlers]\npaths = ["tools"]\n')
    with pytest.raises(ConfigError, match="tools"):
        async with Runtime.open(config, env={}):
            raise AssertionError("it opened")


@pytest.mark.requirement("ASK-1")
async def test_a_closing_runtime_cancels_its_asks_with_a_reason(tmp_path: Path) -> None:
    code = "import asyncio\nasync def execute(a, c):\n    c.progress(0)\n    await asyncio.Event().wait()\n"
    write_handler(tmp_path / "tools", "hang", code=code)
    text = '[handlers]\npaths = ["tools"]\n[skills]\nprefetch_tools = []\n'
    script = scripted(tmp_path, calls(("hang", {})))
    started = asyncio.Event()
    async with opened(tmp_path, text + script) as runtime:
        asking = asyncio.create_task(
            runtime.ask(
                AskRequest("go"), lambda e: started.set() if e.type == "tool.progress" else 0
            )
        )
        await started.wait()
    result = await asking
    assert result.error is not None
    assert (result.outcome, result.error.message) == ("cancelled", "the runtime is closing")


@pytest.mark.requirement("OPS-1a")
async def test_each_ask_leaves_one_line_that_tells_its_turns_and_what_tool_search_saved(
    tmp_path: Path,
) -> None:
    for n in range(30):
        write_handler(tmp_path / "tools", f"group.tool_{n}", description="Some words. " * 20)
    text = '[handlers]\npaths = ["tools"]\n[skills]\ntool_search_enabled = true\n'
    text += '[trace]\npath = "trace.jsonl"\ncontent = true\n'
    script = scripted(
        tmp_path,
        calls(("tool_search", {"query": "select:group.tool_7"})),
        calls(("group.tool_7", {"password": "hunter2", "x": 1})),
        says("done"),
    )
    config = tmp_path / "config.toml"
    config.write_text(text + script)
    async with Runtime.open(config, env={}) as runtime:
        result = await runtime.ask(AskRequest("go", identity=Identity(user="u1")))
    (line,) = (tmp_path / "trace.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["ask_id"], record["outcome"]) == (result.ask_id, "answered")
    assert record["identity"]["user"] == "u1"
    assert record["tool_search"]["rule"] == "deferred"
    search, call = (turn["calls"][0] for turn in record["turns"][:2])
    assert search["search"]["loaded"] == ["group.tool_7"]
    assert call["arguments"] == {"password": "***", "x": 1}
    assert record["tokens_saved"] > 1000
    assert [len(turn["exposed"]) for turn in record["turns"]] == [3, 4, 4]
    assert 0 <= record["daemon_s"] <= record["duration_s"]
    assert "hunter2" not in line


@pytest.mark.requirement("OPS-1a")
async def test_a_turn_that_is_cut_off_is_in_the_trace_and_not_counted_as_the_daemons_time(
    tmp_path: Path,
) -> None:
    write_handler(tmp_path / "tools", "hang", code=HANGS)
    text = '[handlers]\npaths = ["tools"]\n[skills]\nprefetch_tools = []\n'
    config = tmp_path / "config.toml"
    config.write_text(text + scripted(tmp_path, calls(("hang", {}))))
    started = asyncio.Event()
    async with Runtime.open(config, env={}, resources={"cancelled": []}) as runtime:
        asking = asyncio.create_task(
            runtime.ask(
                AskRequest("go"), lambda e: started.set() if e.type == "tool.progress" else 0
            )
        )
        await started.wait()
        asking.cancel()
        await asyncio.wait([asking])
    (line,) = (tmp_path / ".session-runtime" / "trace.jsonl").read_text().splitlines()
    record = json.loads(line)
    (turn,) = record["turns"]
    assert (record["outcome"], turn["step"], turn["attempts"]) == ("cancelled", 1, 1)
    assert turn["tools_s"] > 0
    assert record["daemon_s"] == pytest.approx(
        record["duration_s"] - turn["tools_s"] - turn["model_s"], abs=0.001
    )
