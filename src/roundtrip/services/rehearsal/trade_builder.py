"""Writes trades: reads a wallet's holdings and allowances, builds the steps, and plans their runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import REVERTED, RpcCall, RpcError, hex_bytes, quantity
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.simulate.legs import VenuePlace, route_to
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.chain.simulate.revert_reason import shortfall_in
from roundtrip.chain.wallet import calls as wallet_calls
from roundtrip.chain.wallet.calls import PLENTY_WEI, Pair, WalletCalls, WatchedAssets
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.figures import format_shortfall
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Environment, Missing
from roundtrip.domain.trade.judge import BalanceChange, RunResult
from roundtrip.domain.trade.text import failure_clause
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.money import ETH_DECIMALS, USDG_DECIMALS, Pays, pays
from roundtrip.venues import BY_KIND, abi, amm_v3, amm_v4, erc20
from roundtrip.venues.base import Call, Contracts, TradeTerms

Side = Literal["buy", "sell"]

DECIMALS: Mapping[Pays, int] = {"eth": ETH_DECIMALS, "usdg": USDG_DECIMALS}


# --- holdings of the wallet ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holdings:
    """A wallet's eth, its balance of the token (of a sell) or of usdg (of a buy), and its allowances: the
    amount, and the second in which it expires."""

    eth_wei: int
    asset_raw: int
    allowed: Mapping[Pair, tuple[int, int]]


_FOREVER_S = 2**48
_READ_GAS = 300_000


def pairs_of(asset: Address, venues: tuple[Venue, ...], contracts: Contracts) -> tuple[Pair, ...]:
    """Every allowance that a trade paid with ``asset`` may need."""
    pairs = [
        Pair(asset, contracts.swap_router02),
        Pair(asset, contracts.permit2),
        Pair(asset, contracts.universal_router, "permit2"),
    ]
    curves = (v.pool for v in venues if v.is_curve and v.pool is not None)
    return (*pairs, *(Pair(asset, curve) for curve in curves))


def holdings_calls(
    wallet: Address, asset: Address, pairs: tuple[Pair, ...], head: ChainHead, contracts: Contracts
) -> list[RpcCall]:
    """The reads of the holdings, all at the pinned block."""
    pinned = {"blockHash": head.block.hash}
    calls = [Call(asset, abi.call(erc20.BALANCE_OF, wallet))]
    calls += [pair.call(wallet, contracts.permit2) for pair in pairs]
    limit = hex(_READ_GAS)
    reads = [
        RpcCall("eth_call", [{"to": call.to, "data": call.data, "gas": limit}, pinned]) for call in calls
    ]
    return [RpcCall("eth_chainId", []), RpcCall("eth_getBalance", [wallet, pinned]), *reads]


def read_holdings(answers: list[msgspec.Raw | RpcError], pairs: tuple[Pair, ...], chain_id: int) -> Holdings:
    """Reads the holdings. A balance or an allowance that the token does not return counts as 0, which at
    worst adds an approval that was not needed. Raises NodeFault when the node is of another chain, or gives
    no balance."""
    chain, eth, balance, *rest = answers
    if quantity(chain) != chain_id:
        raise NodeFault(f"the node does not answer for chain {chain_id}")
    if isinstance(balance, RpcError) and balance.code != REVERTED:
        raise NodeFault(f"it returned no balance ({describe_error(balance)})")
    words = [_words(answer) for answer in rest]
    allowed = {
        pair: (word[0], word[1] if pair.via == "permit2" else _FOREVER_S)
        for pair, word in zip(pairs, words, strict=True)
    }
    return Holdings(quantity(eth), _words(balance)[0], allowed)


def _words(answer: msgspec.Raw | RpcError) -> tuple[int, int]:
    if isinstance(answer, RpcError):
        return 0, 0
    data = hex_bytes(answer)
    return abi.uint_at(data, 0) or 0, abi.uint_at(data, 1) or 0


# --- a trade ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TradeBuilder:
    """A trade of one token by one wallet, with the data of both. ``second_route``: a sell in a v3 pool is
    written through Permit2 and the Universal Router, because the usual router is refused. ``shrinks``: a sell
    of all is of what the wallet still holds at the deadline, which is less than it holds now. ``fund``: it
    runs as if the wallet held plenty of eth, and buys the usdg that it pays with."""

    ctx: Context
    head: ChainHead
    wallet: Address
    side: Side
    buy_round: BuyRoundResult
    holdings: Holdings
    deadline_s: int
    decimals: int
    fund: bool = False
    second_route: bool = False
    shrinks: bool = False

    def environment(self) -> Environment:
        """An environment like the next block, with the wallet as buyer."""
        return replace(self.buy_round.run.environments[0], buyer=self.wallet)

    def token(self) -> Address:
        """The token that is traded."""
        return self.buy_round.run.token

    def paid_in(self, venue: Venue) -> Address:
        """The asset that the wallet gives; the zero address is eth."""
        return self.token() if self.side == "sell" else _money(venue)

    def comes_in(self, venue: Venue) -> Address:
        """The asset that the wallet gets."""
        return self.token() if self.side == "buy" else _money(venue)


def _money(venue: Venue) -> Address:
    return ZERO_ADDRESS if venue.quote == "weth" else venue.quote_address


@dataclass(frozen=True, slots=True)
class WrittenTrade:
    """A trade in steps, the trade itself last. ``does``: the text of each step; ``calls``: its call.
    ``already``: sentences about allowances that exist and need no step. ``clear_first``: an allowance that
    is too small is set to zero before it is raised."""

    place: VenuePlace
    amount_raw: int
    does: tuple[str, ...]
    calls: tuple[Call, ...]
    already: tuple[str, ...]
    clear_first: bool


def write(
    builder: TradeBuilder,
    place: VenuePlace,
    amount_raw: int,
    terms: TradeTerms,
    clear_first: bool = False,
    taxed: bool = False,
) -> WrittenTrade:
    """Writes the steps that spend ``amount_raw``. Approvals are for exactly that; existing ones are left out.
    ``clear_first``: an existing allowance that is too small is set to zero first. ``taxed``: less arrives
    than the pool puts out."""
    venue, contracts = place.venue, builder.ctx.contracts
    plan_sell = place.file.plan_second_sell if builder.second_route else place.file.plan_sell
    plan = place.file.plan_buy if builder.side == "buy" else plan_sell
    *approvals, trade = plan(venue, builder.token(), contracts, amount_raw, builder.wallet, terms=terms)
    does: list[str] = []
    calls: list[Call] = []
    already: list[str] = []
    amount = f"{plain_decimal(amount_raw, _paid_decimals(builder, venue))} {_paid_name(builder, venue)}"
    for approval in approvals:
        pair, name = _pair(builder, venue, approval)
        allowed_raw, until_s = builder.holdings.allowed.get(pair, (0, 0))
        if allowed_raw >= amount_raw and until_s >= builder.deadline_s:
            already.append(f"{name[0].upper()}{name[1:]} may already take {amount}.")
            continue
        if clear_first and allowed_raw > 0 and pair.via == "erc20":
            does.append(f"Set the allowance of {name} to zero: it cannot be raised directly.")
            calls.append(Call(approval.to, abi.call(erc20.APPROVE, pair.spender, 0)))
        does.append(f"Allow {name} to take exactly {amount}.")
        calls.append(approval)
    does.append(_trade_text(builder, venue, amount, terms, taxed))
    return WrittenTrade(place, amount_raw, tuple(does), (*calls, trade), tuple(already), clear_first)


def kind_of(call: Call) -> tuple[Address, str, bool]:
    """The kind of a step: its target, its function, and whether it is an approval of 0."""
    approves = call.data.startswith(erc20.APPROVE)
    return call.to, call.data[:10], approves and abi.uint_at(bytes.fromhex(call.data[10:]), 1) == 0


def _trade_text(builder: TradeBuilder, venue: Venue, amount: str, terms: TradeTerms, taxed: bool) -> str:
    minimum = plain_decimal(terms.min_raw, _received_decimals(builder, venue))
    at = venue.pool or venue.pool_id
    verb = "Spend" if builder.side == "buy" else "Sell"
    name = "tokens" if builder.side == "buy" else pays(venue)
    through = f" through {venue.traits.second_route}" if builder.second_route else ""
    sentence = f"{verb} {amount} on the {venue.traits.label} {at}{through}"
    # The verifier (``roundtrip_verify``) reads the exact minimum out of these words.
    least = f"at least {minimum} ({terms.min_raw} base units) {name}"
    if taxed:
        return f"{sentence}; the pool pays out {least}, and the token takes its tax from them."
    return f"{sentence}, for {least}."


def _paid_name(builder: TradeBuilder, venue: Venue) -> str:
    return "tokens" if builder.side == "sell" else pays(venue) or "of the quote"


def _paid_decimals(builder: TradeBuilder, venue: Venue) -> int:
    return builder.decimals if builder.side == "sell" else DECIMALS[pays(venue) or "eth"]


def _received_decimals(builder: TradeBuilder, venue: Venue) -> int:
    return builder.decimals if builder.side == "buy" else DECIMALS[pays(venue) or "eth"]


def _pair(builder: TradeBuilder, venue: Venue, approval: Call) -> tuple[Pair, str]:
    """The allowance that an approval sets, and the spender's name."""
    contracts, asset = builder.ctx.contracts, builder.paid_in(venue)
    if approval.to == contracts.permit2:
        return Pair(asset, contracts.universal_router, "permit2"), "the Universal Router (through Permit2)"
    spender = abi.address_at(bytes.fromhex(approval.data[10:]), 0)
    if spender == contracts.permit2:
        return Pair(asset, spender), "Permit2"
    spender, name = BY_KIND[venue.kind].spender(venue, contracts)
    return Pair(asset, spender), name


