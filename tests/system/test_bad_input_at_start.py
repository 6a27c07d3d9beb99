"""What operators get wrong: a daemon that cannot start says why; a bad tool costs itself alone."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from session_runtime.errors import ConfigError
from tests.support import ask, calls, opened, says, scripted, tool_folder, write_handler
from tests.system.test_daemon import bare_environment, command, daemon

PROFILE = '[models.main]\nbase_url = "http://127.0.0.1:9/v1"\nmodel = "m"\n'

# config.toml ({0} is its folder), words of what the daemon says
CONFIGURATIONS = {
    "broken TOML": ("[ask\nmax_steps = 3\n", "config.toml:1"),
    "an empty file": ("", "is empty"),
    "an unknown key": ("[ask]\nmax_step = 3\n", "did you mean max_steps?"),
    "an unknown section": ("[aks]\nmax_steps = 3\n", "did you mean ask.max_steps?"),
    "a wrong type": ('[ask]\n\nmax_steps = "3"\n', "config.toml:3: ask.max_steps"),
    "a number out of range": ("[ask]\nmax_steps = 0\n", "config.toml:2: ask.max_steps"),
    "a secret file that is not there": (
        '[runtime]\nsecret_sources = ["file:{0}"]\n' + PROFILE + 'api_key = "file:{0}/key"\n',
        "/key",
    ),
    "a secret that may not be read": (
        PROFILE + 'api_key = "file:/etc/hostname"\n',
        "runtime.secret_sources",
    ),
    "a script that is not there": (
        '[models.main]\nwire = "scripted"\nscript = "gone.json"\n',
        "gone.json",
    ),
    "a folder of tools that is not there": ('[handlers]\npaths = ["gone"]\n', "gone"),
}


async def start(config: Path, *options: str) -> tuple[int | None, str]:
    """Start a daemon that is expected to end by itself: its exit code and what it said."""
    process = await asyncio.create_subprocess_exec(
        *command(config), *options, stderr=asyncio.subprocess.PIPE, env=bare_environment()
    )
    try:
        async with asyncio.timeout(30):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode()


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("fault", CONFIGURATIONS)
async def test_a_configuration_that_cannot_be_used_ends_the_start_with_the_reason(
    tmp_path: Path, fault: str
) -> None:
    text, words = CONFIGURATIONS[fault]
    config = tmp_path / "config.toml"
    config.write_text(text.format(tmp_path), encoding="utf-8")
    code, said = await start(config)
    assert code == 78
    assert words in said
    assert "Traceback" not in said


async def test_a_start_that_failed_is_in_nobodys_way_once_the_fault_is_mended(
    tmp_path: Path,
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(CONFIGURATIONS["a folder of tools that is not there"][0], encoding="utf-8")
    assert (await start(config))[0] == 78
    write_handler(tmp_path / "gone", "good")
    async with daemon(config) as running:
        assert running.url.startswith("http://127.0.0.1:")


async def test_a_port_in_use_ends_the_start_with_the_way_out(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("# defaults\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = await start(config, "--port", str(port))
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert "set http.port (--port) to another one" in said
    assert "Traceback" not in said


def config_json(**changes: object) -> str:
    function = {"name": "bad", "description": "Is bad.", "parameters": {"type": "object"}}
    return json.dumps({"type": "function", "function": {**function, **changes}})


def schema_of(x: object) -> str:
    return config_json(parameters={"type": "object", "properties": {"x": x}})


# config.json of the tool (None: there is none), words of the reason
DEFINITIONS = {
    "no config.json": (None, "config.json"),
    "an empty one": ("", "config.json"),
    "broken JSON": ('{"type": "function"', "config.json"),
    "JSON nested too deeply": ("[" * 10_000 + "]" * 10_000, "recursion limit"),
    "a schema nested too deeply": (
        config_json().replace('{"type": "object"}', '{"items":' * 10_000 + "{}" + "}" * 10_000),
        "recursion limit",
    ),
    "no object": ("[]", "object"),
    "another name": (config_json(name="other"), "other"),
    "an unknown field": (config_json(strict=True), "strict"),
    "a schema that is none": (schema_of({"type": "text"}), "properties.x.type"),
    "a schema of a list": (config_json(parameters={"type": "array"}), '"type": "object"'),
    "a pattern that needs backtracking": (schema_of({"pattern": r"(a)\1"}), "linear-time"),
    "references in a circle": (
        config_json(
            parameters={
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}},
            }
        ),
        "circle",
    ),
}


@pytest.mark.requirement("REG-4")
@pytest.mark.parametrize("fault", DEFINITIONS)
async def test_a_bad_definition_costs_its_tool_and_no_other(tmp_path: Path, fault: str) -> None:
    content, words = DEFINITIONS[fault]
    write_handler(tmp_path / "tools", "good")
    config = write_handler(tmp_path / "tools", "bad") / "config.json"
    if content is None:
        config.unlink()
    else:
        config.write_text(content, encoding="utf-8")
    script = scripted(tmp_path, calls(("good", {}), ("bad", {})), says("done"))
    text = tool_folder(tmp_path) + "[skills]\nprefetch_tools = []\n" + script
    async with opened(tmp_path, text) as runtime:
        asked = await ask(runtime, "go")
        (quarantined,) = runtime.status()["quarantined"]
    assert (quarantined["name"], words in quarantined["reason"]) == ("bad", True), quarantined
    good, bad = (str(m.content) for m in asked.result.new_messages if m.role == "tool")
    assert (good, asked.result.text) == ('{"got":{}}', "done")
    assert "there is no tool named 'bad'" in bad


@pytest.mark.requirement("REG-7")
async def test_a_schema_that_refers_to_an_address_is_refused_and_nothing_is_fetched(
    tmp_path: Path,
) -> None:
    visitors: list[object] = []

    def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitors.append(writer.get_extra_info("peername"))
        writer.close()

    async with await asyncio.start_server(visited, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/schema.json"
        config = write_handler(tmp_path / "tools", "bad") / "config.json"
        config.write_text(schema_of({"$ref": address}), encoding="utf-8")
        write_handler(tmp_path / "tools", "good")
        async with opened(tmp_path, tool_folder(tmp_path)) as runtime:
            (quarantined,) = runtime.status()["quarantined"]
    assert "external reference" in quarantined["reason"]
    assert address in quarantined["reason"]
    assert visitors == []


@pytest.mark.requirement("REG-4")
async def test_two_tools_of_one_name_are_both_named_and_a_third_one_works(tmp_path: Path) -> None:
    write_handler(tmp_path / "one", "twin")
    write_handler(tmp_path / "two", "twin")
    write_handler(tmp_path / "one", "good")
    write_handler(tmp_path / "two", "also_good")
    paths = f'[handlers]\npaths = ["{tmp_path / "one"}", "{tmp_path / "two"}"]\n'
    async with opened(tmp_path, paths) as runtime:
        reasons = [bad["reason"] for bad in runtime.status()["quarantined"]]
        names = [tool["name"] for tool in runtime.tools()]
    assert all(str(tmp_path / folder / "twin") in "".join(reasons) for folder in ("one", "two"))
    assert {"good", "also_good"} <= set(names)
    assert "twin" not in names


async def test_a_folder_with_nothing_but_bad_tools_ends_the_start(tmp_path: Path) -> None:
    (write_handler(tmp_path / "tools", "bad") / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="bad"):
        async with opened(tmp_path, tool_folder(tmp_path)):
            pass
