"""Edits of the configuration over HTTP: what may be changed, from where, and what is told (NET-3)."""

import asyncio
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from session_runtime.config.history import FOLDER, History
from session_runtime.config.keys import dotted
from session_runtime.config.shape import leaves
from tests.support import write_handler
from tests.transports.configured import STEPS, code, here


@pytest.mark.requirement("NET-3")
async def test_a_harmless_key_is_changed_in_the_file_and_in_force(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        before = await one.tag()
        response = await one.patch({"ask.max_steps": 5, "skills.prefetch_tools": []}, before)
        receipt = response.json()
        assert (response.status_code, receipt["verdict"]) == (200, "applied")
        assert one.max_steps == 5
        assert one.file.read_text("utf-8").startswith(STEPS.replace("9", "5"))
        assert before != response.headers["etag"] == await one.tag()
        gone = await one.patch({"ask.max_steps": None})
        assert gone.json()["changes"][0]["new"] == one.max_steps == 32
    assert receipt["trigger"] == "http"
    assert [change["key"] for change in receipt["changes"]] == [
        "ask.max_steps",
        "skills.prefetch_tools",
    ]


@pytest.mark.requirement("NET-3")
@pytest.mark.parametrize(
    "values",
    [
        {"models.main.base_url": "http://evil.example"},
        {"models.main.api_key": "stolen"},
        {"handlers.paths": ["/tmp"]},
        {"handlers.entries.x.import": "os:system"},
        {"access.default": "allow"},
        {"http.keys.me.hash": f"sha256:{'0' * 64}"},
        {"runtime.secret_sources": ["env:*"]},
        {"ask.prompt_file": "/etc/passwd"},
        {"web.allow_networks": ["10.0.0.0/8"]},
        {"files.roots.all.path": "/"},
        {"ask.max_steps": 5, "features.beta": True},
        {"ask": {"max_steps": 5}},
        {"models": {}},
    ],
)
async def test_any_other_key_is_refused_over_the_network(
    tmp_path: Path, values: Mapping[str, object]
) -> None:
    async with here(tmp_path) as one:
        before = one.file.read_bytes()
        assert code(await one.patch(values)) == (403, "config.not_over_network")
        assert one.file.read_bytes() == before


@pytest.mark.requirement("NET-3")
async def test_a_section_as_a_whole_is_refused_with_how_to_name_a_key(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        answer = await one.patch({"notes": {"max_chars": 5}})
    assert code(answer) == (403, "config.not_over_network")
    assert answer.json()["error"]["message"].startswith(
        "notes is a section, which cannot be changed as a whole over the network: name a key in it,"
        " such as notes."
    )


@pytest.mark.requirement("REL-3")
async def test_an_edit_has_the_trigger_of_the_door_that_it_came_through(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        headers = {"if-match": "*"}
        for client, steps in ((one.client, 5), (one.control, 6)):
            await client.patch("/v1/config", json={"ask.max_steps": steps}, headers=headers)
        receipts = one.runtime.live.receipts.newest(2)
    assert [each.trigger for each in receipts] == ["cli", "http"]


@pytest.mark.requirement("NET-3")
def test_only_limits_lists_search_and_prompts_are_harmless() -> None:
    tables = [("models", "NAME"), ("access", "rules", "NAME"), ("http", "keys", "NAME")]
    tables += [("files", "roots", "NAME"), ("handlers", "entries", "NAME")]
    found = {dotted(path) for path, leaf in leaves(tables) if leaf.network}
    sections = {key.rpartition(".")[0] for key in found}
    assert sections == {
        *("runtime", "limits", "ask", "agents", "skills", "search", "models.NAME"),
        *("web", "files", "notes", "handlers"),
    }
    assert not [
        dotted(path)
        for path, leaf in leaves(tables)
        if leaf.network and (leaf.path or leaf.secret or leaf.anything or leaf.acts == "restart")
    ]


@pytest.mark.requirement("NET-4")
async def test_the_control_socket_may_change_every_key(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        response = await one.control.patch(
            "/v1/config", json={"features.beta": True}, headers={"if-match": await one.tag()}
        )
        assert one.runtime.generation.settings.features == {"beta": True}
    assert (response.status_code, response.json()["verdict"]) == (200, "applied")


@pytest.mark.requirement("NET-3")
async def test_an_edit_names_the_file_that_it_is_meant_for(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        tag = await one.tag()
        without = await one.client.patch("/v1/config", json={"ask.max_steps": 5})
        await one.patch({"ask.max_steps": 6}, tag)
        stale = await one.patch({"ask.max_steps": 7}, tag)
        one.file.write_text("[ask]\nmax_steps = 0\n", "utf-8")
        await one.client.post("/v1/config/reload")
        pending = await one.patch({"ask.max_steps": 7})
        assert one.file.read_text("utf-8") == "[ask]\nmax_steps = 0\n"
        one.file.write_text("[ask]\nmax_steps = 8\n", "utf-8")
        await one.client.post("/v1/config/reload")
        either = await one.patch({"ask.max_steps": 7}, f'"other", {tag}, *')
        assert one.max_steps == 7
    assert code(without) == (428, "config.if_match")
    assert code(stale) == (412, "config.changed")
    assert code(pending) == (412, "config.changed")
    assert "holds an edit that is not in force" in pending.text
    assert either.status_code == 200


RULES = '[access.rules.g]\nroles = ["guest"]\ndeny = ["files.*"]\n'


@pytest.mark.requirement("NET-3")
@pytest.mark.requirement("REL-2")
@pytest.mark.parametrize(
    "now",
    ["", "[ask]\nmax_steps = 0\n", '[models.evil]\nbase_url = "http://evil/v1"\nmodel = "m"\n'],
    ids=["emptied", "rejected", "not yet noticed"],
)
async def test_a_harmless_edit_from_the_network_makes_no_other_file_good(
    tmp_path: Path, now: str
) -> None:
    async with here(tmp_path, STEPS + RULES) as one:
        number = entry(tmp_path, ask={"max_steps": 9})
        one.file.write_text(now, "utf-8")
        edit = await one.patch({"ask.max_steps": 7}, "*")
        back = await one.client.post(
            "/v1/config/rollback", json={"number": number}, headers={"if-match": "*"}
        )
        assert one.file.read_text("utf-8") == now
        settings = one.runtime.generation.settings
        assert (one.max_steps, list(settings.access.rules), settings.models) == (9, ["g"], {})
    assert [code(each) for each in (edit, back)] == [(412, "config.changed")] * 2


@pytest.mark.requirement("NET-3")
async def test_a_harmless_edit_from_the_network_brings_no_other_secret_into_force(
    tmp_path: Path,
) -> None:
    secret = tmp_path / "key"
    secret.write_text("first")
    text = (
        f'{STEPS}[runtime]\nsecret_sources = ["file:{tmp_path}"]\n[models.m]\nmodel = "x"\n'
        'base_url = "http://127.0.0.1:9/v1"\napi_key = "file:key"\n'
    )
    async with here(tmp_path, text) as one:
        secret.write_text("second")
        refused = await one.patch({"ask.max_steps": 7}, "*")
        key = one.runtime.generation.settings.models["m"].api_key
        assert key is not None
        assert key.get_secret_value() == "first"
        assert one.file.read_text("utf-8") == text
        await one.client.post("/v1/config/reload")
        taken = await one.patch({"ask.max_steps": 7}, "*")
    assert code(refused) == (412, "config.changed")
    assert "models.m.api_key: changed elsewhere, is not in force yet" in refused.text
    assert [each["key"] for each in taken.json()["changes"]] == ["ask.max_steps"]


@pytest.mark.requirement("NET-3")
async def test_a_harmless_edit_from_the_network_reads_no_folder_of_tools(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    write_handler(tools, "group.old")
    async with here(tmp_path, f"{STEPS}[handlers]\npaths = ['tools']\n") as one:
        write_handler(tools, "group.new")
        edit = await one.patch({"ask.max_steps": 7}, "*")
        later = await one.client.post("/v1/config/reload")
    assert (edit.status_code, edit.json()["tools"]) == (200, {})
    assert later.json()["tools"] == {"added": ["group.new"]}


@pytest.mark.requirement("NET-3")
async def test_nor_does_it_after_an_edit_of_the_file_was_rejected(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    write_handler(tools, "group.old")
    text = f"{STEPS}[handlers]\npaths = ['tools']\n"
    async with here(tmp_path, text) as one:
        one.file.write_text("no toml [", "utf-8")
        assert (await one.client.post("/v1/config/reload")).json()["verdict"] == "rejected"
        one.file.write_text(text, "utf-8")
        write_handler(tools, "group.new")
        edits = [await one.patch({"ask.max_steps": steps}, "*") for steps in (7, 8)]
        later = await one.client.post("/v1/config/reload")
    assert [(edit.status_code, edit.json()["tools"]) for edit in edits] == [(200, {})] * 2
    assert later.json()["tools"] == {"added": ["group.new"]}


@pytest.mark.requirement("NET-3")
async def test_nor_does_it_bring_a_variable_that_acts_after_a_restart(tmp_path: Path) -> None:
    variables = tmp_path / ".env"
    variables.write_text("")
    async with here(tmp_path, env={"SESSION_RUNTIME_ENV_FILE": str(variables)}) as one:
        variables.write_text("SESSION_RUNTIME__HTTP__PORT=8099\n")
        refused = await one.patch({"ask.max_steps": 7}, "*")
        assert one.file.read_text("utf-8") == STEPS
    assert code(refused) == (412, "config.changed")
    assert "http.port: changed elsewhere, is not in force yet" in refused.text


@pytest.mark.requirement("NET-3")
@pytest.mark.parametrize(
    ("pending", "way_out"),
    [
        ("[ask]\nmax_steps = 0\n", "mend the file, or take the edit back"),
        ("[ask]\nmax_steps = 4\n", "reload the configuration (POST /v1/config/reload)"),
    ],
    ids=["rejected", "not noticed"],
)
async def test_a_pending_edit_is_told_with_the_way_out_that_works(
    tmp_path: Path, pending: str, way_out: str
) -> None:
    async with here(tmp_path) as one:
        one.file.write_text(pending, "utf-8")
        if "mend" in way_out:
            await one.client.post("/v1/config/reload")
        refused = await one.patch({"ask.max_steps": 7}, "*")
    assert code(refused) == (412, "config.changed")
    assert f"holds an edit that is not in force: {way_out}, and send this edit" in refused.text


@pytest.mark.requirement("NET-3")
async def test_an_edit_waits_for_one_that_is_just_being_put_into_force(tmp_path: Path) -> None:
    server = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    async with here(tmp_path) as one:
        hangs = (
            f"[mcp]\nwait_s = 600\n[mcp.servers.s]\ncommand = '{server[0]}'\nargs = {server[1:]}\n"
        )
        one.file.write_text(STEPS + hangs, "utf-8")
        reload = asyncio.create_task(one.runtime.live.reload("cli"))
        await asyncio.sleep(0)  # so that it is under way
        edit = await one.patch({"ask.max_steps": 7}, "*")
        assert (await reload).verdict == "applied"
    assert [each["key"] for each in edit.json()["changes"]] == ["ask.max_steps"]


@pytest.mark.requirement("NET-3")
async def test_an_edit_that_cannot_be_used_is_told_and_not_written(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        before = one.file.read_bytes()
        invalid = await one.patch({"ask.max_steps": 0})
        unknown = await one.patch({"ask.max_step": 1})
        nonsense = await one.patch([])
        nothing = await one.patch({})
        assert one.file.read_bytes() == before
    assert (invalid.status_code, invalid.json()["verdict"]) == (422, "rejected")
    assert invalid.json()["errors"][0]["key"] == "ask.max_steps"
    assert code(unknown) == (400, "config.unknown_key")
    assert code(nonsense) == code(nothing) == (400, "request.invalid")


async def test_an_edit_that_only_preparing_finds_wrong_is_not_written_either(
    tmp_path: Path,
) -> None:
    async with here(tmp_path) as one:
        response = await one.control.patch(
            "/v1/config", json={"handlers.paths": ["gone"]}, headers={"if-match": "*"}
        )
        assert one.file.read_text("utf-8") == STEPS
        assert one.runtime.live.rejected_since is None
    assert (response.status_code, response.json()["verdict"]) == (422, "rejected")
    assert "gone" in response.text


@pytest.mark.requirement("CFG-3b")
async def test_a_value_that_a_variable_overrides_is_refused_with_its_name(tmp_path: Path) -> None:
    async with here(tmp_path, env={"SESSION_RUNTIME__ASK__MAX_STEPS": "7"}) as one:
        response = await one.patch({"ask.max_steps": 5})
        assert one.file.read_text("utf-8") == STEPS
        taken_out = await one.patch({"ask.max_steps": None})
        assert "max_steps" not in one.file.read_text("utf-8")
    assert (taken_out.status_code, taken_out.json()["changes"][0]["shadowed_by"]) == (
        200,
        "env SESSION_RUNTIME__ASK__MAX_STEPS",
    )
    assert code(response) == (409, "config.shadowed")
    assert "no effect: shadowed by env SESSION_RUNTIME__ASK__MAX_STEPS" in response.text


def entry(folder: Path, **sections: Mapping[str, object]) -> int:
    """Put an entry into the history; gives its number."""
    history = History(folder / ".session-runtime" / FOLDER)
    return history.add(sections, "digest", datetime.now(UTC)).number


@pytest.mark.requirement("NET-1c")
async def test_going_back_writes_what_the_entry_said(tmp_path: Path) -> None:
    number = entry(tmp_path, ask={"max_steps": 3})
    async with here(tmp_path) as one:
        headers = {"if-match": await one.tag()}
        back = await one.client.post(
            "/v1/config/rollback", json={"number": number}, headers=headers
        )
        assert one.max_steps == 3
        assert "max_steps = 3  # and this" in one.file.read_text("utf-8")
        headers = {"if-match": back.headers["etag"]}
        absent = await one.client.post("/v1/config/rollback", json={"number": 9}, headers=headers)
        wrong = await one.client.post("/v1/config/rollback", json={"number": "1"}, headers=headers)
        without = await one.client.post("/v1/config/rollback", json={"number": number})
    assert (back.status_code, back.json()["verdict"]) == (200, "applied")
    assert "left" not in back.json()
    assert code(absent) == (404, "config.unknown_entry")
    assert code(wrong) == (400, "request.invalid")
    assert code(without) == (428, "config.if_match")


async def test_a_history_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        folder = tmp_path / ".session-runtime" / FOLDER
        folder.parent.mkdir(exist_ok=True)
        folder.write_text("in its place")
        back = await one.client.post(
            "/v1/config/rollback", json={"number": 1}, headers={"if-match": "*"}
        )
    assert code(back) == (422, "config.invalid")
    assert f"{folder} cannot be read: Not a directory" in back.text


@pytest.mark.requirement("NET-3")
async def test_going_back_over_the_network_leaves_access_and_refuses_what_is_not_harmless(
    tmp_path: Path,
) -> None:
    harmless = entry(tmp_path, ask={"max_steps": 3}, access={"default": "deny"})
    more = entry(tmp_path, ask={"max_steps": 4}, features={"beta": True})
    async with here(tmp_path) as one:
        headers = {"if-match": await one.tag()}
        refused = [
            await one.client.post("/v1/config/rollback", json=json, headers=headers)
            for json in ({"number": more}, {"number": harmless, "include": ["access"]})
        ]
        unknown = await one.client.post(
            "/v1/config/rollback", json={"number": more, "include": ["all"]}, headers=headers
        )
        assert one.max_steps == 9
        back = await one.client.post(
            "/v1/config/rollback", json={"number": harmless}, headers=headers
        )
        assert one.runtime.generation.settings.access.default == "allow"
        assert one.max_steps == 3
        local = await one.control.post(
            "/v1/config/rollback",
            json={"number": harmless, "include": ["access"]},
            headers={"if-match": "*"},
        )
        assert one.runtime.generation.settings.access.default == "deny"
    assert [code(each) for each in refused] == [(403, "config.not_over_network")] * 2
    assert code(unknown) == (400, "request.invalid")
    assert back.json()["left"] == ["access"]
    assert local.status_code == 200


@pytest.mark.requirement("NET-3")
async def test_a_list_too_long_for_the_network_is_refused_and_the_longest_is_written(
    tmp_path: Path,
) -> None:
    async with here(tmp_path) as one:
        before = one.file.read_bytes()
        refused = await one.patch({"search.stop_words": ["x"] * 1_001})
        assert one.file.read_bytes() == before
        longest = await one.patch({"handlers.timeout_s": 5, "skills.prefetch_tools": ["x"] * 1_000})
    assert code(refused) == (400, "request.invalid")
    assert refused.json()["error"]["message"] == (
        "search.stop_words: holds 1001 items, at most 1000 can be sent over the network: edit the file"
        " on its machine"
    )
    assert longest.json()["changes"][-1]["new"] == ["x"] * 1_000