# --- running it ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RehearsedTrade:
    """A written trade that succeeded in simulation. ``spent_raw``: what left the wallet; ``came_raw``: what
    arrived; ``put_out_raw``: what the pool paid out, before the token's own tax; ``moved``: the change of the
    wallet's balance of the token."""

    written: WrittenTrade
    ran: RunResult
    spent_raw: int
    came_raw: int
    put_out_raw: int
    moved: BalanceChange
    left_raw: int = 0
    """The part of the allowance that the trade did not use."""

    def taken_raw(self, side: Side) -> int:
        """How much of the requested amount the venue takes; what the token itself adds or takes does not
        count."""
        amount_raw = self.written.amount_raw
        return min(self.spent_raw, amount_raw) if side == "buy" else amount_raw - self.left_raw


class NotEnough(CallerFault):
    """would_fail: the wallet holds less than the trade needs."""

    def __init__(self, message: str) -> None:
        super().__init__("would_fail", message)


class BelowMinimum(CallerFault):
    """would_fail: the trade brings less than its own minimum. ``put_out_raw``: what it would bring, as its
    router or curve measures it; None: not stated."""

    def __init__(self, put_out_raw: int | None) -> None:
        super().__init__("would_fail", "The trade brings less than its own minimum.")
        self.put_out_raw = put_out_raw


