"""How a raw server answers messages, whatever they come in by; what its tools do is in ``effects``."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from session_runtime.testing.mcp_servers.definitions import definitions
from session_runtime.testing.mcp_servers.effects import DIED, Broken, Failure, NeverAnswered, run
from session_runtime.testing.mcp_servers.script import Script

Message: TypeAlias = Mapping[str, Any]
Put: TypeAlias = Callable[[bytes], None]

HANDSHAKE: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS: Final = "2026-07-28"

_NAMESPACE: Final = "io.modelcontextprotocol"
_METHOD_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602
_UNSUPPORTED_VERSION: Final = -32022


class Player:
    """Plays one script; ``handle`` may be called by several threads at once.

    ``put`` writes bytes to the one that asked, ``tell`` a message to whoever listens to all.
    """

    def __init__(self, script: Script, tell: Put) -> None:
        self._script = script
        self._tell = tell
        self._lock = threading.Lock()
        self._tools = definitions(script.tools)
        self._running: dict[str | int, threading.Event] = {}
        self._listening: list[tuple[str | int, Put]] = []

    def handle(self, message: Message, put: Put) -> "Work | None":
        """Begin to answer one message, in a thread of its own; None if it needs no answer."""
        self._record(self._script.received, message)
        method, id_ = message.get("method"), message.get("id")
        if method in self._script.dies_at:
            os._exit(DIED)
        if not isinstance(method, str):
            return None
        if id_ is None:
            self._notified(method, message)
            return None
        work = Work(self, method, message, id_, put)
        self._running[id_] = work.cancelled
        work.start()
        return work

    def change_list(self) -> None:
        """List the other tools from now on, and say so."""
        if self._script.next_tools is not None:
            self._tools = definitions(self._script.next_tools)
        self.list_changed()

    def list_changed(self) -> None:
        """Say that the list changed: to those that listen, else to all."""
        changed: dict[str, Any] = {"method": "notifications/tools/list_changed"}
        if self._listening:
            for id_, put in self._listening:
                meta = {"_meta": {f"{_NAMESPACE}/subscriptionId": id_}}
                put(encoded({**changed, "params": meta}))
        elif self._script.era != "stateless":
            self._tell(encoded(changed))

    def record_execution(self, name: str, params: Message) -> str:
        """Note that a call takes effect, and give what befalls it."""
        with self._lock:
            path = self._script.executions
            before = Path(path).read_text("utf-8") if path and Path(path).exists() else ""
            count = sum(json.loads(line)["tool"] == name for line in before.splitlines())
            faults = self._script.faults.get(name, ())
            fault = faults[count] if count < len(faults) else ""
            if fault == "die_before":
                self._append(path, {"tool": name, "lost": True})
                os._exit(DIED)
            meta = {
                key: value
                for key, value in (params.get("_meta") or {}).items()
                if not key.startswith(_NAMESPACE)
            }
            self._append(
                path, {"tool": name, "arguments": params.get("arguments", {}), "meta": meta}
            )
            if fault == "die_after":
                os._exit(DIED)
            return fault

    def answer(self, work: "Work") -> dict[str, Any]:
        """The result of one request; raises Failure, Broken or NeverAnswered."""
        script, params = self._script, work.params
        if work.method in script.silent:
            work.cancelled.wait()
            raise NeverAnswered
        time.sleep(script.slow.get(work.method, 0))
        if work.method in script.errors:
            raise Failure(script.errors[work.method], f"{work.method} fails")
        match work.method:
            case "initialize" if script.era != "stateless":
                return self._initialized(str(params.get("protocolVersion")))
            case "initialize":
                raise Failure(_UNSUPPORTED_VERSION, "Unsupported protocol version")
            case "server/discover" if script.era != "handshake":
                return self._described() | {"supportedVersions": [script.protocol or STATELESS]}
            case "ping" if script.era != "stateless":
                return {}
            case "tools/list":
                return self._page(params.get("cursor"))
            case "tools/call":
                return self._called(work)
            case "subscriptions/listen" if script.era != "handshake" and script.list_changed:
                return self._listened(work)
            case _:
                raise Failure(_METHOD_NOT_FOUND, "Method not found")

    def forget(self, id_: str | int) -> None:
        """The request is over."""
        self._running.pop(id_, None)

    @property
    def script(self) -> Script:
        """What is played."""
        return self._script

    def _initialized(self, wanted: str) -> dict[str, Any]:
        version = wanted if wanted in HANDSHAKE else HANDSHAKE[-1]
        return {
            "protocolVersion": self._script.protocol or version,
            "capabilities": {"tools": {"listChanged": self._script.list_changed}},
            "serverInfo": {"name": self._script.name, "version": "1"},
        }

    def _described(self) -> dict[str, Any]:
        return {
            "capabilities": {"tools": {"listChanged": self._script.list_changed}},
            "ttlMs": self._script.ttl_ms,
            "cacheScope": "private",
        }

    def _page(self, cursor: object) -> dict[str, Any]:
        script, tools = self._script, self._tools
        cached = {"ttlMs": script.ttl_ms, "cacheScope": "private"}
        if script.cursor == "same":
            return {"tools": tools, "nextCursor": "x", **cached}
        start = int(cursor) if isinstance(cursor, str) and cursor.isdigit() else 0
        if script.cursor == "endless":
            page = [{**tool, "name": f"{tool['name']}_{start}"} for tool in tools]
            return {"tools": page, "nextCursor": str(start + 1), **cached}
        size = script.page_size or max(len(tools), 1)
        more = {"nextCursor": str(start + size)} if start + size < len(tools) else {}
        return {"tools": tools[start : start + size], **more, **cached}

    def _called(self, work: "Work") -> dict[str, Any]:
        name = str(work.params.get("name"))
        listed = [tool["name"] for tool in self._tools if isinstance(tool, dict) and "name" in tool]
        if name not in listed:
            raise Failure(_INVALID_PARAMS, f"Unknown tool: {name}")
        if self.record_execution(name, work.params) == "drop":
            raise NeverAnswered
        return run(name, work)

    def _listened(self, work: "Work") -> dict[str, Any]:
        meta = {f"{_NAMESPACE}/subscriptionId": work.id}
        honored = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        work.put(encoded({"method": "notifications/subscriptions/acknowledged", "params": honored}))
        entry = (work.id, work.put)
        self._listening.append(entry)
        self._flood()
        work.cancelled.wait()
        self._listening.remove(entry)
        return {"_meta": meta}

    def _notified(self, method: str, message: Message) -> None:
        params = message.get("params") or {}
        if method == "notifications/cancelled" and "cancel" not in self._script.ignores:
            if (running := self._running.get(params["requestId"])) is not None:
                running.set()
        elif method == "notifications/initialized":
            self._flood()

    def _flood(self) -> None:
        for _ in range(self._script.flood):
            self.list_changed()

    def _record(self, path: str | None, message: Message) -> None:
        with self._lock:
            self._append(path, message)

    def _append(self, path: str | None, entry: Message) -> None:
        if path is not None:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


class Work(threading.Thread):
    """One request while it is worked on; the Call of a tool."""

    def __init__(
        self, player: Player, method: str, message: Message, id_: str | int, put: Put
    ) -> None:
        super().__init__(daemon=True)
        self.method = method
        self.params: Message = message.get("params") or {}
        self.arguments: Message = self.params.get("arguments") or {}
        self.id = id_
        self.put = put
        self.cancelled = threading.Event()
        self._player = player

    def run(self) -> None:
        """Answer it."""
        try:
            result = self._player.answer(self)
            body: dict[str, Any] = {"result": self._stamped(result)}
        except Failure as failure:
            body = {"error": {"code": failure.code, "message": failure.message}}
        except Broken as broken:
            body = {"result": broken.result}
        except NeverAnswered:
            return
        finally:
            self._player.forget(self.id)
        chatter = self._player.script.chatter.encode("latin-1")
        self.put(chatter + encoded({"id": self.id, **body}))

    def progress(self, done: float, total: float, message: str) -> None:
        """Tell how far it is, if the caller wants to know."""
        token = (self.params.get("_meta") or {}).get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": done, "total": total, "message": message}
            self.put(encoded({"method": "notifications/progress", "params": params}))

    def change_list(self) -> None:
        """List the other tools from now on, and say so."""
        self._player.change_list()

    def list_changed(self) -> None:
        """Say that the list changed."""
        self._player.list_changed()

    def _stamped(self, result: dict[str, Any]) -> dict[str, Any]:
        """The result as the era of the request wants it."""
        meta = self.params.get("_meta") or {}
        if f"{_NAMESPACE}/protocolVersion" not in meta:
            return {
                key: value for key, value in result.items() if key not in ("ttlMs", "cacheScope")
            }
        info = {f"{_NAMESPACE}/serverInfo": {"name": self._player.script.name, "version": "1"}}
        return {**result, "resultType": "complete", "_meta": info | result.get("_meta", {})}


def encoded(message: Message) -> bytes:
    """A message as a line."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode("utf-8") + b"\n"
