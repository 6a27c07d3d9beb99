"""A Generation is all that depends on configuration, as one immutable object pinned by each ask (REL-1).

``builder`` prepares one, ``live`` knows which are in use; when one is prepared is decided by
``config/live``, and what an ask does with it in ``ask``.
"""

from session_runtime.generation.builder import GenerationBuilder
from session_runtime.generation.derive import field_weights, schema_tokens
from session_runtime.generation.instructions import instructions_of
from session_runtime.generation.live import Generations, UsagePool
from session_runtime.generation.state import Generation, Permitted, Profile

__all__ = [
    "Generation",
    "GenerationBuilder",
    "Generations",
    "Permitted",
    "Profile",
    "UsagePool",
    "field_weights",
    "instructions_of",
    "schema_tokens",
]
