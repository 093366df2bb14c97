"""The legs of every simulated trade: reads, approvals, sells, and other wallets' buys in between. Pure.

Results come from balances, read by a separate wallet that neither trades nor is funded by the trader. The
quote side is read in wei for venues paid in eth, else in the quote's units.
"""

from dataclasses import dataclass, replace
from itertools import count, pairwise

from msgspec import structs

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, WEI_PER_ETH, Address
from roundtrip.domain.base.venue import Quote, Venue
from roundtrip.domain.check.evidence import (
    OVER_A_DAY,
    CompletedBuy,
    Environment,
    MarketRates,
    Missing,
    Probe,
    QuoteHop,
    Size,
)
from roundtrip.domain.check.price import quote_raw, rate_of, size_wei
from roundtrip.venues import abi, amm_v3, erc20
from roundtrip.venues.base import Call, Contracts, VenueFile

from .balance_slots import BalanceSlot
from .request import PlannedBlock, SimulatedStep

GET_ETH_BALANCE = "0x4d2301cc"
"""Multicall3.getEthBalance(address)."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Inputs shared by all probes of one token."""

    token: Address
    contracts: Contracts
    market: MarketRates
    policy: Policy
    slots: tuple[BalanceSlot, ...] = ()
    """Storage slots of money balances that are overridden, because no swap brings that money."""
    crowd_gaps_s: tuple[int, ...] = ()
    """Seconds before each block of the crowd's buys, of which the last has second buys only; empty: no crowd
    trades."""


@dataclass(frozen=True, slots=True)
class VenuePlace:
    """A venue with the module of its kind."""

    venue: Venue
    file: VenueFile

    def pays_eth(self) -> bool:
        """True when the wallet pays and is paid in eth itself."""
        return self.venue.quote in ("eth", "weth")


def size_raw(size: Size, place: VenuePlace, setting: Setting, environment: Environment) -> int | Missing:
    """A size as this environment trades it, in units of the venue's quote; Missing when the quote's price in
    eth is not known."""
    if isinstance(setting.market.usdg_per_eth_raw, Missing) and place.venue.quote == "usdg":
        return setting.market.usdg_per_eth_raw
    wei = size_wei(size, setting.policy) * environment.size_bps // BPS
    raw = quote_raw(wei, place.venue.quote, setting.market)
    return Missing("node", "the price of eth in the money side is not known") if raw is None else raw


def cast(environment: Environment, part: str) -> Environment:
    """The environment with new wallets for the trade named ``part``: to pass, a token that selects its
    victims by address would have to accept the wallets of every trade."""

    def wallet(address: Address) -> Address:
        return Address("0x" + abi.keccak(bytes.fromhex(address[2:]) + part.encode())[12:].hex())

    return replace(environment, buyer=wallet(environment.buyer), receiver=wallet(environment.receiver))


