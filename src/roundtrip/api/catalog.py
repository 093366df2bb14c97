"""THE TABLE: every operation once. Routes, tools, documentation and tests loop over it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from roundtrip.services.check import check
from roundtrip.services.check_answer import Check, CheckParams
from roundtrip.services.context import Answered, Context
from roundtrip.services.health import Health, HealthParams, health
from roundtrip.services.prepare import prepare_buy, prepare_sell
from roundtrip.services.prepare_answer import PrepareBuyParams, PreparedTrade, PrepareSellParams
from roundtrip.services.proof import check_proof
from roundtrip.services.proof_answer import Proof
from roundtrip.services.simulate import simulate
from roundtrip.services.simulate_answer import SimulateParams, Simulation


@dataclass(frozen=True, slots=True)
class Operation:
    """One capability of the service. ``name`` is the tool's name; ``on_mcp`` False: HTTP only.

    ``counted``: it counts against the caller's limit. ``shared_by``: what makes two requests the same,
    for answers that everyone shares; None: every request runs. ``bad_params``: the code of a request
    whose parameters do not fit. ``tool_requires``: parameters that a tool's schema asks for and a request
    may leave out, because others can stand for them. ``query``: parameters that come by the query string of
    an HTTP request and in no other way; tools do not have them.
    """

    name: str
    title: str
    description: str
    params: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    handler: Callable[[Context, Any], Awaitable[Answered[Any]]]
    method: Literal["GET", "POST"] = "GET"
    path: str | None = None
    key: bool = False
    writes: bool = False
    on_mcp: bool = True
    counted: bool = True
    shared_by: Callable[[Any], str] | None = None
    bad_params: str = "bad_input"
    tool_requires: tuple[str, ...] = ()
    query: tuple[str, ...] = ()


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="check_token",
        title="Check a token",
        description=(
            "Buys the token with 0.1 eth and sells it straight back, inside a simulation of the latest "
            "block, and tells whether it can be sold, at once and later, and what the round trip costs. "
            "Nothing is sent on the chain. "
            "Level unknown means it could not be found out: treat it as a no. "
            "Losses are in hundredths of a percent; answers are shared for 15 seconds. "
            "Fails with bad_address, rate_limited, upstream, busy or budget_spent."
        ),
        params=CheckParams,
        answer=Check,
        handler=check,
        path="/v1/check/{address}",
        shared_by=lambda params: params.shared_as(),
        bad_params="bad_address",
        query=("deep",),
    ),
    Operation(
        name="check_proof",
        title="Prove a check",
        description=(
            "The newest check of a token of the last day, and one made now where there is none, with "
            "everything that is needed to make it again: its evidence, and the exact JSON-RPC requests that "
            "the evidence came of, trip by trip. "
            "roundtrip verify sends them to a node of your own and judges again. "
            "Fails with bad_address, rate_limited, upstream, busy or budget_spent."
        ),
        params=CheckParams,
        answer=Proof,
        handler=check_proof,
        path="/v1/check/{address}/proof",
        on_mcp=False,
        shared_by=lambda params: str(params.token()),
        bad_params="bad_address",
    ),
    Operation(
        name="simulate_transaction",
        title="Simulate a transaction",
        description=(
            "Runs one transaction, or up to six calls in order, from a wallet on the latest block, and tells "
            "what it spends, receives and allows, read from balances and allowances; what it buys is sold "
            "straight back. Nothing is sent on the chain. "
            "Level unknown is not a pass: treat it as a no. value is in wei, losses are in hundredths of a "
            "percent; gas is told per call and is no part of what is spent. "
            "Fails with bad_input, rate_limited, busy or budget_spent."
        ),
        params=SimulateParams,
        answer=Simulation,
        handler=simulate,
        method="POST",
        path="/v1/simulate",
        tool_requires=("to",),
    ),
    Operation(
        name="prepare_buy",
        title="Prepare a buy",
        description=(
            "Writes the unsigned transactions that buy a token from your own wallet, with exact approvals "
            "and a minimum, after running them and selling straight back in a simulation. You sign and send "
            "them; this service holds no key and sends nothing. "
            "refused true, without steps, means it is a trap or no sell was proven. "
            "amount is in what the venue is paid in (venue.pays); losses and slippage are in hundredths of a "
            "percent. "
            "Fails with bad_input, not_a_token, no_route, would_fail, too_small, rate_limited or upstream."
        ),
        params=PrepareBuyParams,
        answer=PreparedTrade,
        handler=prepare_buy,
        method="POST",
        path="/v1/prepare/buy",
    ),
    Operation(
        name="prepare_sell",
        title="Prepare a sell",
        description=(
            "Writes the unsigned transactions that sell a token from your own wallet, with exact approvals "
            "and a minimum, after running them in a simulation. You sign and send them; this service holds "
            "no key and sends nothing. A sell is written whatever a check says. "
            "Say how much by amount (tokens, or all) or by percent; slippage is in hundredths of a percent. "
            "Fails with bad_input, no_route, nothing_to_sell, would_fail, rate_limited or upstream."
        ),
        params=PrepareSellParams,
        answer=PreparedTrade,
        handler=prepare_sell,
        method="POST",
        path="/v1/prepare/sell",
    ),
    Operation(
        name="health",
        title="Health",
        description="Whether the service keeps up with the chain.",
        params=HealthParams,
        answer=Health,
        handler=health,
        path="/v1/health",
        on_mcp=False,
        counted=False,
    ),
)


def tools() -> tuple[Operation, ...]:
    """The operations that are tools, in the table's order."""
    return tuple(operation for operation in OPERATIONS if operation.on_mcp)
