"""Where trades are written: what a wallet holds and has allowed, the steps, and how they are run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import REVERTED, RpcCall, RpcError, hex_bytes, quantity
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.chain.simulate.legs import VenuePlace, route_to
from roundtrip.chain.simulate.request import Plan, Results
from roundtrip.chain.wallet import calls as wallet_calls
from roundtrip.chain.wallet.calls import PLENTY_WEI, Pair, WalletCalls, WatchedAssets
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, plain_decimal
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.check.evidence import Environment, Missing
from roundtrip.domain.trade.judge import BalanceChange, RunResult
from roundtrip.services.check.buy_round import BuyRoundResult
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.money import ETH_DECIMALS, USDG_DECIMALS
from roundtrip.venues import BY_KIND, abi, amm_v3, erc20
from roundtrip.venues.base import Call, Contracts, TradeTerms

Side = Literal["buy", "sell"]
Pays = Literal["eth", "usdg"]

DECIMALS: Mapping[Pays, int] = {"eth": ETH_DECIMALS, "usdg": USDG_DECIMALS}


def pays(venue: Venue) -> Pays | None:
    """What a wallet pays into, and is paid by, a venue: pools of weth are paid in eth, which the routers
    wrap. None: money that trades are not written in."""
    names: dict[str, Pays] = {"eth": "eth", "weth": "eth", "usdg": "usdg"}
    return names.get(venue.quote)


# --- what the wallet has ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Holdings:
    """What a wallet holds of eth and of what it pays with, and what it has allowed: how much, until when."""

    eth_wei: int
    asset_raw: int
    allowed: Mapping[Pair, tuple[int, int]]


_FOR_EVER_S = 2**48
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
    """Asks for them, all at the pinned block."""
    pinned = {"blockHash": head.block.hash}
    calls = [Call(asset, abi.call(erc20.BALANCE_OF, wallet))]
    calls += [pair.call(wallet, contracts.permit2) for pair in pairs]
    limit = hex(_READ_GAS)
    reads = [
        RpcCall("eth_call", [{"to": call.to, "data": call.data, "gas": limit}, pinned]) for call in calls
    ]
    return [RpcCall("eth_chainId", []), RpcCall("eth_getBalance", [wallet, pinned]), *reads]


def read_holdings(answers: list[msgspec.Raw | RpcError], pairs: tuple[Pair, ...], chain_id: int) -> Holdings:
    """From the answers. A token that tells no balance or allowance has none: then an approval is written
    too many. Raises NodeFault when the node is of another chain, or tells no balance itself."""
    chain, eth, held, *rest = answers
    if quantity(chain) != chain_id:
        raise NodeFault(f"it does not answer for chain {chain_id}")
    if isinstance(held, RpcError) and held.code != REVERTED:
        raise NodeFault(f"it told no balance ({describe_error(held)})")
    words = [_words(answer) for answer in rest]
    allowed = {
        pair: (word[0], word[1] if pair.via == "permit2" else _FOR_EVER_S)
        for pair, word in zip(pairs, words, strict=True)
    }
    return Holdings(quantity(eth), _words(held)[0], allowed)


def _words(answer: msgspec.Raw | RpcError) -> tuple[int, int]:
    if isinstance(answer, RpcError):
        return 0, 0
    data = hex_bytes(answer)
    return abi.uint_at(data, 0) or 0, abi.uint_at(data, 1) or 0


# --- a trade ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TradeBuilder:
    """One wallet that wants to trade one token, and what is known of both."""

    ctx: Context
    head: ChainHead
    wallet: Address
    side: Side
    opened: BuyRoundResult
    holdings: Holdings
    deadline_s: int
    decimals: int
    fund: bool = False

    def environment(self) -> Environment:
        """A block like the next one."""
        return replace(self.opened.run.environments[0], buyer=self.wallet)

    def token(self) -> Address:
        """What is traded."""
        return self.opened.run.token

    def paid_in(self, venue: Venue) -> Address:
        """What the wallet gives; the zero address is eth."""
        return self.token() if self.side == "sell" else _money(venue)

    def comes_in(self, venue: Venue) -> Address:
        """What the wallet gets."""
        return self.token() if self.side == "buy" else _money(venue)


def _money(venue: Venue) -> Address:
    return ZERO_ADDRESS if venue.quote == "weth" else venue.quote_address


@dataclass(frozen=True, slots=True)
class WrittenTrade:
    """A trade in steps: what each does and the call, the trade itself last; what was allowed already."""

    place: VenuePlace
    amount_raw: int
    does: tuple[str, ...]
    calls: tuple[Call, ...]
    already: tuple[str, ...]
    clear_first: bool


def write(
    desk: TradeBuilder,
    place: VenuePlace,
    amount_raw: int,
    terms: TradeTerms,
    clear_first: bool = False,
    taxed: bool = False,
) -> WrittenTrade:
    """The steps that spend ``amount_raw``. Approvals are for exactly that; those that the wallet gave already
    are left out. ``clear_first``: an allowance that is there and too small is set to zero before. ``taxed``:
    less arrives than the pool puts out."""
    venue, contracts = place.venue, desk.ctx.contracts
    plan = place.file.plan_buy if desk.side == "buy" else place.file.plan_sell
    *approvals, trade = plan(venue, desk.token(), contracts, amount_raw, desk.wallet, terms=terms)
    does: list[str] = []
    calls: list[Call] = []
    already: list[str] = []
    amount = f"{plain_decimal(amount_raw, _paid_decimals(desk, venue))} {_paid_name(desk, venue)}"
    for approval in approvals:
        pair, name = _pair(desk, venue, approval)
        allowed_raw, until_s = desk.holdings.allowed.get(pair, (0, 0))
        if allowed_raw >= amount_raw and until_s >= desk.deadline_s:
            already.append(f"{name} may already take {amount}.")
            continue
        if clear_first and allowed_raw > 0 and pair.via == "erc20":
            does.append(f"Take back what {name} may take now: it cannot be raised.")
            calls.append(Call(approval.to, abi.call(erc20.APPROVE, pair.spender, 0)))
        does.append(f"Let {name} take exactly {amount}, and no more.")
        calls.append(approval)
    does.append(_trade_text(desk, venue, amount, terms, taxed))
    return WrittenTrade(place, amount_raw, tuple(does), (*calls, trade), tuple(already), clear_first)


def kind_of(call: Call) -> tuple[Address, str, bool]:
    """What a step is: whom it calls, which function, and whether it is an approval of nothing."""
    approves = call.data.startswith(erc20.APPROVE)
    return call.to, call.data[:10], approves and abi.uint_at(bytes.fromhex(call.data[10:]), 1) == 0


def _trade_text(desk: TradeBuilder, venue: Venue, amount: str, terms: TradeTerms, taxed: bool) -> str:
    minimum = plain_decimal(terms.min_raw, _came_decimals(desk, venue))
    at = venue.pool or venue.pool_id
    verb = "Buy with" if desk.side == "buy" else "Sell"
    name = "tokens" if desk.side == "buy" else pays(venue)
    sentence = f"{verb} {amount} on the {venue.traits.label} {at}"
    if taxed:
        return (
            f"{sentence}; the pool puts out at least {minimum} ({terms.min_raw} base units) {name}, "
            "of which the "
            "token takes its tax."
        )
    return f"{sentence}, for at least {minimum} ({terms.min_raw} base units) {name}."


def _paid_name(desk: TradeBuilder, venue: Venue) -> str:
    return "tokens" if desk.side == "sell" else pays(venue) or "of the quote"


def _paid_decimals(desk: TradeBuilder, venue: Venue) -> int:
    return desk.decimals if desk.side == "sell" else DECIMALS[pays(venue) or "eth"]


def _came_decimals(desk: TradeBuilder, venue: Venue) -> int:
    return desk.decimals if desk.side == "buy" else DECIMALS[pays(venue) or "eth"]


def _pair(desk: TradeBuilder, venue: Venue, approval: Call) -> tuple[Pair, str]:
    """Which allowance an approval sets, and the spender's name."""
    contracts, asset = desk.ctx.contracts, desk.paid_in(venue)
    if approval.to == contracts.permit2:
        return Pair(asset, contracts.universal_router, "permit2"), "the Universal Router, by Permit2,"
    spender, name = BY_KIND[venue.kind].spender(venue, contracts)
    return Pair(asset, spender), name


