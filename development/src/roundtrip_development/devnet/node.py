"""The local node: anvil, run directly, and ended with its parent process."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from roundtrip.domain.base.errors import CannotRun

from .sync_rpc import SyncRpc

CHAIN_ID = 4663
_PR_SET_PDEATHSIG = 1


class NodeStartError(CannotRun):
    """The local node did not start; the text says why."""


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """``block_time_s`` None: a block for every transaction, at once. ``port`` 0: a free one. ``start_s``: how
    long to wait for the node; a large state takes longer to load.

    The flags come from measurements: cancun costs 1 ms a block where newer rules cost 7 after some thousand
    blocks; without pruning every block writes 1.2 MB to disk.
    """

    port: int = 0
    block_time_s: float | None = None
    state: Path | None = None
    timestamp_s: int | None = None
    prune_history: int = 600
    accounts: int = 10
    start_s: float = 15.0

    def arguments(self, port: int) -> list[str]:
        """The command line of anvil."""
        arguments = ["-q", "--chain-id", str(CHAIN_ID), "--port", str(port), "--hardfork", "cancun"]
        arguments += ["--accounts", str(self.accounts), "--balance", "10000"]
        arguments += ["--prune-history", str(self.prune_history)]
        if self.block_time_s is not None:
            arguments += ["--block-time", str(self.block_time_s)]
        if self.state is not None:
            arguments += ["--load-state", str(self.state)]
        if self.timestamp_s is not None:
            arguments += ["--timestamp", str(self.timestamp_s)]
        return arguments


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A running node of ours."""

    url: str
    pid: int

    def memory_bytes(self) -> int:
        """The node's resident memory; 0 once it has ended."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")


def find_anvil(start: Path) -> Path:
    """The pinned binary below the nearest ``node_modules`` above ``start``."""
    for folder in (start, *start.parents):
        # npm installs the one for this machine.
        for binary in folder.glob("node_modules/@foundry-rs/anvil-*/bin/anvil"):
            return binary
    raise NodeStartError("anvil is not installed: run npm ci --ignore-scripts, or make run, which does")


@contextlib.contextmanager
def running(binary: Path, options: NodeOptions) -> Iterator[RunningNode]:
    """Starts the node, yields it once it answers, and ends it. Raises NodeStartError."""
    port = options.port or free_port()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [str(binary), *options.arguments(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            _await_answer(process, url, errors, options.start_s)
            yield RunningNode(url, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """A loopback port that had no listener a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def die_with_parent() -> None:
    """For a new process: the kernel ends it with SIGTERM when its parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _await_answer(process: subprocess.Popen[bytes], url: str, errors: IO[bytes], start_s: float) -> None:
    deadline = time.monotonic() + start_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            errors.seek(0)
            tail = errors.read().decode(errors="replace").strip()[-300:]
            raise NodeStartError(f"the local node ended at once: {tail}")
        with contextlib.suppress(OSError), SyncRpc(url) as chain:
            if int(chain.call("eth_chainId"), 16) == CHAIN_ID:
                return
        time.sleep(0.005)
    raise NodeStartError(f"the local node did not answer within {start_s:.0f} seconds")
