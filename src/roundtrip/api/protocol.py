"""The HTTP server's protocol with a bound on request heads: the parser itself keeps whatever comes."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 512 * 1024
"""Above what one read from a socket can bring, so that a body that comes along never counts."""

_BODY = b'{"error":{"code":"bad_input","message":"The request has too many headers."}}'
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(_BODY), _BODY)
)


class BoundedHeads(HttpToolsProtocol):
    """Ends a connection whose request head passes the bound."""

    _head_bytes = 0
    _in_head = True

    def data_received(self, data: bytes) -> None:
        """Counts while the head is being read."""
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.transport.write(_REFUSAL)
                self.transport.close()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is over."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next head begins."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_complete()
