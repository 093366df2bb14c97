"""Bodies and lines, as long as this client reads them: a server may send more than there is memory for."""

from collections.abc import Iterator

import httpx2

from .errors import UnreadableAnswer

MAX_BODY_BYTES = 16 * 2**20
MAX_LINE_BYTES = 2**20


def _refuse(what: str, most: int, response: httpx2.Response) -> UnreadableAnswer:
    return UnreadableAnswer(f"{what} is longer than {most:,} bytes", response.headers.get("x-request-id"))


def read_body(response: httpx2.Response) -> bytes:
    """The whole body, decompressed. Raises UnreadableAnswer where it is too long."""
    body = bytearray()
    for chunk in response.iter_bytes():
        _append(body, chunk, response)
    return bytes(body)


async def aread_body(response: httpx2.Response) -> bytes:
    """The same for asyncio."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        _append(body, chunk, response)
    return bytes(body)


def _append(body: bytearray, chunk: bytes, response: httpx2.Response) -> None:
    body += chunk
    if len(body) > MAX_BODY_BYTES:
        raise _refuse("the answer", MAX_BODY_BYTES, response)


class Lines:
    """Splits the chunks of a body. Raises UnreadableAnswer where a line is too long."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that this chunk ends, without their ends."""
        self._rest += chunk
        *lines, rest = self._rest.split(b"\n")
        self._rest = bytearray(rest)
        if any(len(line) > MAX_LINE_BYTES for line in (*lines, rest)):
            raise _refuse("a line", MAX_LINE_BYTES, self._response)
        yield from (bytes(line.removesuffix(b"\r")) for line in lines)

    def end(self) -> Iterator[bytes]:
        """The last line, if nothing ended it."""
        if self._rest:
            yield bytes(self._rest)
