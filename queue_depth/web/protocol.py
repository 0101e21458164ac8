"""HTTP/1.1 as uvicorn speaks it, with a bound on what one connection can make the process keep."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from queue_depth.web.problems import ProblemError

MOST_BYTES = 64 * 1024
"""Bytes of one request besides its body that are taken; KEDA's and Prometheus' requests have far below 4 KiB."""


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a request whose head, chunk sizes and trailers grow without end, which httptools would all keep.

    Uvicorn itself bounds bodies (it stops reading at 64 KiB until they are asked for, and drops what comes after the
    answer), but not requests that are sent ahead: it goes on reading after each answer, however many still wait.
    Bounds hold up to what the event loop reads in one go, 256 KiB.
    """

    _bytes = 0

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        self._bytes += len(data)
        super().data_received(data)
        if self._bytes > MOST_BYTES and not self.transport.is_closing():
            self.send_400_response(f"A request may have {MOST_BYTES} bytes besides its body; this one has more.")

    def on_body(self, body: bytes) -> None:
        """A part of a body was parsed."""
        self._bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request was parsed to its end."""
        self._bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request was answered; the next that was sent ahead is begun."""
        super().on_response_complete()
        if self.pipeline and not self.transport.is_closing():
            self.flow.pause_reading()

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be parsed, and close."""
        response = ProblemError("bad_request", msg, {"Connection": "close"}).response()
        headers = (*self.server_state.default_headers, *response.raw_headers)
        lines = [b"HTTP/1.1 400 Bad Request", *(b"%b: %b" % header for header in headers), b"", bytes(response.body)]
        self.transport.write(b"\r\n".join(lines))
        self.transport.close()
