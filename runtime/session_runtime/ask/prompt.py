"""The messages that stand before the question; what they say is fixed for the whole ask (TS-4)."""

from collections.abc import Sequence

from session_runtime.types import AskRequest, Message


def opening_messages(
    system_prompt: str, request: AskRequest, directory: str, prefetched: str | None
) -> tuple[Message, ...]:
    """System prompt with the request's instructions, tool ``directory`` and its rule, prefetch results.

    Each is one system message and left out when there is nothing to say; all stand before the
    history, so that a provider's cached prefix survives from ask to ask as far as possible.
    """
    texts = (
        "\n\n".join(part for part in (system_prompt, request.instructions) if part),
        directory,
        prefetched or "",
    )
    return tuple(Message("system", text) for text in texts if text)


def question_messages(request: AskRequest) -> tuple[Message, ...]:
    """The question: ``messages`` as given, or ``text`` as one user message."""
    if request.text is not None:
        return (Message("user", request.text),)
    return tuple(request.messages)


def prefetch_message(results: Sequence[tuple[str, str]]) -> str | None:
    """One text with all prefetched results in configured order (PRE-1), None without any."""
    if not results:
        return None
    lines = [f"- {name}: {_indented(text)}" for name, text in results]
    return "\n".join(["Results of tools that were already called for this request:", *lines])


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
