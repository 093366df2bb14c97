"""One row of the table of operations."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from roundtrip.services.context import Answered


@dataclass(frozen=True, slots=True)
class Operation:
    """One capability of the service. ``name`` is the tool's name; ``on_mcp`` False: HTTP only.

    ``counts``: against which of the caller's limits it counts; ``day``: those of the day and of the minute.
    ``key``: it needs one, and its handler is given the mite whose it is as a third argument. ``shared_by``:
    what makes two requests the same, for answers that everyone shares; None: every request runs.
    ``bad_params``: the code of a request whose parameters do not fit. ``tool_requires``: parameters that a
    tool's schema asks for and a request may leave out, because others can stand for them. ``query``:
    parameters that come by the query string of an HTTP request and in no other way; tools do not have them.
    ``path_answer``: as much of the answer as an HTTP request is given; None: all of it.
    """

    name: str
    title: str
    description: str
    params: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    handler: Callable[..., Awaitable[Answered[Any]]]
    method: Literal["GET", "POST"] = "GET"
    path: str | None = None
    key: bool = False
    writes: bool = False
    on_mcp: bool = True
    counts: Literal["day", "minute", "never"] = "day"
    shared_by: Callable[[Any], str] | None = None
    bad_params: str = "bad_input"
    tool_requires: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    path_answer: type[msgspec.Struct] | None = None
