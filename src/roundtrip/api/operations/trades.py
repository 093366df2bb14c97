"""Operations: simulating and preparing transactions before they are signed."""

from roundtrip.services.trade.prepare import (
    PrepareBuyParams,
    PreparedTrade,
    PrepareSellParams,
    prepare_buy,
    prepare_sell,
)
from roundtrip.services.trade.simulate import SimulateParams, simulate
from roundtrip.services.trade.simulation_answer import Simulation
from roundtrip.services.trade.wallet_transaction import read_wallet_transaction

from .operation import AnyOperation, Operation

TRADES: tuple[AnyOperation, ...] = (
    Operation(
        name="simulate_transaction",
        title="Simulate a transaction",
        description=(
            "Runs one transaction, or up to six calls in order, from a wallet on the latest block: what it "
            "spends, receives and approves, read from balances and allowances. A token it buys is sold "
            "straight back in the same simulation. Nothing is sent on the chain, and gas is not part of "
            "spent. Level unknown is not a pass: treat it as a no."
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
        rewrite=read_wallet_transaction,
    ),
    Operation(
        name="prepare_buy",
        title="Prepare a buy",
        description=(
            "Writes the unsigned transactions that buy a token from your wallet, with exact approvals and "
            "a minimum, after simulating them with a sell straight back. You sign and send them; the "
            "service holds no keys and sends nothing. refused true (no steps) means that the token is a "
            "trap or no sell was proven."
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
            "Writes the unsigned transactions that sell a token from your wallet, with exact approvals and "
            "a minimum, after simulating them. You sign and send them; the service holds no keys and sends "
            "nothing. A sell is written whatever a check says. Give amount or percent."
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
