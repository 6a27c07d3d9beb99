"""A tool that fails with a code of its own, whatever it is: the call began, so it is a result (NET-1f)."""

from pathlib import Path
from typing import Any

import pytest

from session_runtime.cli import exits
from session_runtime.client.http import HttpClient
from session_runtime.types import AskResult, ErrorInfo
from tests.support import opened, tool_folder, write_handler
from tests.transports.invoking import PRINCIPALS, Tools, tools
from tests.transports.stub import bearer, key_of, serving

SAYS_NO = """
from session_runtime.handler import ToolError

def execute(args, context):
    context.resources["ran"].append(args)
    raise ToolError("the shop said no", code=args["code"])
"""
CODES = ["shop.no", "busy.shop", "busy", "request.bad", "auth.shop", "confirmation.invalid"]
KEYED = {"idempotency-key": "k1"}


def with_shop(folder: Path) -> None:
    parameters = {"type": "object", "properties": {"code": {"type": "string"}}}
    write_handler(folder / "tools", "a.shop", parameters=parameters, code=SAYS_NO)


async def ask_twice(at: Tools, told: str) -> list[Any]:
    body = {"arguments": {"code": told}}
    return [await at.invoke("a.shop", body, **KEYED) for _ in range(2)]


@pytest.mark.requirement("NET-1f")
@pytest.mark.parametrize("told", CODES)
async def test_a_tool_s_own_code_is_a_result_and_the_key_does_not_run_it_again(
    tmp_path: Path, told: str
) -> None:
    with_shop(tmp_path)
    async with tools(tmp_path) as at:
        first, second = await ask_twice(at, told)
        ran = len(at.ran)
    data = first.json()
    assert (first.status_code, data["ok"], data["error"]["code"]) == (200, False, told)
    assert (second.text, ran) == (first.text, 1)


@pytest.mark.requirement("NET-1f")
@pytest.mark.parametrize("told", CODES)
async def test_a_detached_call_that_failed_with_any_code_is_kept(tmp_path: Path, told: str) -> None:
    with_shop(tmp_path)
    async with tools(tmp_path) as at:
        body = {"arguments": {"code": told}, "detach": True}
        accepted = await at.invoke("a.shop", body)
        kept = at.runtime.kept.find(accepted.json()["ask_id"])
        assert kept is not None
        await kept.finished()
        shown = await at.client.get(accepted.headers["location"], headers=bearer("ann"))
    assert (accepted.status_code, shown.status_code) == (202, 200)
    assert shown.json()["result"]["error"]["code"] == told
    assert "refused" not in shown.json()["result"]


@pytest.mark.requirement("NET-1g")
@pytest.mark.parametrize("told", CODES)
async def test_the_client_takes_it_as_the_answer(tmp_path: Path, told: str) -> None:
    with_shop(tmp_path)
    resources: dict[str, Any] = {"ran": []}
    config = f'{tool_folder(tmp_path)}[http.invoke]\nenabled = true\nallow = ["*"]\n{PRINCIPALS}'
    async with opened(tmp_path, config, resources=resources) as runtime, serving(runtime) as served:
        url = f"http://127.0.0.1:{served.port}"
        async with HttpClient(url, key=key_of("ann"), timeout_s=30) as client:
            answer = await client.invoke("a.shop", {"code": told})
    assert answer.error is not None
    assert (answer.ok, answer.error["code"], len(resources["ran"])) == (False, told, 1)


def test_a_command_tells_a_wrong_request_from_a_tool_that_failed_with_such_a_code() -> None:
    error = ErrorInfo("request.bad", "no")
    assert exits.of_result(AskResult("a", "failed", error=error)) == exits.FAILED
    assert exits.of_result(AskResult("a", "failed", error=error, refused=True)) == exits.USAGE