def wallet_calls_of(
    builder: TradeBuilder,
    written: WrittenTrade,
    gas_limits: tuple[int, ...] | None = None,
    ran: RunResult | None = None,
) -> WalletCalls:
    """The calls as the wallet would send them, with its own eth, once ``gas_limits`` and ``ran`` are known;
    before that with the maximum gas and plenty of eth. With ``fund`` always with plenty of eth."""
    policy, env = builder.ctx.policy, builder.environment()
    max_gas = policy.hook_gas_limit if written.place.venue.rival_hook() else policy.buy_gas_limit
    limits = gas_limits or (max_gas,) * len(written.calls)
    planned = WalletCalls(builder.wallet, written.calls, limits, None, _funding(builder, written))
    if ran is None or builder.fund:
        return planned.with_plenty()
    return planned.as_sent(ran, builder.holdings.eth_wei, env, policy)


def _funding(builder: TradeBuilder, written: WrittenTrade) -> tuple[Call, ...]:
    """A funded wallet buys the usdg it pays with."""
    venue = written.place.venue
    if not builder.fund or builder.side == "sell" or pays(venue) != "usdg":
        return ()
    route = route_to("usdg", builder.buy_round.run.setting)
    return (
        (amm_v3.plan_eth_to(builder.ctx.contracts, route, written.amount_raw, PLENTY_WEI),) if route else ()
    )


