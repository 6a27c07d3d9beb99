from session_runtime.app.runtime import Runtime as Runtime
from session_runtime.errors import ConfigError as ConfigError
from session_runtime.types import AskEvent as AskEvent
from session_runtime.types import AskRequest as AskRequest
from session_runtime.types import AskResult as AskResult
from session_runtime.types import Identity as Identity
from session_runtime.types import Message as Message
from session_runtime.wire import message_from_json as message_from_json
from session_runtime.wire import message_to_json as message_to_json

__version__: str
