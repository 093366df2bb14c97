"""One row of the table of operations."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

from roundtrip.chain.rpc.bulkhead import Lane
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.services.runtime.context import Context, UseCaseAnswer

P = TypeVar("P", bound=msgspec.Struct)

ONCE = (
    "With an Idempotency-Key header, or idempotencyKey in _meta, a repeat gives the first answer and does "
    "nothing more."
)
"""What readers are told of operations that are done once."""


@dataclass(frozen=True, slots=True)
class HandlerCall(Generic[P]):
    """One admitted request. ``account``: whose key it has; None: it has no key. ``idempotency_key``: None: it
    has none, or the operation takes none."""

    ctx: Context
    params: P
    account: Account | None = None
    idempotency_key: str | None = None

    def owner(self) -> Account:
        """The account, for operations that need a key: the gate lets nobody in without."""
        assert self.account is not None
        return self.account


@dataclass(frozen=True, slots=True)
class Operation(Generic[P]):
    """One capability of the service. ``name`` is the tool's name; ``on_mcp`` False: HTTP only.

    ``counts``: against which of the caller's limits it counts; ``day``: those of the day and of the minute.
    ``key``: it needs one. ``shared_by``: what makes two requests the same, for answers that everyone shares;
    None: every request runs. ``bad_params``: the code of a request whose parameters do not fit.
    ``tool_requires``: parameters that a tool's schema asks for and a request may leave out, because others
    can stand for them. ``query``: parameters that come by the query string of an HTTP request and in no
    other way; tools do not have them. ``path_answer``: as much of the answer as an HTTP request is given;
    None: all of it. ``errors``: the codes of its own, beside those that follow from the rest of the row
    (``codes``). ``needs_one_of``: parameters of which a request gives at least one. ``destroys``: of one
    that writes: it takes something away. ``repeatable``: of one that writes: doing it twice changes nothing
    more. ``once``: of one that writes for a key's owner: a request may carry an idempotency key; of the same
    key the handler gives the first answer again, and does nothing. ``lane``: the
    places at the node that it takes, where strangers' code decides how long it runs. ``takes_min_block``: a
    request may say which block its answer has to be of, or a later one.
    """

    name: str
    title: str
    description: str
    params: type[P]
    answer: type[msgspec.Struct]
    handler: Callable[[HandlerCall[P]], Awaitable[UseCaseAnswer[Any]]]
    method: Literal["GET", "POST"] = "GET"
    path: str | None = None
    key: bool = False
    writes: bool = False
    on_mcp: bool = True
    counts: Literal["day", "minute", "never"] = "day"
    shared_by: Callable[[P], str] | None = None
    bad_params: str = "bad_input"
    tool_requires: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    path_answer: type[msgspec.Struct] | None = None
    errors: tuple[str, ...] = ()
    needs_one_of: tuple[str, ...] = ()
    destroys: bool = False
    repeatable: bool = False
    once: bool = False
    lane: Lane | None = None
    takes_min_block: bool = False

    def codes(self) -> tuple[str, ...]:
        """Every error code that it may answer with, in the order of the table of codes."""
        found = {*self.errors, "internal"}
        if self.params.__struct_fields__:
            found.add(self.bad_params)
        if self.query or self.method == "POST":
            found.add("bad_input")
        if self.method == "POST":
            found.add("bad_json")
        if self.key:
            found |= {"key_needed", "bad_key"}
        if self.once:
            found.add("bad_input")
        if self.counts != "never":
            found |= {"bad_key", "rate_limited", "busy"}
        if self.counts == "day":
            found.add("daily_limit")
        return tuple(code for code in STATUS_BY_CODE if code in found)

    def tool_description(self) -> str:
        """What the tool is described by, with how a call of it may fail: of no fault of ours, and not of
        what only a request over HTTP has."""
        of_http = {"internal", "bad_json"}
        if self.query and self.bad_params != "bad_input":
            of_http.add("bad_input")
        codes = [code for code in self.codes() if code not in of_http]
        said = f"{self.description} {ONCE}" if self.once else self.description
        if not codes:
            return said
        *codes, last = codes
        return f"{said} Fails with {', '.join(codes)} or {last}."

    def __post_init__(self) -> None:
        if self.key and self.shared_by is not None:
            raise ValueError(f"{self.name}: what one caller is told would be shared by everyone")
        if self.once and not (self.key and self.writes):
            raise ValueError(f"{self.name}: there is nothing, or nobody, to do it once for")


AnyOperation = Operation[Any]
"""A row of the table, whatever its parameters are."""
