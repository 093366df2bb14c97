"""How commands run, and speak to whoever started them."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from typing import Any

import structlog
import uvloop
from rich.console import Console

_UNBROKEN = 300
# Where nobody watches, a line is not broken at the width of a window that there is not.
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _UNBROKEN)


def run(main_coroutine: Coroutine[Any, Any, None]) -> None:
    """To its end."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main_coroutine)


def log_to_stderr() -> None:
    """One line of JSON an event, to standard error; readable lines where a person watches."""
    watched = sys.stderr.isatty() or os.environ.get("MAKELEVEL") is not None
    renderer = structlog.dev.ConsoleRenderer(colors=False) if watched else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
