"""Starting the command line as a person at a terminal does."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator


def hears_interrupts() -> None:
    """For a child before it runs: what is started in the background inherits a deaf ear for Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def running_command(environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command of roundtrip with its output and errors as one; killed at the end, whatever failed."""
    with subprocess.Popen(
        [sys.executable, "-m", "roundtrip", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hears_interrupts,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
