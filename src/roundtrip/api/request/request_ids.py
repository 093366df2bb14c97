"""The id of a request: ours alone, in every line of the log that is written for it, and in its answer.

What a caller sends as ``x-request-id`` is not read: it could stand in the log for anything, and for the
requests of others.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import Context
from random import Random
from typing import Any

from structlog.contextvars import bind_contextvars, get_contextvars

HEADER = b"x-request-id"
_IN_LOGS = "request"
_CHANCE = Random()  # noqa: S311


def begin_request() -> str:
    """A new id, which holds for all that the running task, and what it starts, does from here on."""
    drawn = new_id()
    bind_contextvars(**{_IN_LOGS: drawn})
    return drawn


def begin_for_all(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """A task that outlives the request in which it happens to begin, and is no part of it."""
    return asyncio.create_task(work, name=name, context=Context())


def request_id() -> str:
    """Of the request that is being answered; of work that is nobody's request a new one."""
    return get_contextvars().get(_IN_LOGS) or new_id()


def new_id() -> str:
    """12 hex digits. Nobody gains by guessing one."""
    return f"{_CHANCE.getrandbits(48):012x}"
