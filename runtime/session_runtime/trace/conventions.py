"""The names that spans and their attributes have: those of OpenTelemetry for generative models.

They are still in development there, so that all of them stand here and nowhere else. What they do not
have a name for begins with ``session_runtime.``.
"""

from typing import Final

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
ERROR_TYPE: Final = "error.type"
SERVICE_NAME: Final = "service.name"
SERVICE_VERSION: Final = "service.version"

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
FUNCTION: Final = "function"
OURSELVES: Final = "session_runtime"
"""The provider, as which service is behind a profile is nobody's business here."""

ASK_ID: Final = "session_runtime.ask.id"
OUTCOME: Final = "session_runtime.ask.outcome"
GENERATION: Final = "session_runtime.generation"
CONFIG_DIGEST: Final = "session_runtime.config.digest"
DAEMON_SECONDS: Final = "session_runtime.daemon.seconds"
TOKENS_SAVED: Final = "session_runtime.tokens.saved"
SEARCH_RULE: Final = "session_runtime.tool_search.rule"
SEARCH_LOADED: Final = "session_runtime.tool_search.loaded"
OFFERED: Final = "session_runtime.tools.offered"
OFFERED_TOKENS: Final = "session_runtime.tools.offered_tokens"
ATTEMPTS: Final = "session_runtime.attempts"
STATUS: Final = "session_runtime.call.status"
RESULT_CHARS: Final = "session_runtime.result.chars"
