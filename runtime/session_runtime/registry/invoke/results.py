"""How what a tool returned becomes text for a model; failures are put into words in ``pipeline``."""

import json


def result_text(value: object) -> str | None:
    """Give text as it is, None as ``done``, JSON data compactly; return None for anything else."""
    match value:
        case None:
            return "done"
        case str():
            return encodable(value)
        case _:
            return _compact_json(value)


def cut(text: str, limit: int) -> str:
    """Keep the first ``limit`` characters and say how many there were."""
    if len(text) <= limit:
        return text
    return (
        f"{text[:limit]}\n[The result has {len(text)} characters; only the first {limit} are shown. "
        "Ask for less, or for a part, to see the rest.]"
    )


def encodable(text: str) -> str:
    """Replace halves of characters, which no request to a model could carry."""
    return str.encode(text, "utf-8", "replace").decode("utf-8")


def _compact_json(value: object) -> str | None:
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RuntimeError):
        return None
    return encodable(text)
