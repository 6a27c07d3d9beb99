"""Tools that are called by their names over HTTP: who may, which, how often, and what comes back (NET-1f)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from session_runtime.audit.tail import last_lines
from session_runtime.registry.keyring import hash_of
from tests.support import ECHO, write_agent
from tests.transports.configured import code, fits
from tests.transports.invoking import tools
from tests.transports.stub import EVENTS, bearer, frames, key_of

KEYED = {"idempotency-key": "k1"}


def without_what_varies(data: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in data.items() if name not in ("ask_id", "duration_ms")}


@pytest.mark.requirement("NET-1f")
async def test_a_tool_is_called_for_whom_the_principal_says(tmp_path: Path) -> None:
    async with tools(tmp_path) as at:
        body = {"arguments": {"n": 3}, "identity": {"user": "u-1"}}
        answer = await at.invoke("a.note", body)
        own = (await at.invoke("a.note", {})).json()["structured"]
        other = await at.invoke("a.note", {"identity": {"user": "somebody"}})
    got = {"got": {"n": 3}, "user": "u-1", "who": "ann"}
    assert answer.status_code == 200
    assert without_what_varies(answer.json()) == {
        "ok": True,
        "tool": "a.note",
        "generation": 1,
        "attempts": 1,
        "result": json.dumps(got, separators=(",", ":")),
        "structured": got,
    }
    assert fits("Invoked", answer.json()) == []
    assert own == {"got": {}, "user": "ann", "who": "ann"}
    assert code(other) == (403, "auth.act_for")


@pytest.mark.requirement("NET-1f")
async def test_nothing_is_called_while_it_is_off(tmp_path: Path) -> None:
    async with tools(tmp_path, 'allow = ["*"]\n') as at:
        assert code(await at.invoke("a.note")) == (404, "request.not_found")
        assert at.ran == []


@pytest.mark.requirement("NET-1f")
async def test_an_empty_list_allows_nothing_and_deny_wins(tmp_path: Path) -> None:
    async with tools(tmp_path, "enabled = true\n") as at:
        assert code(await at.invoke("a.note")) == (404, "request.unknown_tool")
    more = 'enabled = true\nallow = ["a.*"]\ndeny = ["a.no*"]\n'
    other = tmp_path / "other"
    other.mkdir()
    async with tools(other, more) as at:
        assert code(await at.invoke("a.note")) == (404, "request.unknown_tool")
        assert code(await at.invoke("remember")) == (404, "request.unknown_tool")
        assert (await at.invoke("a.breaks", {})).status_code == 200
        assert at.ran == []


NAMES = ("a.note", "a.breaks", "a.wait", "nothing")


@pytest.mark.requirement("NET-1f")
async def test_what_is_forbidden_or_revoked_is_answered_like_what_does_not_exist(
    tmp_path: Path,
) -> None:
    rule = '[access.rules.x]\ndeny = ["a.breaks"]\n'
    async with tools(tmp_path, 'enabled = true\nallow = ["a.*"]\ndeny = ["a.wait"]\n', rule) as at:
        await at.runtime.brake.revoke("a.note", "broken", "op")
        answers = [await at.invoke(name) for name in NAMES]
        texts = {each.text.replace(n, "X") for each, n in zip(answers, NAMES, strict=True)}
        assert (len(texts), at.ran) == (1, [])
        assert code(answers[0]) == (404, "request.unknown_tool")


@pytest.mark.requirement("NET-1f")
@pytest.mark.parametrize("name", ["a.note", "A.Note", "a__note", "remember"])
async def test_every_name_of_a_tool_calls_it_whatever_a_model_would_see(
    tmp_path: Path, name: str
) -> None:
    skills = '[skills]\ntool_search_enabled = true\nprefetch_tools = ["a.note"]\n'
    async with tools(tmp_path, more=skills) as at:
        assert (await at.invoke(name)).json()["tool"] == "a.note"
        assert at.ran == [{"n": 1}]


@pytest.mark.requirement("NET-1f")
@pytest.mark.parametrize(
    ("name", "arguments", "wanted", "said"),
    [
        ("a.note", {"n": "x"}, "tool.invalid_arguments", "n: "),
        ("a.note", {"m": 1}, "tool.invalid_arguments", "m"),
        ("a.breaks", {}, "tool.failed", "ValueError: boom"),
    ],
)
async def test_what_fails_is_a_typed_error(
    tmp_path: Path, name: str, arguments: Any, wanted: str, said: str
) -> None:
    async with tools(tmp_path) as at:
        answer = await at.invoke(name, {"arguments": arguments})
    data = answer.json()
    assert (answer.status_code, data["ok"], data["error"]["code"]) == (200, False, wanted)
    assert said in data["error"]["message"]
    assert "result" not in data
    assert (fits("Invoked", data), at.ran) == ([], [])


@pytest.mark.requirement("NET-1f")
@pytest.mark.requirement("RTE-9b")
async def test_a_destructive_tool_runs_once_for_a_token_and_the_same_arguments(
    tmp_path: Path,
) -> None:
    async with tools(tmp_path) as at:
        first = (await at.invoke("a.wipe")).json()
        [pending] = first["pending"]
        assert (first["ok"], first["error"]["code"]) == (False, "tool.needs_confirmation")
        assert (pending["tool"], pending["arguments"]) == ("a.wipe", {"n": 1})
        agreed = {"arguments": {"n": 1}, "confirmations": [pending["token"]]}
        stranger = await at.invoke("a.wipe", agreed, who="bob")
        assert code(stranger) == (409, "confirmation.invalid")
        assert at.ran == []
        assert (await at.invoke("a.wipe", agreed)).json()["ok"]
        assert code(await at.invoke("a.wipe", agreed)) == (409, "confirmation.invalid")
        other = (await at.invoke("a.wipe")).json()["pending"][0]["token"]
        changed = {"arguments": {"n": 2}, "confirmations": [other]}
        assert not (await at.invoke("a.wipe", changed)).json()["ok"]
        assert at.ran == [{"n": 1}]


@pytest.mark.requirement("NET-1f")
async def test_a_call_that_waits_can_be_confirmed_and_declined_by_its_id(tmp_path: Path) -> None:
    async with tools(tmp_path) as at:
        said = []
        for decision in ("confirmations", "declined"):
            headers = {"idempotency-key": decision}
            waiting = (await at.invoke("a.wipe", **headers)).json()
            path = f"/v1/asks/{waiting['ask_id']}/confirm"
            tokens = {decision: [waiting["pending"][0]["token"]]}
            answer = await at.client.post(path, json=tokens, headers=bearer("ann"))
            said.append((answer.json()["call"]["ok"], answer.json().get("error", {}).get("code")))
        assert said == [(True, None), (False, "tool.declined")]
        assert at.ran == [{"n": 1}]


@pytest.mark.requirement("NET-1f")
async def test_the_same_key_is_the_same_call(tmp_path: Path) -> None:
    async with tools(tmp_path) as at:
        at.resources["go_on"].set()
        together = await asyncio.gather(*(at.invoke("a.wait", **KEYED) for _ in range(4)))
        again = await at.invoke("a.wait", **KEYED)
        assert {each.text for each in (*together, again)} == {again.text}
        assert at.ran == [{"n": 1}]
        for name, body in (("a.wait", {"arguments": {"n": 2}}), ("a.note", None)):
            other = await at.invoke(name, body, **KEYED)
            assert code(other) == (422, "request.key_reused")
        assert (await at.invoke("a.wait", {}, who="bob", **KEYED)).json()["ok"]


@pytest.mark.requirement("NET-1f")
async def test_a_detached_call_is_found_followed_and_ended_like_an_ask(tmp_path: Path) -> None:
    async with tools(tmp_path) as at:
        accepted = await at.invoke("a.wait", {"detach": True})
        path = accepted.headers["location"]
        await at.resources["started"].wait()
        running = (await at.client.get(path, headers=bearer("ann"))).json()
        hidden = await at.client.get(path, headers=bearer("bob"))
        assert (await at.client.delete(path, headers=bearer("ann"))).json() == {"cancelled": 1}
        followed = await at.client.get(f"{path}/events", headers=bearer("ann"))
    assert (accepted.status_code, running["state"], running["tool_calls"]) == (202, "tools", 1)
    assert code(hidden) == (404, "request.unknown_ask")
    events = frames(followed.text)
    assert [name for name, _ in events] == [
        *("ask.started", "tool.started", "tool.finished", "ask.finished"),
    ]
    assert events[-1][1]["result"]["error"]["code"] == "cancelled.caller"
    assert at.ran == []


@pytest.mark.requirement("NET-1f")
async def test_a_call_may_be_followed_while_it_runs(tmp_path: Path) -> None:
    async with tools(tmp_path) as at:
        events = frames((await at.invoke("a.note", **EVENTS)).text)
    assert [name for name, _ in events] == [
        "ask.started",
        "tool.started",
        "tool.finished",
        "ask.finished",
    ]
    call = events[-1][1]["result"]["call"]
    assert (call["ok"], call["structured"]["got"]) == (True, {"n": 1})


@pytest.mark.requirement("REL-9")
async def test_a_revocation_stops_a_call_that_runs(tmp_path: Path) -> None:
    async with tools(tmp_path) as at:
        call = asyncio.create_task(at.invoke("a.wait"))
        await at.resources["started"].wait()
        await at.runtime.brake.revoke("a.wait", "broken", "op")
        data = (await call).json()
    assert (data["error"]["code"], at.ran) == ("tool.revoked", [])


@pytest.mark.requirement("NET-5")
async def test_calls_take_the_places_of_asks_and_obey_a_deadline(tmp_path: Path) -> None:
    async with tools(tmp_path, more="[runtime]\nmax_concurrent_asks = 1\n") as at:
        call = asyncio.create_task(at.invoke("a.wait", {"deadline_s": 0.2}))
        await at.resources["started"].wait()
        busy = await at.invoke("a.note")
        late = (await call).json()
    assert code(busy) == (503, "busy.capacity")
    assert busy.headers["retry-after"] == "1"
    assert (late["ok"], late["error"]["code"], at.ran) == (False, "tool.timeout", [])


@pytest.mark.requirement("RTE-13")
async def test_a_call_is_recorded_with_who_made_it_for_whom(tmp_path: Path) -> None:
    async with tools(tmp_path) as at:
        made = (await at.invoke("a.note", {"identity": {"user": "u-1"}})).json()
    lines = last_lines(tmp_path / ".session-runtime", 99)
    [call] = [each for each in lines if each.get("tool") == "a.note"]
    assert (call["ask_id"], call["principal"], call["identity"]["user"], call["status"]) == (
        made["ask_id"],
        "ann",
        "u-1",
        "ok",
    )


@pytest.mark.requirement("NET-1f")
async def test_a_result_that_is_too_long_is_summed_up(tmp_path: Path) -> None:
    few = 'enabled = true\nallow = ["*"]\nmax_result_chars = 400\n'
    async with tools(tmp_path, few) as at:
        data = (await at.invoke("a.note", {"identity": {"user": f"u-{'x' * 200}"}})).json()
        assert data["structured"]["user"] == f"u-{'x' * 200}"
    other = tmp_path / "o"
    other.mkdir()
    async with tools(other, few.replace("400", "200")) as at:
        data = (await at.invoke("a.note", {"identity": {"user": f"u-{'x' * 250}"}})).json()
    assert len(data["result"]) <= 200
    assert data["whole_chars"] > 250
    assert "structured" not in data


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"args": {}}, 'unknown field "args"; known are arguments'),
        ({"arguments": []}, "arguments: must be an object"),
        ({"arguments": None}, "arguments: must be an object"),
        ({"callback": "bot"}, "callback: is for asks that go on without their client"),
        ({"declined": ["x"]}, 'unknown field "declined"'),
    ],
)
async def test_a_wrong_body_is_refused(tmp_path: Path, body: Any, said: str) -> None:
    async with tools(tmp_path) as at:
        answer = await at.invoke("a.note", body)
    assert code(answer) == (400, "request.invalid")
    assert said in answer.json()["error"]["message"]


@pytest.mark.requirement("NET-1f")
async def test_the_list_of_tools_is_the_principals_own_in_pages_with_schemas_on_request(
    tmp_path: Path,
) -> None:
    few = 'enabled = true\nallow = ["a.note"]\n'
    async with tools(tmp_path, few, '[access.rules.x]\ndeny = ["a.breaks"]\n') as at:

        async def listed(query: str = "", status: int = 200) -> Any:
            answer = await at.client.get(f"/v1/tools{query}", headers=bearer("ann"))
            assert answer.status_code == status
            return answer.json()

        first, rest = await listed("?limit=2"), await listed("?limit=2&after=a.wait")
        [whole] = (await listed("?limit=1&schemas=true"))["tools"]
        for wrong in ("limit=0", "limit=501", "limit=x", "schemas=yes"):
            assert wrong.partition("=")[0] in (await listed(f"?{wrong}", 400))["error"]["message"]
    assert [(each["name"], each["invokable"]) for each in first["tools"]] == [
        ("a.note", True),
        ("a.wait", False),
    ]
    assert (first["next"], [each["name"] for each in rest["tools"]]) == ("a.wait", ["a.wipe"])
    assert "next" not in rest
    assert "parameters" not in first["tools"][0]
    assert whole["parameters"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }


OPERATOR = f'[http.keys.op]\nhash = "{hash_of(key_of("op"))}"\nroles = ["admin"]\n'


@pytest.mark.requirement("NET-1f")
async def test_an_operators_list_of_all_tools_says_invokable_of_those_alone_that_it_can_call(
    tmp_path: Path,
) -> None:
    write_agent(tmp_path / "tools", "researcher", tools={"cite": ECHO})
    rule = '[access.rules.x]\ndeny = ["a.breaks"]\n'
    async with tools(tmp_path, more=f"{rule}{OPERATOR}") as at:
        await at.runtime.brake.revoke("a.note", "broken", "op")
        answer = await at.client.get("/v1/tools?schemas=false", headers=bearer("op"))
        told = {each["name"]: each["invokable"] for each in answer.json()["tools"]}
        found = {
            name: (await at.invoke(name, {"arguments": {"x": 1}}, "op")).status_code != 404
            for name in told
        }
    assert told == found
    assert {name for name, each in told.items() if not each} == {
        "a.note",
        "a.breaks",
        "agents.researcher.cite",
    }


@pytest.mark.requirement("NET-1f")
async def test_while_it_is_off_no_tool_is_said_to_be_invokable(tmp_path: Path) -> None:
    async with tools(tmp_path, 'allow = ["*"]\n', OPERATOR) as at:
        for who in ("ann", "op"):
            listed = (await at.client.get("/v1/tools", headers=bearer(who))).json()["tools"]
            assert [each["invokable"] for each in listed] == [False] * 4
