"""Running a command, its output, and its logs."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import Any

import uvloop
from rich.console import Console

from roundtrip.observability import logs

_WIDE = 300
# Without a terminal, lines are not wrapped at a window's width.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE)


def run(main_coroutine: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine to its end. Raises KeyboardInterrupt: it was interrupted or terminated."""
    # Only the main thread can handle signals.
    is_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run_until_terminated(main_coroutine) if is_main_thread else main_coroutine)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        if is_main_thread:
            signal.signal(signal.SIGTERM, before)


async def _run_until_terminated(main_coroutine: Coroutine[Any, Any, None]) -> None:
    """SIGTERM cancels the coroutine, as Ctrl-C does. An exception raised by the handler would end the task
    that happens to run, without releasing its resources."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def cancel(number: int, frame: FrameType | None) -> None:
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)

    signal.signal(signal.SIGTERM, cancel)
    await main_coroutine


def environment(**overrides: str | None) -> dict[str, str]:
    """This process's environment with ``overrides``, for a child process; None removes a variable."""
    inherited = {name: value for name, value in os.environ.items() if name not in overrides}
    return inherited | {name: value for name, value in overrides.items() if value is not None}


def is_on_terminal() -> bool:
    """Whether this process has a controlling terminal, so that SIGHUP means that it was closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def log_to_stderr() -> None:
    """Logs to standard error: one line of JSON per event; formatted for a person at a terminal and under
    make. A line that cannot be written is lost, and logging it raises nothing."""
    is_readable = sys.stderr.isatty() or os.environ.get("MAKELEVEL") is not None
    logs.configure(is_readable)
