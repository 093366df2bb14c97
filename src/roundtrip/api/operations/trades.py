"""Operations: simulating and preparing transactions before they are signed."""

from roundtrip.services.trade.prepare import (
    PrepareBuyParams,
    PreparedTrade,
    PrepareSellParams,
    prepare_buy,
    prepare_sell,
)
from roundtrip.services.trade.simulate import SimulateParams, Simulation, simulate

from .operation import AnyOperation, Operation

TRADES: tuple[AnyOperation, ...] = (
    Operation(
        name="simulate_transaction",
        title="Simulate a transaction",
        description=(
            "Runs one transaction, or up to six calls in order, from a wallet on the latest block, and "
            "tells what it spends, receives and allows, read from balances and allowances; what it buys "
            "is sold straight back. Nothing is sent on the chain. Level unknown is not a pass: treat it "
            "as a no. value is in wei, losses are in hundredths of a percent; gas is told per call and is "
            "no part of what is spent."
        ),
        params=SimulateParams,
        answer=Simulation,
        handler=lambda call: simulate(call.ctx, call.params),
        lane="calls",
        takes_min_block=True,
        method="POST",
        path="/v1/simulate",
        tool_requires=("to",),
        errors=("budget_spent",),
        needs_one_of=("to", "calls"),
    ),
    Operation(
        name="prepare_buy",
        title="Prepare a buy",
        description=(
            "Writes the unsigned transactions that buy a token from your own wallet, with exact approvals "
            "and a minimum, after running them and selling straight back in a simulation. You sign and "
            "send them; this service holds no key and sends nothing. refused true, without steps, means "
            "it is a trap or no sell was proven. amount is in what the venue is paid in (venue.pays); "
            "losses and slippage are in hundredths of a percent."
        ),
        params=PrepareBuyParams,
        answer=PreparedTrade,
        handler=lambda call: prepare_buy(call.ctx, call.params),
        lane="checks",
        takes_min_block=True,
        method="POST",
        path="/v1/prepare/buy",
        errors=("not_a_token", "no_route", "would_fail", "too_small", "upstream", "budget_spent"),
    ),
    Operation(
        name="prepare_sell",
        title="Prepare a sell",
        description=(
            "Writes the unsigned transactions that sell a token from your own wallet, with exact "
            "approvals and a minimum, after running them in a simulation. You sign and send them; this "
            "service holds no key and sends nothing. A sell is written whatever a check says. Say how "
            "much by amount (tokens, or all) or by percent; slippage is in hundredths of a percent."
        ),
        params=PrepareSellParams,
        answer=PreparedTrade,
        handler=lambda call: prepare_sell(call.ctx, call.params),
        lane="checks",
        takes_min_block=True,
        method="POST",
        path="/v1/prepare/sell",
        errors=("no_route", "nothing_to_sell", "would_fail", "upstream", "budget_spent"),
        needs_one_of=("amount", "percent"),
    ),
)
