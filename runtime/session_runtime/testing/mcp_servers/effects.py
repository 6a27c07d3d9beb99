"""What the tools of a raw server do when they are called, by name; any other name echoes its arguments."""

import base64
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

PNG: Final = base64.b64decode(
    b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one point."""

DIED: Final = 3
"""The status that a server exits with where its script lets it die."""

Answer = dict[str, Any]


class Failure(Exception):
    """The answer is an error of the protocol with this code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Call(Protocol):
    """What a tool knows of its call, and can do beside answering."""

    arguments: Mapping[str, Any]
    cancelled: threading.Event

    def progress(self, done: float, total: float, message: str) -> None:
        """Tell how far it is, if the caller wants to know."""

    def change_list(self) -> None:
        """List the other tools from now on, and say so."""

    def list_changed(self) -> None:
        """Say that the list changed."""

    def put(self, data: bytes) -> None:
        """Write bytes into the answer's stream, whatever they are."""


class NeverAnswered(Exception):
    """The call gets no answer."""


def text(words: str, **more: Any) -> Answer:
    """A result of one text."""
    return {"content": [{"type": "text", "text": words}], **more}


def run(name: str, call: Call) -> Answer:
    """What the tool answers; raises Failure or NeverAnswered."""
    effect = _EFFECTS.get(name)
    return effect(call) if effect else text(json.dumps(dict(call.arguments)))


def _echo(call: Call) -> Answer:
    return text(str(call.arguments.get("text", "")))


def _add(call: Call) -> Answer:
    total = call.arguments.get("a", 0) + call.arguments.get("b", 0)
    return text(str(total), structuredContent={"sum": total})


def _slow(call: Call) -> Answer:
    """Takes ``seconds``; ends at once without an answer if it is cancelled."""
    if call.cancelled.wait(call.arguments.get("seconds", 0.2)):
        raise NeverAnswered
    return text("done")


def _forever(call: Call) -> Answer:
    call.cancelled.wait()
    raise NeverAnswered


def _progress(call: Call) -> Answer:
    """Tells how far it is ``times`` times, every ``every`` seconds, then answers."""
    times = call.arguments.get("times", 3)
    for done in range(1, times + 1):
        if call.cancelled.wait(call.arguments.get("every", 0.01)):
            raise NeverAnswered
        call.progress(done, times, f"step {done}")
    return text("done")


def _fail(call: Call) -> Answer:
    return text(str(call.arguments.get("text", "it did not work")), isError=True)


def _error(call: Call) -> Answer:
    raise Failure(
        call.arguments.get("code", -32603), str(call.arguments.get("message", "it failed"))
    )


def _die(call: Call) -> Answer:
    """Exits, or ends by the ``signal`` of this number."""
    number = call.arguments.get("signal")
    if number is not None:
        os.kill(os.getpid(), number)
        signal.pause()
    os._exit(DIED)


def _big(call: Call) -> Answer:
    return text("x" * call.arguments.get("bytes", 20_000_000))


def _rows(call: Call) -> Answer:
    """Data of ``count`` small objects: 400,000 of them are about 20 MB."""
    rows = [
        {"id": number, "name": f"row {number}", "value": number * 1.5}
        for number in range(call.arguments.get("count", 400_000))
    ]
    return text("many rows", structuredContent={"rows": rows})


def _environ(call: Call) -> Answer:
    return text(json.dumps(dict(os.environ)))


def _change_list(call: Call) -> Answer:
    call.change_list()
    return text("changed")


def _flood(call: Call) -> Answer:
    for _ in range(call.arguments.get("times", 1_000)):
        call.list_changed()
    return text("flooded")


def _print(call: Call) -> Answer:
    """Prints ``text`` (Latin-1) where only messages belong, then answers."""
    call.put(str(call.arguments.get("text", "a line of log\n")).encode("latin-1"))
    return text("printed")


def _warn(call: Call) -> Answer:
    """Prints ``text`` to the standard error, then answers."""
    sys.stderr.write(str(call.arguments.get("text", "a warning\n")))
    sys.stderr.flush()
    return text("warned")


def _close_output(call: Call) -> Answer:
    os.close(1)
    raise NeverAnswered


def _image(call: Call) -> Answer:
    picture = base64.b64encode(PNG).decode("ascii")
    content = [
        {"type": "text", "text": "a picture"},
        {"type": "image", "data": picture, "mimeType": "image/png"},
    ]
    return {"content": content}


def _resource(call: Call) -> Answer:
    held = {"uri": "file:///notes.txt", "mimeType": "text/plain", "text": "what the notes say"}
    link = {"type": "resource_link", "uri": "https://example.invalid/report", "name": "report"}
    return {"content": [{"type": "resource", "resource": held}, link]}


def _unknown_content(call: Call) -> Answer:
    return {"content": [{"type": "hologram", "data": "?"}]}


def _broken_answer(call: Call) -> Answer:
    """A result that is no object, under the right id."""
    raise Broken([])


class Broken(Exception):
    """The answer has this instead of a result."""

    def __init__(self, result: object) -> None:
        super().__init__()
        self.result = result


_EFFECTS: Final[Mapping[str, Callable[[Call], Answer]]] = {
    "echo": _echo,
    "add": _add,
    "slow": _slow,
    "forever": _forever,
    "progress": _progress,
    "fail": _fail,
    "error": _error,
    "die": _die,
    "big": _big,
    "rows": _rows,
    "environ": _environ,
    "change_list": _change_list,
    "flood": _flood,
    "print": _print,
    "warn": _warn,
    "close_output": _close_output,
    "image": _image,
    "resource": _resource,
    "unknown_content": _unknown_content,
    "broken_answer": _broken_answer,
    "structured": lambda call: text("3", structuredContent={"sum": 3}),
    "structured_bad": lambda call: text("three", structuredContent={"sum": "three"}),
    "structured_missing": lambda call: text("nothing else"),
}
