"""Two real servers, made with the low-level ``Server`` of the official SDK, one for each era of the protocol.

``official_server("handshake")`` gives the command that starts one; it takes a second or two, most of which
is the import of the SDK. Tools: ``add`` (structured), ``slow`` (progress), ``fail``, ``change_list``, and
``added`` once that was called.
"""

import sys
from typing import Any, Final, Literal

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

OfficialEra = Literal["handshake", "stateless"]
Context = ServerRequestContext[Any, Any]

_NOTHING: Final[dict[str, Any]] = {"type": "object", "properties": {}}


def official_server(era: OfficialEra) -> tuple[str, tuple[str, ...]]:
    """The program and its arguments that serve this era; needs ``session-runtime[mcp]`` installed."""
    return sys.executable, (__file__, era)


class _Served:
    """The tools of a server, and what they do."""

    def __init__(self, era: OfficialEra) -> None:
        self._changed = False
        self._bus = InMemorySubscriptionBus()
        self.server: Server[Any] = Server(
            f"official-{era}",
            version="1",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus) if era == "stateless" else None,
        )

    async def _list(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Two pages: all but the last tool, then that."""
        tools = [
            _tool("add", "Adds two numbers.", properties=("a", "b"), output="sum"),
            _tool("slow", "Tells how far it is, then answers."),
            _tool("fail", "Fails."),
            _tool("change_list", "Lists one tool more."),
            *([_tool("added", "Is there after a change.")] if self._changed else []),
        ]
        if params is None or params.cursor is None:
            return ListToolsResult(tools=tools[:2], next_cursor="rest")
        return ListToolsResult(tools=tools[2:])

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        arguments = params.arguments or {}
        match params.name:
            case "add":
                total = arguments["a"] + arguments["b"]
                return _text(str(total), structured_content={"sum": total})
            case "slow":
                for done in range(1, 4):
                    await context.session.report_progress(done, 3, f"step {done}")
                    await anyio.sleep(arguments.get("every", 0.01))
                return _text("done")
            case "fail":
                return _text("it did not work", is_error=True)
            case "change_list":
                self._changed = True
                await context.session.send_tool_list_changed()
                await self._bus.publish(ToolsListChanged())
                return _text("changed")
            case name:
                return _text(f"this is {name}")


def _tool(name: str, description: str, properties: tuple[str, ...] = (), output: str = "") -> Tool:
    schema = {"type": "object", "properties": {each: {"type": "number"} for each in properties}}
    result = {"type": "object", "properties": {output: {"type": "number"}}, "required": [output]}
    return Tool(
        name=name,
        description=description,
        input_schema=schema if properties else _NOTHING,
        output_schema=result if output else None,
        annotations=ToolAnnotations(read_only_hint=name != "change_list"),
    )


def _text(words: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words)], **more)


async def _serve(era: OfficialEra) -> None:
    server = _Served(era).server
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        if era == "stateless":
            await server.run(read, write, options)
            return
        async with server.lifespan(server) as state:
            await serve_loop(server, read, write, lifespan_state=state, init_options=options)


if __name__ == "__main__":
    wanted: OfficialEra = "stateless" if sys.argv[1] == "stateless" else "handshake"
    anyio.run(_serve, wanted)
