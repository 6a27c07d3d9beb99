"""Errors that a transport gives in the name of a server, told from those of the server itself.

Public: ``OwnErrors``. What a fault means for a call is decided in ``faults``.
"""

import secrets
from typing import Any, Final

from session_runtime.mcp.faults import Fault, Kind

CODE: Final = -32000


class OwnErrors:
    """Those of one connection, marked so that no server can pass off its errors as such."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)

    def error(
        self, kind: Kind, said: str, retry_after_s: float | None = None, code: int = 0
    ) -> dict[str, Any]:
        """The error of a message that tells of a fault; ``code`` is the one of the server, if it gave one."""
        data = {
            "by": self._mark,
            "kind": kind,
            "said": said,
            "retry_after_s": retry_after_s,
            "code": code,
        }
        return {"code": CODE, "message": said, "data": data}

    def fault_in(self, data: object) -> Fault | None:
        """The fault that is told in the data of an error; None for errors of the server."""
        match data:
            case {
                "by": self._mark,
                "kind": kind,
                "said": said,
                "retry_after_s": retry_after_s,
                "code": code,
            }:
                return Fault(kind, said, code=code, retry_after_s=retry_after_s)
            case _:
                return None
