"""Request ids: generated here, and written to every log line and the answer of a request.

A caller's own ``x-request-id`` is ignored: it could be any text in the log, or another request's id.
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


def start_request() -> str:
    """Binds a new request id to the current task and to the tasks that it starts from now on; returns it."""
    request = new_id()
    bind_contextvars(**{_IN_LOGS: request})
    return request


def start_detached_task(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Starts a task in an empty context: it serves many requests, so its log lines carry no request id."""
    return asyncio.create_task(work, name=name, context=Context())


def request_id() -> str:
    """The current request's id; a new one outside of a request."""
    return get_contextvars().get(_IN_LOGS) or new_id()


def new_id() -> str:
    """12 random hex digits. They need not be unguessable: an id gives access to nothing."""
    return f"{_CHANCE.getrandbits(48):012x}"
