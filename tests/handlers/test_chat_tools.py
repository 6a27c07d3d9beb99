"""``send_message`` reaches the person at once; ``end`` confirms."""

import pytest

from session_runtime.handler import HandlerContext


async def test_a_message_is_sent_at_once(run) -> None:
    sent: list[str] = []
    result = await run("send_message", HandlerContext(on_message=sent.append), text="你好 👋")
    assert (result.status, result.content, sent) == ("ok", "sent", ["你好 👋"])


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("", "tool.invalid_arguments", "text: must have at least 1 character, has 0"),
        (" \n", "tool.failed", "The message is blank."),
        (
            "x" * 10_001,
            "tool.invalid_arguments",
            "text: must have at most 10000 characters, has 10001",
        ),
    ],
)
async def test_a_message_must_say_something_and_is_bounded(
    run, text: str, code: str, says: str
) -> None:
    sent: list[str] = []
    result = await run("send_message", HandlerContext(on_message=sent.append), text=text)
    assert (result.status, result.error_code, sent) == ("error", code, [])
    assert says in result.content


@pytest.mark.parametrize("arguments", [{}, {"memo": "All answered."}, {"reason": "nothing to do"}])
async def test_end_confirms(run, arguments: dict[str, str]) -> None:
    result = await run("end", **arguments)
    assert (result.status, result.content) == ("ok", "ended")
