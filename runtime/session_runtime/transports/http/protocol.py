"""The HTTP parser's edge: bounds the head of a request while it arrives, and answers in JSON."""

from typing import Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from session_runtime.wire import to_bytes

MAX_HEAD_BYTES: Final = 32_768


class BoundedHttp(HttpToolsProtocol):
    """The protocol of uvicorn, whose parser alone would gather a head without an end (NET-5)."""

    _head_bytes: int | None = 0  # None while the rest of a request arrives

    def data_received(self, data: bytes) -> None:
        """Feed the parser; refuse a head that is too large before it is complete."""
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        super().data_received(data)
        too_large = self._head_bytes is not None and self._head_bytes > MAX_HEAD_BYTES
        if too_large and not self.transport.is_closing():
            self._refuse(
                431,
                "request.head_too_large",
                f"the request line and headers have more than {MAX_HEAD_BYTES} bytes",
            )

    def on_headers_complete(self) -> None:
        """Stop counting: the body has its own bound."""
        self._head_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Count again: what follows is the head of the next request."""
        self._head_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(400, "request.http", msg)

    def _refuse(self, status: int, code: str, message: str) -> None:
        body = to_bytes({"error": {"code": code, "message": message, "retryable": False}})
        head = (
            b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % len(body)
        )
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