# --- running it ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RehearsedTrade:
    """A written trade that went through. ``put_out_raw`` is what the pool gave before the token's own tax."""

    written: WrittenTrade
    ran: RunResult
    spent_raw: int
    came_raw: int
    put_out_raw: int
    moved: BalanceChange
    left_raw: int = 0
    """What the trade did not take of what its own approval allows."""

    def taken_raw(self, side: Side) -> int:
        """What the venue takes of what was to be spent. What a token moves beyond or below what it was asked
        to is its own doing."""
        amount_raw = self.written.amount_raw
        return min(self.spent_raw, amount_raw) if side == "buy" else amount_raw - self.left_raw


def wallet_calls_of(
    desk: TradeBuilder,
    written: WrittenTrade,
    gas_limits: tuple[int, ...] | None = None,
    ran: RunResult | None = None,
) -> WalletCalls:
    """As the wallet would send them, with what it has, where their gas is known and what they came to; until
    then each may take all there is, and the wallet is rich."""
    policy, env = desk.ctx.policy, desk.environment()
    most = policy.hook_gas_limit if written.place.venue.rival_hook() else policy.buy_gas_limit
    limits = gas_limits or (most,) * len(written.calls)
    wallet_calls = WalletCalls(desk.wallet, written.calls, limits, None, _funding(desk, written))
    if ran is None or desk.fund:
        return wallet_calls.with_plenty()
    return wallet_calls.as_sent(ran, desk.holdings.eth_wei, env, policy)