def watched_of(builder: TradeBuilder, venue: Venue) -> WatchedAssets:
    """The balances and allowances that are read around a trade: of the token and of the quote where it is a
    token; for a sell through the usual router, its allowance."""
    money = _money(venue)
    tokens = (builder.token(),) if money == ZERO_ADDRESS else (builder.token(), money)
    by_router = _sells_by_router(builder, venue)
    pairs = (Pair(builder.token(), builder.ctx.contracts.swap_router02),) if by_router else ()
    return WatchedAssets(tokens, pairs)


def _sells_by_router(builder: TradeBuilder, venue: Venue) -> bool:
    """True for a sell through SwapRouter02, which answers with what the swap put out."""
    return builder.side == "sell" and venue.traits.by_router and not builder.second_route


def rehearsal_plans(builder: TradeBuilder, written: WrittenTrade) -> tuple[Plan, Plan]:
    """Two plans: the reads before the trade, and its steps, with a read of the pool's output just before
    them."""
    venue = written.place.venue
    put_out = None
    if builder.side == "buy":
        put_out = written.place.file.plan_output(
            venue, builder.token(), builder.ctx.contracts, written.amount_raw
        )
    own_calls = wallet_calls_of(builder, written)
    questions = () if put_out is None else (put_out,)
    return before_plan(builder, written, own_calls), run_plan(builder, written, own_calls, questions)


def before_plan(builder: TradeBuilder, written: WrittenTrade, own_calls: WalletCalls) -> Plan:
    """The plan of the reads before the steps."""
    watched, sweeps = watched_of(builder, written.place.venue), _sweep_calls(builder, written.place)
    return wallet_calls.before_plan(
        own_calls, watched, builder.buy_round.run.setting, builder.environment(), sweeps
    )


def run_plan(
    builder: TradeBuilder, written: WrittenTrade, own_calls: WalletCalls, questions: tuple[Call, ...] = ()
) -> Plan:
    """The plan that runs the steps once."""
    watched, sweeps = watched_of(builder, written.place.venue), _sweep_calls(builder, written.place)
    return wallet_calls.run_plan(
        own_calls, watched, builder.buy_round.run.setting, builder.environment(), questions, sweeps
    )


def _sweep_calls(builder: TradeBuilder, place: VenuePlace) -> tuple[Call, ...]:
    """Sweeps tokens that others left in the routers, because any transaction may take them."""
    # The Universal Router is the one that v4's plans sweep.
    file = amm_v4 if builder.second_route else place.file
    sweep = file.plan_sweep(builder.ctx.contracts, builder.environment().reader)
    return () if sweep is None or sweep.to == builder.wallet else (sweep,)


_NOT_FUNDED = "The simulation could not give this wallet the usdg to pay with: leave fund out."


