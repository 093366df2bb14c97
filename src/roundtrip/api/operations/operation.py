"""One row of the table of operations."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, get_args, get_type_hints

import msgspec

from roundtrip.chain.rpc.bulkhead import Lane
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.services.runtime.context import Context, UseCaseAnswer

P = TypeVar("P", bound=msgspec.Struct)
A = TypeVar("A", bound=msgspec.Struct)
Q = ParamSpec("Q")
Method = Literal["GET", "POST", "DELETE"]
LINES = "application/x-ndjson"
"""The media type of one JSON object a line."""
TEXT = "text/plain"
"""The media type of the same lines for clients that accept only it: generators of clients know it."""
EVENTS = "text/event-stream"

ONCE = (
    "With an Idempotency-Key header, or idempotencyKey in _meta, a repeat returns the first answer and does "
    "nothing."
)
"""The description of ``once`` operations for clients."""
COMMON_CODES = frozenset({"bad_key", "key_needed", "rate_limited", "daily_limit", "busy"})
"""Error codes that follow from keys, limits and load, whatever a tool does. The instructions name them once
for all tools (``api/documents/about.py``)."""


@dataclass(frozen=True, slots=True)
class HandlerCall(Generic[P]):
    """One admitted request. ``account``: the key's account; None: no key. ``idempotency_key``: None: the
    request has none, or the operation takes none."""

    ctx: Context
    params: P
    account: Account | None = None
    idempotency_key: str | None = None

    def owner(self) -> Account:
        """The account, for operations that need a key: the gate refuses requests without one."""
        assert self.account is not None
        return self.account


Runner = Callable[[HandlerCall[P]], Awaitable[UseCaseAnswer[Any]]]


@dataclass(frozen=True, slots=True)
class Operation(Generic[P, A]):
    """One capability of the service. ``name`` is the tool's name; ``on_mcp`` False: HTTP only.

    ``counts``: which of the caller's limits a call counts against; ``day``: the day's and the minute's.
    ``key``: a key is required. ``ignores_key``: a key that the request carries plays no part, and the call
    counts under the caller's address. ``shared_by``: returns the identity of a request, for answers that all
    callers share; None: every request runs. ``bad_params``: the error code of invalid parameters.
    ``tool_requires``: parameters that are required in a tool's schema but optional in a request, because
    others can replace them. ``query``: parameters that come only from the query string of an HTTP request;
    tools do not have them. ``path_answer``: the part of the answer that HTTP requests receive; None: all of
    it. ``errors``: the operation's own error codes, besides those that follow from the other fields
    (``codes``).
    ``needs_one_of``: a request gives at least one of these parameters. ``destroys``: a write that removes
    something. ``repeatable``: a write that changes nothing more when repeated. ``once``: a write of an
    account that takes an idempotency key; for a repeated key the handler returns the first answer and does
    nothing. ``lane``: the node's concurrency lane that it uses, where strangers' code decides how long it
    runs. ``takes_min_block``: a request may set the minimum block of its answer. ``each``: HTTP only; runs
    for each address that the handler returns, and HTTP requests receive one line for each. ``streams``: HTTP
    only; the handler returns the plan of a stream of events, each a ``path_answer``. ``from_replica``: reads
    nothing that its caller may just have written, so a replica may answer. ``has_own_place``: equal requests
    share one run, which takes no place from others. ``rewrite``: turns another form of a request's parameters
    into that of ``params``; its second argument is the chain's id, None: any; raises ParamFault.
    ``rewritten``: the type of what it returns, with fields that are not listed; None: that of ``params``.
    ``unlisted``: parameters that ``rewrite`` takes, in inner objects too, and that no schema lists.
    """

    handler: Runner[P]
    params: type[P]
    answer: type[A]
    name: str = ""
    title: str = ""
    description: str = ""
    method: Method = "GET"
    path: str | None = None
    key: bool = False
    ignores_key: bool = False
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
    has_own_place: bool = False
    repeatable: bool = False
    once: bool = False
    lane: Lane | None = None
    takes_min_block: bool = False
    each: "AnyOperation | None" = None
    streams: bool = False
    from_replica: bool = False
    rewrite: Callable[[Mapping[str, object], int | None], Mapping[str, object]] | None = None
    rewritten: type[msgspec.Struct] | None = None
    unlisted: tuple[str, ...] = ()

    def has_body(self) -> bool:
        """Whether a request carries its parameters in a JSON body, beside those in its path."""
        return self.method == "POST"

    def media_type(self) -> str:
        """The media type of its HTTP answer."""
        if self.streams:
            return EVENTS
        return "application/json" if self.each is None else LINES

    def is_one_answer(self) -> bool:
        """Whether its HTTP answer is one JSON object, and not lines or events."""
        return self.each is None and not self.streams

    def codes(self) -> tuple[str, ...]:
        """Every error code that it may answer with, in the order of ``STATUS_BY_CODE``."""
        # bad_input: at least for an unknown parameter.
        codes = {*self.errors, "internal", "bad_input"}
        if self.params.__struct_fields__:
            codes.add(self.bad_params)
        if self.has_body():
            codes.add("bad_json")
        if self.key:
            codes |= {"key_needed", "bad_key"}
        if self.counts != "never":
            codes |= {"rate_limited", "busy"} if self.ignores_key else {"bad_key", "rate_limited", "busy"}
        if self.counts == "day":
            codes.add("daily_limit")
        return tuple(code for code in STATUS_BY_CODE if code in codes)

    def tool_description(self) -> str:
        """The tool's description with its error codes; leaves out internal errors, codes that only HTTP
        requests can cause, and those that every tool shares."""
        left_out = {"internal", "bad_json", *COMMON_CODES}
        if not self.params.__struct_fields__ or self.bad_params != "bad_input":
            left_out.add("bad_input")
        parts = [self.description]
        if self.once:
            parts.append(ONCE)
        codes = [code for code in self.codes() if code not in left_out]
        needs = ["needs a key"] if self.key else []
        if codes:
            *others, last = codes
            needs.append(f"fails with {' or '.join(filter(None, (', '.join(others), last)))}")
        if needs:
            ending = "; ".join(needs)
            parts.append(f"{ending[0].upper()}{ending[1:]}.")
        return " ".join(parts)

    def __post_init__(self) -> None:
        if self.key and self.shared_by is not None:
            raise ValueError(f"{self.name}: an answer for one key would be shared by everyone")
        if self.once and not (self.key and self.writes):
            raise ValueError(f"{self.name}: once needs an account and a write")
        if self.from_replica and (self.key or self.writes or self.takes_min_block):
            raise ValueError(f"{self.name}: a replica may lack what the caller has written or seen")
        if self.on_mcp and not self.is_one_answer():
            raise ValueError(f"{self.name}: a tool has one answer, not lines or events")


AnyOperation = Operation[Any, Any]
"""A row of the table, with parameters and an answer of any type."""

Handler = Callable[[Context, P], Awaitable[UseCaseAnswer[A]]]
AccountHandler = Callable[[Context, P, Account], Awaitable[UseCaseAnswer[A]]]


def _for_service(
    make: Callable[Concatenate[Runner[P], type[P], type[A], Q], Operation[P, A]],
) -> Callable[Concatenate[Handler[P, A], Q], Operation[P, A]]:
    """``make``, which then takes a use case's function in place of a runner and its two types."""

    def make_operation(handler: Handler[P, A], /, *args: Q.args, **fields: Q.kwargs) -> Operation[P, A]:
        params, answer = read_types(handler)
        row = make(lambda call: handler(call.ctx, call.params), params, answer, *args, **fields)
        return replace(row, name=row.name or handler.__name__)

    return make_operation


def _for_account(
    make: Callable[Concatenate[Runner[P], type[P], type[A], Q], Operation[P, A]],
) -> Callable[Concatenate[AccountHandler[P, A], Q], Operation[P, A]]:
    """The same for a function of the caller's account: it needs a key."""

    def make_operation(
        handler: AccountHandler[P, A], /, *args: Q.args, **fields: Q.kwargs
    ) -> Operation[P, A]:
        params, answer = read_types(handler)
        row = make(lambda call: handler(call.ctx, call.params, call.owner()), params, answer, *args, **fields)
        return replace(row, name=row.name or handler.__name__, key=True)

    return make_operation


service_operation = _for_service(Operation)
"""The operation that runs a use case, with its types and, unless ``name`` is given, its name. Its other
parameters are the fields of ``Operation``."""
account_operation = _for_account(Operation)
"""The same for a use case of the caller's account."""


def read_types(handler: Callable[..., object]) -> tuple[Any, Any]:
    """The types of a handler's parameters and of its answer."""
    hints = get_type_hints(handler)
    return hints["params"], get_args(hints["return"])[0]
