"""How commands run, and speak to whoever started them."""

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

_UNBROKEN = 300
# Where nobody watches, a line is not broken at the width of a window that there is not.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _UNBROKEN)


def run(main_coroutine: Coroutine[Any, Any, None]) -> None:
    """To its end. Raises KeyboardInterrupt when it was told to end before."""
    # Only the main thread hears of signals.
    hears = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_until_told(main_coroutine) if hears else main_coroutine)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        if hears:
            signal.signal(signal.SIGTERM, before)


async def _until_told(main_coroutine: Coroutine[Any, Any, None]) -> None:
    """A termination cancels it, as Ctrl-C does. An exception raised by the handler would end whichever task
    happens to run, and what that holds would never be given back."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def end(number: int, frame: FrameType | None) -> None:
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)

    signal.signal(signal.SIGTERM, end)
    await main_coroutine


def environment(**ours: str | None) -> dict[str, str]:
    """Ours with these on top, for a process that we start; None: without it."""
    theirs = {name: value for name, value in os.environ.items() if name not in ours}
    return theirs | {name: value for name, value in ours.items() if value is not None}


def is_on_terminal() -> bool:
    """Whether a terminal controls us, so that a hangup tells that it was closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def log_to_stderr() -> None:
    """One line of JSON an event, to standard error; readable lines where a person watches. Never raises."""
    watched = sys.stderr.isatty() or os.environ.get("MAKELEVEL") is not None
    logs.configure(watched)
