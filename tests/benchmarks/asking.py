"""How the load benchmarks set a daemon up and ask it."""

import sys
from pathlib import Path

import httpx2
from conversation import TURNS, write_own_tools
from handler_tree import write_catalogue

CONFIG = """
[runtime]
state_dir = "state"
max_concurrent_asks = 1000
[handlers]
paths = ["tools"]
[skills]
tool_search_enabled = true
[models.main]
base_url = "http://127.0.0.1:9/v1"
model = "any"
max_retries = 0
"""


def prepare(place: Path, catalogues: Path, size: int) -> Path:
    """A configuration with ``size`` real tools and those of the conversation."""
    write_catalogue(place / "tools", catalogues, size)
    write_own_tools(place / "tools")
    config = place / "config.toml"
    config.write_text(CONFIG, "utf-8")
    return config


def pointing(url: str, *, stream: bool) -> dict[str, str]:
    """The environment that leads the daemon to a model."""
    prefix = "SESSION_RUNTIME__MODELS__MAIN"
    return {f"{prefix}__BASE_URL": url, f"{prefix}__STREAM": str(stream).lower()}


def client() -> httpx2.AsyncClient:
    """An HTTP client that opens as many connections as it is asked for.

    It keeps one for 2 s without use: servers keep them for 5 s, and what is sent as one is closed is lost.
    """
    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=None, keepalive_expiry=2.0
    )
    return httpx2.AsyncClient(trust_env=False, timeout=60, limits=limits)


async def asked(http: httpx2.AsyncClient, url: str, question: str) -> None:
    """One ask that must go well."""
    answer = await http.post(f"{url}/v1/ask", json={"text": question})
    result = answer.json()
    if result.get("outcome") != "answered" or result["steps"] != TURNS:
        sys.exit(f"an ask failed: {answer.status_code} {answer.text[:1_000]}")
