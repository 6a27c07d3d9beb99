"""The configuration of a running runtime over HTTP: read, explained, tried and reloaded."""

from pathlib import Path

import httpx2
import pytest

from session_runtime.config.keys import dotted
from session_runtime.config.shape import leaves
from session_runtime.registry.keyring import hash_of
from tests.transports.configured import STEPS, code, fits, here
from tests.transports.stub import bearer, key_of

TOML = {"content-type": "application/toml"}


@pytest.mark.requirement("INT-4")
async def test_a_key_is_explained_with_its_source_and_what_it_hides(tmp_path: Path) -> None:
    env = {"SESSION_RUNTIME__ASK__MAX_STEPS": "7"}
    async with here(tmp_path, env=env) as one:
        response = await one.client.get("/v1/config/explain", params={"key": "ask.max_steps"})
    assert response.json() == {
        "key": "ask.max_steps",
        "value": 7,
        "source": "env SESSION_RUNTIME__ASK__MAX_STEPS",
        "shadowed": ["config.toml:3"],
        "acts": "next ask",
    }
    assert fits("Explanation", response.json()) == []


async def test_a_section_is_explained_key_by_key_and_a_misspelt_one_with_the_nearest(
    tmp_path: Path,
) -> None:
    async with here(tmp_path) as one:
        log = await one.client.get("/v1/config/explain?key=log")
        wrong = await one.client.get("/v1/config/explain?key=ask.max_step")
        none = await one.client.get("/v1/config/explain")
    assert [each["key"] for each in log.json()["keys"]] == ["log.level", "log.format"]
    assert (wrong.status_code, none.status_code) == (400, 400)
    assert "did you mean ask.max_steps?" in wrong.json()["error"]["message"]


@pytest.mark.requirement("INT-4")
async def test_every_attempt_is_in_the_history_the_newest_first(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        one.file.write_text("[ask]\nmax_steps = 4\n", "utf-8")
        applied = await one.client.post("/v1/config/reload")
        one.file.write_text("[ask]\nmax_steps = 0\n", "utf-8")
        rejected = await one.control.post("/v1/config/reload")
        receipts = (await one.client.get("/v1/config/history")).json()["receipts"]
        newest = (await one.client.get("/v1/config/history?limit=1")).json()["receipts"]
        status = (await one.client.get("/v1/status")).json()
    assert (applied.status_code, rejected.status_code) == (200, 422)
    assert receipts[:2] == [rejected.json(), applied.json()]
    assert [(each["trigger"], each["verdict"]) for each in receipts] == [
        ("cli", "rejected"),
        ("http", "applied"),
        ("start", "applied"),
    ]
    assert newest == receipts[:1]
    assert status["config"]["last_receipt"] == receipts[0]
    assert rejected.json()["errors"] == [
        {
            "message": "must be at least 1 (given: 0)",
            "key": "ask.max_steps",
            "source": "config.toml",
            "line": 2,
        }
    ]
    assert [fits("Receipt", receipt) for receipt in receipts] == [[], [], []]


@pytest.mark.requirement("NET-1c")
async def test_all_keys_are_shown_and_no_secret(tmp_path: Path) -> None:
    secret = 'base_url = "http://127.0.0.1:9/v1"\nmodel = "m"\napi_key = "hidden"\n'
    async with here(tmp_path, f"[models.main]\n{secret}") as one:
        response = await one.client.get("/v1/config")
    page = response.json()
    assert page["file"] == str(one.file)
    values = {each["key"]: each["value"] for each in page["keys"]}
    assert values["models.main.api_key"] == "***"
    assert set(values) >= {dotted(path) for path, _ in leaves(()) if path[0] != "easter_egg"}
    assert "hidden" not in response.text


@pytest.mark.requirement("REL-3")
@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (b"[ask]\nmax_steps = 4\n", "applied"),
        (b"[ask]\nmax_steps = 0\n", "rejected"),
        (b"[ask\n", "rejected"),
        (b"\xff\xfe", "rejected"),
        (
            b"[http]\nport = 1\n[ask]\nmax_steps = 9\n",
            "applied-restart-needed",
        ),
    ],
)
async def test_trying_a_text_tells_what_it_would_come_to_and_changes_nothing(
    tmp_path: Path, text: bytes, verdict: str
) -> None:
    async with here(tmp_path) as one:
        tried = await one.client.post("/v1/config/validate", content=text, headers=TOML)
        on_disk = await one.client.post("/v1/config/validate")
        assert one.max_steps == 9
        assert len(one.runtime.live.receipts.newest()) == 1
        assert one.runtime.live.rejected_since is None
        assert one.file.read_text("utf-8") == STEPS
    assert (tried.status_code, tried.json()["verdict"]) == (200, verdict)
    assert on_disk.json()["verdict"] == "unchanged"
    assert fits("Receipt", tried.json()) == []


async def test_a_text_that_is_not_declared_as_one_is_not_tried(tmp_path: Path) -> None:
    async with here(tmp_path) as one:
        headers = {"content-type": "application/xml"}
        response = await one.client.post("/v1/config/validate", content="a", headers=headers)
    assert code(response) == (415, "request.media_type")
    assert "application/toml or text/plain or application/json" in response.text


@pytest.mark.requirement("NET-3")
async def test_an_edit_is_tried_with_all_checks_and_nothing_is_written(tmp_path: Path) -> None:
    async with here(tmp_path) as one:

        async def tried(values: object, client: httpx2.AsyncClient) -> httpx2.Response:
            return await client.post("/v1/config/validate", json=values)

        good = await tried({"ask.max_steps": 5}, one.client)
        same = await tried({"ask.max_steps": 9}, one.client)
        bad = await tried({"ask.max_steps": 0}, one.client)
        refused = await tried({"models.main.base_url": "http://evil.example"}, one.client)
        unknown = await tried({"ask.max_stepz": 5}, one.client)
        allowed = await tried({"access.default": "deny"}, one.control)
        page = (await one.client.get("/v1/config")).json()
        assert (one.max_steps, one.file.read_text("utf-8")) == (9, STEPS)
        assert len(one.runtime.live.receipts.newest()) == 1
    told = [each.json()["verdict"] for each in (good, same, bad, allowed)]
    assert told == ["applied", "unchanged", "rejected", "applied"]
    (change,) = good.json()["changes"]
    assert (change["key"], change["old"], change["new"]) == ("ask.max_steps", 9, 5)
    assert bad.json()["errors"][0]["key"] == "ask.max_steps"
    assert code(refused) == (403, "config.not_over_network")
    assert unknown.status_code == 400
    assert "ask.max_steps" in page["editable"]
    assert "access.default" not in page["editable"]


@pytest.mark.requirement("NET-2b")
async def test_with_keys_the_configuration_is_for_admins_and_the_control_socket_needs_none(
    tmp_path: Path,
) -> None:
    roles = {"boss": ["admin"], "bot": []}
    keys = "".join(
        f'[http.keys.{name}]\nhash = "{hash_of(key_of(name))}"\nroles = {given}\n'
        for name, given in roles.items()
    )
    async with here(tmp_path, keys) as one:
        answers = [
            (await one.client.get("/v1/config", headers=headers)).status_code
            for headers in ({}, bearer("bot"), bearer("boss"))
        ]
        metrics = [
            (await one.client.get("/metrics", headers=headers)).status_code
            for headers in ({}, bearer("bot"))
        ]
        local = await one.control.get("/v1/config", headers={"host": "elsewhere", "origin": "null"})
    assert (answers, metrics, local.status_code) == ([401, 403, 200], [401, 200], 200)