def _funding(desk: TradeBuilder, written: WrittenTrade) -> tuple[Call, ...]:
    """A funded wallet buys the usdg it pays with."""
    venue = written.place.venue
    if not desk.fund or desk.side == "sell" or pays(venue) != "usdg":
        return ()
    route = route_to("usdg", desk.opened.run.setting)
    return (amm_v3.plan_eth_to(desk.ctx.contracts, route, written.amount_raw, PLENTY_WEI),) if route else ()


def watched_of(desk: TradeBuilder, venue: Venue) -> WatchedAssets:
    """The token, and the money where that is one; and what a swap router may take of what is sold."""
    money = _money(venue)
    tokens = (desk.token(),) if money == ZERO_ADDRESS else (desk.token(), money)
    by_router = desk.side == "sell" and venue.traits.by_router
    pairs = (Pair(desk.token(), desk.ctx.contracts.swap_router02),) if by_router else ()
    return WatchedAssets(tokens, pairs)


def rehearsal_plans(desk: TradeBuilder, written: WrittenTrade) -> tuple[Plan, Plan]:
    """What is there before; and the steps once, with what the pool puts out asked just before."""
    venue = written.place.venue
    put_out = None
    if desk.side == "buy":
        put_out = written.place.file.plan_output(venue, desk.token(), desk.ctx.contracts, written.amount_raw)
    own_calls = wallet_calls_of(desk, written)
    questions = () if put_out is None else (put_out,)
    return before_plan(desk, written, own_calls), run_plan(desk, written, own_calls, questions)


def before_plan(desk: TradeBuilder, written: WrittenTrade, own_calls: WalletCalls) -> Plan:
    """What is there before the steps."""
    look, swept = watched_of(desk, written.place.venue), _swept(desk, written.place)
    return wallet_calls.before_plan(own_calls, look, desk.opened.run.setting, desk.environment(), swept)


