"""What models are asked with beside tools, as digests: prompts, and who they are; compared by ``replay``."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from session_runtime.config.settings import profiles
from session_runtime.config.snapshot import ConfigSnapshot, plain, values_of
from session_runtime.generation.state import Generation
from session_runtime.trace.record import AskRecord, InstructionRecord

APART: Final = frozenset(
    {
        *("api_key", "headers", "timeout_s", "max_retries", "max_concurrency", "stream"),
        *("prompt_cache", "chain", "context_window"),
        *("supports_tool_search", "max_tools", "fallback"),
    }
)
"""Keys of a profile that change nothing of what its model reads and is, or that a replay decides by."""


def model_digests(snapshot: ConfigSnapshot) -> Mapping[str, str]:
    """Digests of what each profile's model is and how it is spoken to; no secret is in them (CFG-4)."""
    said: dict[str, dict[str, object]] = {name: {} for name in profiles(snapshot.settings)}
    for path, value in values_of(snapshot.settings).items():
        if path[0] == "models" and path[1] in said and path[2] not in APART:
            key = json.dumps(path[2:])
            said[path[1]][key] = plain(path, value, snapshot.provenance.get(path, ()))
    return {name: digest_of_text(json.dumps(keys, sort_keys=True)) for name, keys in said.items()}


def digest_of_text(text: str) -> str:
    """A short digest, alike in any process."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def instructions_of(generation: Generation, record: AskRecord) -> tuple[InstructionRecord, ...]:
    """What the models of an ask would be asked with now: of what is not there any more, nothing."""
    return tuple(_instructions(generation, record)) if record.turns else ()


def _instructions(generation: Generation, record: AskRecord) -> Iterator[InstructionRecord]:
    digests = generation.digests
    yield InstructionRecord("prompt", "", digests.prompt)
    for name in _each(turn.model for turn in record.all_turns):
        if name in digests.models:
            yield InstructionRecord("profile", name, digests.models[name])
    for name in _each(agent.agent.rpartition("/")[2] for agent in record.agents):
        if name in generation.agents:
            prompt = digest_of_text(generation.agents[name].prompt)
            yield InstructionRecord("agent", name, prompt)


def _each(names: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(names)