def late_s(environment: Environment, delay_s: int) -> int:
    """How much later than the nominal delay this environment sells: ``environment.late_s`` for every four
    minutes of the delay, at least once."""
    return environment.late_s * max(1, delay_s // 240)


def planned_sell_raw(probe: Probe, bought_raw: int) -> int:
    """The amount that the probe asks to sell; never zero."""
    return max(1, bought_raw * probe.share_bps // BPS)


def sellable(bought: CompletedBuy, probe: Probe, policy: Policy) -> int:
    """The buyer's balance when this probe sells: as read in the buy round, else the bought amount."""
    delays_s = (policy.later_s, policy.hour_s, policy.day_s)
    if probe.seller == "receiver" or len(bought.held_later_raw) != len(delays_s):
        return bought.received_raw
    return bought.held_later_raw[delays_s.index(probe.delay_s)]


def plannable(bought: CompletedBuy, probe: Probe, policy: Policy) -> int:
    """The amount that the probe's sells may ask for. Sells all through the day ask for the day's smallest
    balance: of tokens that rebase a wallet has less or more at other times."""
    if probe.seller not in OVER_A_DAY:
        return sellable(bought, probe, policy)
    return min(bought.received_raw, *bought.held_later_raw, sellable(bought, probe, policy))


def held_over_day(bought: CompletedBuy, policy: Policy) -> tuple[tuple[int, ...], ...]:
    """What the buyer holds at each moment of ``piece_moments_s`` of a token that rebases, by one rate between
    two balances that were read, and a ten-thousandth less; and the least of that an hour before and after,
    since many rebase by the hour. Empty: the balance stays."""
    delays_s = (policy.later_s, policy.hour_s, policy.day_s)
    if len(bought.held_later_raw) != len(delays_s) or {*bought.held_later_raw} == {bought.received_raw}:
        return ()

    def held_at(at_s: int) -> int:
        n = 0 if at_s < policy.hour_s else 1
        (from_s, until_s), (from_raw, until_raw) = delays_s[n : n + 2], bought.held_later_raw[n : n + 2]
        rate = max(1, until_raw) / max(1, from_raw)
        return int(from_raw * rate ** ((at_s - from_s) / (until_s - from_s))) * (BPS - 1) // BPS

    return tuple(
        (held_at(at_s), min(held_at(at_s - policy.hour_s), held_at(at_s + policy.hour_s)))
        for at_s in piece_moments_s(policy, policy.pieces)
    )


def gas_float(policy: Policy, environment: Environment) -> int:
    """Enough wei to pay for every attempt of the most expensive sell at the maximum fee."""
    return max(environment.gas_float_wei, 2 * sum(policy.sell_gas_ladder) * environment.max_fee_wei)


def start_wei(setting: Setting, environment: Environment, size: Size) -> int:
    """The wallet's wei before it buys: the size plus gas money."""
    return size_wei(size, setting.policy) + gas_float(setting.policy, environment)


def slot_of(venue: Venue, setting: Setting) -> BalanceSlot | None:
    """The storage slot where the wallet is given the venue's quote; None: the wallet buys the quote."""
    return next((slot for slot in setting.slots if slot.asset == venue.quote_address), None)


def route_to(quote: Quote, setting: Setting) -> tuple[QuoteHop, ...]:
    """The v3 pools from weth to a quote; empty where no route is known."""
    if quote == "usdg":
        fee = setting.market.pool_fee_pips
        return () if fee is None else (QuoteHop(setting.contracts.usdg, fee),)
    rate = rate_of(quote, setting.market)
    return () if rate is None else rate.route


def exit_blocks(
    out: VenuePlace,
    setting: Setting,
    environment: Environment,
    probe: Probe,
    held_raw: int,
    bought_on: VenuePlace,
    clear_first: bool = False,
    held_over_day_raw: tuple[tuple[int, ...], ...] = (),
) -> tuple[PlannedBlock, ...]:
    """The blocks after a buy: the buyer or another wallet sells the probe's share of ``held_raw`` on ``out``.
    The approval has its own block, as in a real wallet; with ``clear_first`` an approval of zero comes before
    it. Other wallets buy on ``bought_on``. ``held_over_day_raw``: what a sale at any hour asks for first, at
    each of its moments.

    No token balance is read before the sell: the read is a transaction, and a token may react to its sender.
    """
    planned_raw = planned_sell_raw(probe, held_raw)
    if probe.seller == "receiver":
        return _transfer_and_sell_blocks(out, setting, environment, probe, (held_raw, planned_raw))
    buyer = environment.buyer
    limits = _sell_limits(out, setting, environment, probe)
    approvals, sells = sell_steps(
        out, setting, environment, buyer, planned_raw, limits, probe.seller == "second route"
    )
    if clear_first:
        clearing, *_ = out.file.plan_sell(out.venue, setting.token, setting.contracts, 1, buyer, 0)
        approvals.insert(0, SimulatedStep("clear", buyer, clearing, environment.approve_gas_limit))
    if probe.seller in OVER_A_DAY:
        if probe.seller == "any hour":
            sales = _sales_at_any_hour(out, setting, environment, planned_raw, held_over_day_raw)
        else:
            sales = _sales_in_pieces(out, setting, environment, probe, planned_raw)
        return _blocks_over_day(setting, environment, sales, approvals)
    funds: tuple[tuple[Address, int], ...] = ()
    if probe.seller == "nearly all":
        sells = _nearly_all_steps(out, setting, environment, probe, planned_raw)
        funds = ((environment.receiver, start_wei(setting, environment, probe.size)),)
    held = quote_read("held", out, setting, environment, buyer)
    after = token_read("after-token", setting, environment, buyer)
    early_s = probe.delay_s + late_s(environment, probe.delay_s) - environment.approved_s
    return (
        _add_other_buys(bought_on, setting, environment, probe.size, PlannedBlock(early_s, tuple(approvals))),
        PlannedBlock(environment.approved_s, (held, *sells, after), funds),
    )


def _add_other_buys(
    place: VenuePlace, setting: Setting, environment: Environment, size: Size, block: PlannedBlock
) -> PlannedBlock:
    """Adds buys of two other wallets before the block's calls, half of the nominal size each. Not for curves:
    the launchpad's own code has no trap for that."""
    if not environment.company or place.venue.is_curve or slot_of(place.venue, setting):
        return block
    whole_raw, limit = (
        quote_raw(size_wei(size, setting.policy), place.venue.quote, setting.market),
        setting.policy.company_gas_limit,
    )
    half_raw = max(1, (whole_raw or 0) // 2)
    others = (environment.receiver, cast(environment, "company").receiver)
    steps: list[SimulatedStep] = []
    for number, other in enumerate(others):
        steps += _other_buy(place, setting, environment, other, f"company-{number}", half_raw, limit)
    budget_wei = size_wei("probe", setting.policy) + 2 * environment.gas_float_wei
    balances = tuple((other, budget_wei + gas_float(setting.policy, environment)) for other in others)
    return structs.replace(block, steps=(*steps, *block.steps), balances=(*block.balances, *balances))


def _other_buy(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    other: Address,
    name: str,
    paid_raw: int,
    limit: int,
) -> list[SimulatedStep]:
    """Another wallet's buy for ``paid_raw`` of the quote, which it buys first where it is not eth."""
    steps = []
    if not place.pays_eth():
        route = route_to(place.venue.quote, setting)
        fund = amm_v3.plan_eth_to(setting.contracts, route, paid_raw, environment.gas_float_wei)
        steps.append(SimulatedStep(f"{name}-fund", other, fund, limit))
    calls = place.file.plan_buy(place.venue, setting.token, setting.contracts, paid_raw, other)
    return steps + [SimulatedStep(f"{name}-{n}", other, call, limit) for n, call in enumerate(calls)]


def _transfer_and_sell_blocks(
    place: VenuePlace, setting: Setting, environment: Environment, probe: Probe, amounts_raw: tuple[int, int]
) -> tuple[PlannedBlock, PlannedBlock]:
    """Transfers the first amount to another wallet, which sells the second amount in a later block."""
    handed_raw, sold_raw = amounts_raw
    receiver, policy = environment.receiver, setting.policy
    transfer_call = Call(setting.token, abi.call(erc20.TRANSFER, receiver, handed_raw))
    transfer = SimulatedStep("transfer", environment.buyer, transfer_call, policy.hand_on_gas_limit)
    before = quote_read("handed", place, setting, environment, receiver)
    limits = _sell_limits(place, setting, environment, probe)
    approvals, sells = sell_steps(place, setting, environment, receiver, sold_raw, limits)
    after = token_read("after-token", setting, environment, receiver)
    sell_block = PlannedBlock(policy.later_s, (before, *approvals, *sells, after))
    return PlannedBlock(probe.delay_s, (transfer,)), sell_block


def _nearly_all_steps(
    place: VenuePlace, setting: Setting, environment: Environment, probe: Probe, held_raw: int
) -> list[SimulatedStep]:
    """Attempts to sell nearly all, the largest amount first, each with a read of the seller's balance after
    it. Between the rounds another wallet buys a little."""
    policy, buyer, contracts = setting.policy, environment.buyer, setting.contracts
    attempt, steps = count(), list[SimulatedStep]()
    for number, amounts in enumerate(nearly_all_amounts(held_raw, policy)):
        if number:
            size = size_wei(probe.size, policy)
            steps += little_buy(place, setting, environment, environment.receiver, f"between-{number}", size)
        for raw in amounts:
            n = next(attempt)
            *_, sell = place.file.plan_sell(place.venue, setting.token, contracts, raw, buyer)
            steps.append(SimulatedStep(f"sell-{n}", buyer, sell, policy.nearly_gas_limit))
            steps.append(quote_read(f"after-{n}", place, setting, environment, buyer))
    return steps


def little_buy(
    place: VenuePlace, setting: Setting, environment: Environment, other: Address, name: str, wei: int
) -> list[SimulatedStep]:
    """A buy by another wallet for a thousandth of ``wei``: it changes what the pool holds. None on curves, as
    in ``_add_other_buys``."""
    policy = setting.policy
    paid_raw = quote_raw(wei // policy.fee_divisor, place.venue.quote, setting.market)
    if place.venue.is_curve or slot_of(place.venue, setting) or not paid_raw:
        return []
    return _other_buy(place, setting, environment, other, name, paid_raw, policy.company_gas_limit)


def little_less_steps(
    place: VenuePlace, setting: Setting, environment: Environment, planned_raw: int
) -> list[SimulatedStep]:
    """More attempts after the first, each with a little less: a token that rounds arrives short of some
    amounts, and not of others."""
    buyer, limit, steps = environment.buyer, setting.policy.piece_gas_limit, list[SimulatedStep]()
    for n in range(1, 1 + _LITTLE_LESS):
        raw = planned_raw - n * max(1, planned_raw // _NEARLY_APART)
        if raw > 0:
            *_, sell = place.file.plan_sell(place.venue, setting.token, setting.contracts, raw, buyer)
            steps.append(SimulatedStep(f"sell-{n}", buyer, sell, limit))
            steps.append(quote_read(f"after-{n}", place, setting, environment, buyer))
    return steps


_LITTLE_LESS = 3
"""A token may round so that every second amount arrives short: in one of 16 checks all four attempts do. More
attempts of a token that uses a crowd wallet's gas limit would spend the gas that a node gives one request."""


def nearly_all_amounts(held_raw: int, policy: Policy) -> list[list[int]]:
    """The amounts of each round of a probe of nearly all, the largest first. Each round has other amounts:
    the amount decides, too, whether a token that rounds arrives short."""
    shares_bps = (*policy.nearly_bps, policy.half_bps)
    rounds = []
    for number in range(policy.nearly_rounds):
        less_raw = number * held_raw // _NEARLY_APART
        amounts = [held_raw - (less_raw or policy.nearly_kept_raw)]
        if number == 1 and held_raw > WEI_PER_ETH:
            # Some tokens can be sold in whole units only, and nearly all tokens have 18 decimals.
            amounts = [held_raw - held_raw % WEI_PER_ETH]
        amounts += [held_raw * bps // BPS - less_raw for bps in shares_bps]
        rounds.append(sorted({raw for raw in amounts if raw > 0}, reverse=True) or [held_raw])
    return rounds


_NEARLY_APART = 10_007
"""The amounts of two rounds differ by one part in so many of the whole."""


def _sales_in_pieces(
    place: VenuePlace, setting: Setting, environment: Environment, probe: Probe, planned_raw: int
) -> list[list[SimulatedStep]]:
    """The pieces of a probe over a day. Each has one gas limit, since a second attempt that succeeds would
    sell a second piece."""
    policy, is_small = setting.policy, probe.seller == "small pieces"
    limit = policy.small_piece_gas_limit if is_small else policy.piece_gas_limit
    amounts = piece_amounts(planned_raw, policy.small_pieces if is_small else policy.pieces)
    sales = [
        [_sale_over_day(place, setting, environment, n, raw, limit)[-1]] for n, raw in enumerate(amounts)
    ]
    sales[0].insert(0, quote_read("held", place, setting, environment, environment.buyer))
    sales[-1] += reads("after", place, setting, environment, environment.buyer)
    return sales


def _sales_at_any_hour(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    planned_raw: int,
    held_over_day_raw: tuple[tuple[int, ...], ...],
) -> list[list[SimulatedStep]]:
    """The whole amount, tried at each of the pieces' moments. Of a token that rebases each moment first tries
    what the wallet holds then, and each attempt approves its own amount: some tokens take no other."""
    buyer, policy, number = environment.buyer, setting.policy, count()
    sales = []
    for n in range(policy.pieces):
        steps = list[SimulatedStep]()
        amounts = {planned_raw, *(held_over_day_raw[n] if held_over_day_raw else ())}
        for raw in sorted((raw for raw in amounts if raw > 0), reverse=True):
            attempt = next(number)
            trade = _sale_over_day(place, setting, environment, attempt, raw, policy.piece_gas_limit)
            steps += trade if held_over_day_raw else trade[-1:]
            steps.append(quote_read(f"after-{attempt}", place, setting, environment, buyer))
        sales.append(steps)
    sales[0].insert(0, quote_read("held", place, setting, environment, buyer))
    sales[-1].append(token_read("after-token", setting, environment, buyer))
    return sales


def _sale_over_day(
    place: VenuePlace, setting: Setting, environment: Environment, number: int, raw: int, limit: int
) -> list[SimulatedStep]:
    """The approvals of a sale over a day, and the sale."""
    buyer, approve_raw = environment.buyer, abi.MAX_UINT256 if environment.approves_all else None
    limit = min(limit, setting.policy.hook_gas_limit) if place.venue.rival_hook() else limit
    *approvals, sell = place.file.plan_sell(
        place.venue, setting.token, setting.contracts, raw, buyer, approve_raw
    )
    gas = environment.approve_gas_limit
    steps = [SimulatedStep(f"approval-{number}-{n}", buyer, call, gas) for n, call in enumerate(approvals)]
    return [*steps, SimulatedStep(f"sell-{number}", buyer, sell, limit)]


def _blocks_over_day(
    setting: Setting,
    environment: Environment,
    sales: list[list[SimulatedStep]],
    approvals: list[SimulatedStep],
) -> tuple[PlannedBlock, ...]:
    """The approvals of the whole amount, and then each of the sales in a block of its own."""
    policy = setting.policy
    count_of = policy.pieces if len(sales) <= policy.pieces else policy.small_pieces
    moments_s = piece_moments_s(policy, count_of)[-len(sales) :]
    moments_s = [at_s + late_s(environment, at_s) for at_s in moments_s]
    waits_s = [later - earlier for earlier, later in pairwise(moments_s)]
    return (
        PlannedBlock(moments_s[0] - environment.approved_s, tuple(approvals)),
        PlannedBlock(environment.approved_s, tuple(sales[0])),
        *(PlannedBlock(wait_s, tuple(steps)) for wait_s, steps in zip(waits_s, sales[1:], strict=True)),
    )


def piece_amounts(planned_raw: int, pieces: int) -> list[int]:
    """The pieces of an amount; the last takes the rest. Fewer pieces where there are not enough units."""
    piece_raw = planned_raw // pieces
    amounts = [piece_raw] * (pieces - 1) + [planned_raw - piece_raw * (pieces - 1)]
    return [raw for raw in amounts if raw > 0]


def piece_moments_s(policy: Policy, pieces: int) -> list[int]:
    """Seconds after the buy at which the pieces are sold, evenly from the first sells to a day later."""
    span_s, steps = policy.day_s - policy.later_s, max(1, pieces - 1)
    return [policy.later_s + n * span_s // steps for n in range(pieces)]


def _sell_limits(
    place: VenuePlace, setting: Setting, environment: Environment, probe: Probe
) -> tuple[int, ...]:
    """The gas limits under which a sell is tried, one after the other."""
    policy = setting.policy
    limits = environment.sell_gas_ladder or policy.sell_gas_ladder
    if probe.seller == "much gas":
        limits = (policy.buy_gas_limit,)
    elif probe.seller == "traded before":
        limits = (policy.piece_gas_limit,)
    elif probe.share_bps != BPS and probe.seller == "buyer":
        limits = policy.part_gas_ladder
    if place.venue.rival_hook():
        limits = tuple(dict.fromkeys(min(limit, policy.hook_gas_limit) for limit in limits))
    return limits


def sell_steps(
    place: VenuePlace,
    setting: Setting,
    environment: Environment,
    seller: Address,
    amount_raw: int,
    limits: tuple[int, ...],
    by_second_route: bool = False,
) -> tuple[list[SimulatedStep], list[SimulatedStep]]:
    """The approvals, and one sell per gas limit, each with a read of the seller's balance after it. The first
    sell that succeeds is the one a wallet would send; later attempts are ignored.
    """
    approve_raw = abi.MAX_UINT256 if environment.approves_all else None
    plan_sell = place.file.plan_second_sell if by_second_route else place.file.plan_sell
    *approvals, sell = plan_sell(
        place.venue, setting.token, setting.contracts, max(1, amount_raw), seller, approve_raw
    )
    gas = environment.approve_gas_limit
    steps = [SimulatedStep(f"approve-{n}", seller, call, gas) for n, call in enumerate(approvals)]
    attempts = []
    for n, limit in enumerate(limits):
        attempts.append(SimulatedStep(f"sell-{n}", seller, sell, limit))
        attempts.append(quote_read(f"after-{n}", place, setting, environment, seller))
    return steps, attempts


def quote_read(
    moment: str, place: VenuePlace, setting: Setting, environment: Environment, of: Address
) -> SimulatedStep:
    """Reads the wallet's balance of what the venue pays."""
    if place.pays_eth():
        quote = Call(setting.contracts.multicall3, abi.call(GET_ETH_BALANCE, of))
    else:
        quote = Call(place.venue.quote_address, abi.call(erc20.BALANCE_OF, of))
    return SimulatedStep(f"{moment}-quote", environment.reader, quote, setting.policy.read_gas_limit)


def reads(
    moment: str, place: VenuePlace, setting: Setting, environment: Environment, of: Address
) -> list[SimulatedStep]:
    """Reads the wallet's balances of what the venue pays and of the token."""
    return [
        quote_read(moment, place, setting, environment, of),
        token_read(f"{moment}-token", setting, environment, of),
    ]


def token_read(label: str, setting: Setting, environment: Environment, of: Address) -> SimulatedStep:
    """Reads the wallet's balance of the token."""
    tokens = Call(setting.token, abi.call(erc20.BALANCE_OF, of))
    return SimulatedStep(label, environment.reader, tokens, setting.policy.read_gas_limit)
