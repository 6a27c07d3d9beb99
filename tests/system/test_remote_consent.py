"""A destructive tool of a server runs once for each yes of a person, whatever door it is asked by (RTE-9)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp_types import ElicitRequestParams, ElicitResult

from session_runtime import AskRequest
from session_runtime.testing.mcp_servers.script import Script
from tests.support import ask, calls, says, scripted
from tests.system.leftovers import nothing_left
from tests.system.server_config import server
from tests.system.test_remote_calls import lines
from tests.system.test_servers import mcp, results
from tests.transports.mcp.served import Served, serving

DECLARED = ("annotated", "lying", "unmarked")
"""By whom a tool is called destructive: its server; the operator, against its server; the operator alone."""

TOOLS = {"annotated": "destructive", "lying": "lies", "unmarked": "plain"}


@dataclass(frozen=True)
class Site:
    """A daemon with one server, whose destructive tool notes each time that it runs."""

    served: Served
    tool: str
    ran: Path

    @property
    def executions(self) -> int:
        return len(lines(self.ran))


@asynccontextmanager
async def site(folder: Path, declared: str, more: str = "") -> AsyncIterator[Site]:
    ran, native = folder / "ran", TOOLS[declared]
    operator = ""
    if declared != "annotated":
        operator = f"[mcp.servers.a.tools.{native}]\ndestructive = true\nread_only = true\n"
    text = (
        mcp(server("a", Script(tools=(native,), executions=str(ran))), operator)
        + (more or "[skills]\nprefetch_tools = []\n")
        + "[handlers]\nbundled = false\n[http]\nmcp = true\n"
        + scripted(folder, calls((f"a.{native}", {"id": 7})), says("done"))
    )
    with nothing_left():
        async with serving(folder, text) as served:
            yield Site(served, f"a.{native}", ran)


@pytest.mark.requirement("RTE-9b")
@pytest.mark.requirement("RTE-9c")
@pytest.mark.parametrize("declared", DECLARED)
async def test_within_the_process_it_runs_once_for_a_yes_and_never_without(
    tmp_path: Path, declared: str
) -> None:
    async with site(tmp_path, declared) as here:
        runtime = here.served.runtime
        first = (await ask(runtime, "delete it")).result
        assert (first.outcome, here.executions) == ("needs_confirmation", 0)
        (pending,) = first.pending
        assert (pending.tool, dict(pending.arguments)) == (here.tool, {"id": 7})
        said_by_others = AskRequest("yes, I agree", history=first.new_messages)
        assert (await ask(runtime, said_by_others)).result.outcome == "needs_confirmation"
        assert here.executions == 0
        yes = AskRequest("yes", history=first.new_messages, confirmations=(pending.token,))
        assert (await ask(runtime, yes)).result.outcome == "answered"
        assert here.executions == 1
        again = (await ask(runtime, yes)).result
        assert again.error is not None
        assert (again.error.code, here.executions) == ("confirmation.invalid", 1)


@pytest.mark.requirement("RTE-9b")
@pytest.mark.requirement("RTE-9c")
@pytest.mark.parametrize("declared", DECLARED)
async def test_over_http_it_runs_once_for_a_yes_and_never_without(
    tmp_path: Path, declared: str
) -> None:
    async with (
        site(tmp_path, declared) as here,
        httpx2.AsyncClient(trust_env=False, base_url=here.served.url[: -len("/mcp")]) as client,
    ):

        async def post(body: dict[str, Any]) -> Any:
            return (await client.post("/v1/ask", json=body)).json()

        first = await post({"text": "delete it"})
        assert (first["outcome"], here.executions) == ("needs_confirmation", 0)
        history = first["new_messages"]
        forged = await post({"text": "yes", "history": history, "confirmations": ["c" * 43]})
        assert (forged["error"]["code"], here.executions) == ("confirmation.invalid", 0)
        no = await post({"text": "delete it"})
        await post({"text": "no", "history": history, "declined": [no["pending"][0]["token"]]})
        assert here.executions == 0
        yes = {"text": "yes", "history": history, "confirmations": [first["pending"][0]["token"]]}
        await post(yes)
        assert here.executions == 1
        assert (await post(yes))["error"]["code"] == "confirmation.invalid"
        assert here.executions == 1


@pytest.mark.requirement("RTE-9a")
@pytest.mark.requirement("RTE-9c")
@pytest.mark.parametrize("declared", DECLARED)
async def test_over_mcp_it_runs_once_for_a_yes_and_never_without(
    tmp_path: Path, declared: str
) -> None:
    asked: list[str] = []
    answers = iter(("decline", "cancel", "accept"))

    async def person(context: object, params: ElicitRequestParams) -> ElicitResult:
        action: Any = next(answers)
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)

    async def executions_after(client: Client) -> int:
        await client.call_tool(here.tool, {"id": 7})
        return here.executions

    async with site(tmp_path, declared) as here:
        async with here.served.client() as client:  # its person cannot be asked
            assert await executions_after(client) == 0
        async with here.served.client(elicitation_callback=person) as client:
            assert [await executions_after(client) for _ in range(3)] == [0, 0, 1]
    assert len(asked) == 3


@pytest.mark.requirement("RTE-9c")
@pytest.mark.requirement("PRE-1")
@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("rule", ["confirm", "allow"])
async def test_as_a_prefetch_it_never_runs(tmp_path: Path, declared: str, rule: str) -> None:
    tool = f"a.{TOOLS[declared]}"
    more = f'[skills]\nprefetch_tools = ["{tool}"]\n[access]\ndestructive = "{rule}"\n'
    async with site(tmp_path, declared, more) as here:
        expected = 1 if rule == "allow" else 0  # the call of the model, after the prefetch
        asked = await ask(here.served.runtime, "delete it")
        assert here.executions == expected
        assert [bool(each["arguments"]) for each in lines(here.ran)] == [True] * expected
        assert len(results(asked)) == 1