def run_plan(
    desk: TradeBuilder, written: WrittenTrade, own_calls: WalletCalls, questions: tuple[Call, ...] = ()
) -> Plan:
    """The steps once."""
    look, swept = watched_of(desk, written.place.venue), _swept(desk, written.place)
    return wallet_calls.run_plan(
        own_calls, look, desk.opened.run.setting, desk.environment(), questions, swept
    )


def _swept(desk: TradeBuilder, place: VenuePlace) -> tuple[Call, ...]:
    """What strangers left in the routers is taken out of the way: it is there for whoever comes first."""
    sweep = place.file.plan_sweep(desk.ctx.contracts, desk.environment().reader)
    return () if sweep is None or sweep.to == desk.wallet else (sweep,)


def read_rehearsal(
    desk: TradeBuilder, written: WrittenTrade, own_calls: WalletCalls, results: Results | Missing
) -> RehearsedTrade | CallerFault | Missing:
    """What it came to; a CallerFault (would_fail) says why it did not go through."""
    venue, setting = written.place.venue, desk.opened.run.setting
    look = watched_of(desk, venue)
    ran = wallet_calls.read_run(results, own_calls, look, setting, desk.environment(), desk.head.block)
    if isinstance(ran, Missing) or isinstance(results, Missing):
        return ran if isinstance(ran, Missing) else Missing("node", "no results")
    if ran.has_reverted():
        return _trade_fault(desk, written, ran)
    spent, received = _change(ran, desk.paid_in(venue)), _change(ran, desk.comes_in(venue))
    answer = results.get("ask-0")
    told_raw = abi.uint_at(answer.data, 0) if answer is not None and answer.ok else None
    if told_raw == 0 and received <= 0:
        return CallerFault("too_small", _TOO_LITTLE)
    if spent >= 0 or received <= 0:
        return CallerFault("would_fail", "The trade would go through and bring nothing.")
    if answer is not None and not told_raw:
        return CallerFault("would_fail", "Its pool does not tell what it puts out: no minimum would protect.")
    token = next(change for change in ran.moved if change.asset == desk.token())
    left_raw = _allowance_left(results, look) if len(written.calls) > 1 else 0
    return RehearsedTrade(
        written, ran, -spent, received, told_raw or received, token, min(left_raw, written.amount_raw - 1)
    )


def _allowance_left(results: Results, look: WatchedAssets) -> int:
    result = results["after-pair-0"] if look.pairs else None
    return (abi.uint_at(result.data, 0) or 0) if result is not None and result.ok else 0


def _change(ran: RunResult, asset: Address) -> int:
    return next((change.raw for change in ran.moved if change.asset == asset), 0)


_TOO_LITTLE = "That little buys less than the token's least unit."


def _trade_fault(desk: TradeBuilder, written: WrittenTrade, ran: RunResult) -> CallerFault:
    """A curve refuses to sell nothing; anything else is a trade that would fail."""
    reason = next(call.reason for call in ran.calls if not call.ok)
    on_curve = written.place.venue.is_curve
    if desk.side == "buy" and on_curve and reason == "ZeroAmount":
        return CallerFault("too_small", _TOO_LITTLE)
    return CallerFault("would_fail", _why(desk, written, ran))


def _why(desk: TradeBuilder, written: WrittenTrade, ran: RunResult) -> str:
    number = next(n for n, call in enumerate(ran.calls) if not call.ok)
    reason = names.reason(ran.calls[number].reason or "")
    holds = desk.holdings.asset_raw
    if desk.paid_in(written.place.venue) != ZERO_ADDRESS and holds < written.amount_raw and not desk.fund:
        decimals = _paid_decimals(desk, written.place.venue)
        name = _paid_name(desk, written.place.venue)
        has, needs = plain_decimal(holds, decimals), plain_decimal(written.amount_raw, decimals)
        return f"The wallet holds {has} {name}, and this needs {needs}."
    subject = "The trade" if number == len(ran.calls) - 1 else "An approval"
    return f'{subject} would fail ("{reason}").' if reason else f"{subject} would fail; no reason was given."