def read_rehearsal(
    builder: TradeBuilder, written: WrittenTrade, own_calls: WalletCalls, results: Results | Missing
) -> RehearsedTrade | CallerFault | Missing:
    """The result of the rehearsal; a CallerFault (would_fail) says why it failed."""
    venue, setting = written.place.venue, builder.buy_round.run.setting
    watched = watched_of(builder, venue)
    if not isinstance(results, Missing) and wallet_calls.funding_failed(results):
        # The swap that funds it pays eth back, which a contract may refuse.
        return CallerFault("would_fail", _NOT_FUNDED)
    ran = wallet_calls.read_run(
        results, own_calls, watched, setting, builder.environment(), builder.head.block
    )
    if isinstance(ran, Missing) or isinstance(results, Missing):
        return ran if isinstance(ran, Missing) else Missing("node", "no results")
    if ran.has_reverted():
        shortfall = shortfall_in(results[f"call-{len(written.calls) - 1}"].data)
        if shortfall is not None and all(call.ok for call in ran.calls[:-1]):
            return BelowMinimum(shortfall.brought_raw)
        return _trade_fault(builder, written, ran)
    spent, received = _change_raw(ran, builder.paid_in(venue)), _change_raw(ran, builder.comes_in(venue))
    answer = results.get("ask-0")
    output_raw = abi.uint_at(answer.data, 0) if answer is not None and answer.ok else None
    if output_raw == 0 and received <= 0:
        return CallerFault("too_small", BUYS_NOTHING)
    if spent >= 0 or received <= 0:
        return CallerFault("would_fail", "The trade would go through but bring nothing.")
    if answer is not None and not output_raw:
        why = "Its pool does not say how much it pays out, so no minimum would protect you."
        return CallerFault("would_fail", why)
    token = next(change for change in ran.moved if change.asset == builder.token())
    # Without an approval in this trade, the allowance that is left is of an earlier one.
    left_raw = _allowance_left(results, watched) if len(written.calls) > 1 else 0
    if _sells_by_router(builder, venue):
        # A token may pay the seller beside the swap; the router's minimum does not count that.
        swapped_raw = amm_v3.read_output(results[f"call-{len(written.calls) - 1}"].data)
        received = min(received, swapped_raw or received)
    # At least 1 counts as taken.
    return RehearsedTrade(
        written, ran, -spent, received, output_raw or received, token, min(left_raw, written.amount_raw - 1)
    )


def _allowance_left(results: Results, watched: WatchedAssets) -> int:
    result = results["after-pair-0"] if watched.pairs else None
    return (abi.uint_at(result.data, 0) or 0) if result is not None and result.ok else 0


def _change_raw(ran: RunResult, asset: Address) -> int:
    return next((change.raw for change in ran.moved if change.asset == asset), 0)


BUYS_NOTHING = "This amount buys less than the token's smallest unit: buy more."


def _trade_fault(builder: TradeBuilder, written: WrittenTrade, ran: RunResult) -> CallerFault:
    """too_small where a curve refuses a buy of 0 tokens, else would_fail."""
    reason = next(call.reason for call in ran.calls if not call.ok)
    on_curve = written.place.venue.is_curve
    if builder.side == "buy" and on_curve and reason == "ZeroAmount":
        return CallerFault("too_small", BUYS_NOTHING)
    return _would_fail(builder, written, ran)


def _would_fail(builder: TradeBuilder, written: WrittenTrade, ran: RunResult) -> CallerFault:
    number = next(n for n, call in enumerate(ran.calls) if not call.ok)
    holds = builder.holdings.asset_raw
    if (
        builder.paid_in(written.place.venue) != ZERO_ADDRESS
        and holds < written.amount_raw
        and not builder.fund
    ):
        decimals = _paid_decimals(builder, written.place.venue)
        name = _paid_name(builder, written.place.venue)
        has, needs = format_shortfall(holds, written.amount_raw, decimals)
        return NotEnough(f"The wallet holds {has} {name}, and this trade needs {needs}.")
    subject = "The trade" if number == len(ran.calls) - 1 else "An approval"
    return CallerFault("would_fail", f"{subject} would fail{failure_clause(ran.calls[number].reason)}.")
