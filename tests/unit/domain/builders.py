"""Evidence for tests: a sound venue by default, every piece replaceable by name."""

from bisect import bisect_right
from dataclasses import replace

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, Address, BlockRef
from roundtrip.domain.base.venue import PoolFacts, Quote, Venue
from roundtrip.domain.check.evidence import (
    BuyOutcome,
    CellOutcome,
    CompletedBuy,
    EnvironmentBuy,
    Evidence,
    MarketRates,
    Missing,
    Probe,
    ProbeCell,
    RefusedCall,
    Size,
    Sold,
    TokenFacts,
    VenueEvidence,
)
from roundtrip.domain.check.venue_reading import pool_keep_bps

TOKEN = Address("0x" + "11" * 20)
WETH = Address("0x" + "ee" * 20)
POOL = Address("0x" + "22" * 20)
OWNER = Address("0x" + "33" * 20)

PAID_RAW = POLICY.probe_wei
BOUGHT_RAW = 10**24
NO_MONEY = RefusedCall("sell", None, 100_000)
NODE = Missing("node", "the node timed out")
ITS_OWN = Missing("token", "the token does not tell balances")
LIQUID = PoolFacts(exists=True, sqrt_price_x96=2**96, liquidity=10**20, quote_reserve_raw=10**19)
DRY = PoolFacts(exists=True, sqrt_price_x96=2**96, liquidity=0, quote_reserve_raw=0)
ABSENT = PoolFacts(exists=False, sqrt_price_x96=0, liquidity=0, quote_reserve_raw=0)

MAIN_CELLS: dict[str, tuple[int, int, int, str]] = {
    "full": (POLICY.later_s, BPS, 0, "buyer"),
    "full_again": (POLICY.later_s, BPS, 1, "buyer"),
    "hour": (POLICY.hour_s, BPS, 0, "buyer"),
    "day": (POLICY.day_s, BPS, 0, "buyer"),
    "half": (POLICY.later_s, POLICY.half_bps, 0, "buyer"),
    "sliver": (POLICY.later_s, POLICY.sliver_bps, 0, "buyer"),
    "handed_on": (POLICY.later_s, BPS, 0, "receiver"),
}
"""Delay, share, environment and seller of every probe at the judged size."""


def sold(
    loss_bps: int = 60, share_bps: int = BPS, planned_bps: int | None = None, gas: int = 150_000
) -> Sold:
    """A sell of ``share_bps`` of what was bought, at exactly this loss; planned as much, unless said."""
    planned = share_bps if planned_bps is None else planned_bps
    cost_raw = PAID_RAW * share_bps // BPS
    return Sold(
        paid_raw=PAID_RAW,
        held_raw=BOUGHT_RAW,
        planned_raw=BOUGHT_RAW * planned // BPS,
        sold_raw=BOUGHT_RAW * share_bps // BPS,
        back_raw=cost_raw * (BPS - loss_bps) // BPS,
        buy_gas=140_000,
        sell_gas=gas,
    )


def bought(impact_bps: int = 0, size: Size = "probe", part_bps: int = BPS) -> CompletedBuy:
    """A buy whose price impact against ``small_buy`` is exactly this; ``part_bps`` of the offer was taken."""
    offered = PAID_RAW // {"probe": 1, "tenth": 10, "hundredth": 100, "thousandth": 1000, "large": 1}[size]
    paid = offered * part_bps // BPS
    return CompletedBuy(paid, paid * (BPS - impact_bps) * 1000, offered, 140_000)


def small_buy() -> CompletedBuy:
    """A buy of a thousandth, without impact: what ``bought`` is measured against."""
    return bought(0, "thousandth")


def main_cell(size: Size, name: str, outcome: CellOutcome) -> ProbeCell:
    """The cell of ``MAIN_CELLS`` by this name."""
    delay_s, share_bps, environment, seller = MAIN_CELLS[name]
    return ProbeCell(Probe(size, delay_s, share_bps, environment, seller), outcome)  # type: ignore[arg-type]


def fee_cell(outcome: CellOutcome) -> ProbeCell:
    """The round trip at a thousandth, which measures fees."""
    return ProbeCell(Probe("thousandth", POLICY.later_s, POLICY.most_bps, 0), outcome)


def pieces_cell(outcome: CellOutcome, size: Size = "probe") -> ProbeCell:
    """All of it in ten sales over a day, which is asked only where no single sale sold half."""
    return ProbeCell(Probe(size, POLICY.day_s, BPS, 0, "pieces"), outcome)


def planned_share(name: str) -> int:
    """What share of the tokens the probe by this name is asked to sell."""
    return MAIN_CELLS[name][1]


def cells(
    loss_bps: int = 60, size: Size = "probe", /, **outcomes: CellOutcome | None
) -> tuple[ProbeCell, ...]:
    """Every probe of a venue, and ``fees``, sold at ``loss_bps`` but for the named ones. None: not asked."""
    found = []
    for name in MAIN_CELLS:
        outcome = outcomes.pop(name, sold(loss_bps, planned_share(name)))
        if outcome is not None:
            found.append(main_cell(size, name, outcome))
    fees = outcomes.pop("fees", sold(loss_bps))
    if fees is not None:
        found.append(fee_cell(fees))
    assert not outcomes, f"no such probe: {outcomes}"
    return tuple(found)


def refused_cells(**outcomes: CellOutcome | None) -> tuple[ProbeCell, ...]:
    """Every probe refused, but for the named ones."""
    every: dict[str, CellOutcome | None] = dict.fromkeys((*MAIN_CELLS, "fees"), NO_MONEY)
    return cells(**{**every, **outcomes})


def buys(
    probe: BuyOutcome | None = None,
    tenth: BuyOutcome | None = None,
    hundredth: BuyOutcome | None = None,
    thousandth: BuyOutcome | None = None,
    impact_bps: int = 0,
) -> tuple[EnvironmentBuy, ...]:
    """A buy of every size in the first environment, filled unless said otherwise."""
    return (
        EnvironmentBuy("probe", 0, probe or bought(impact_bps)),
        EnvironmentBuy("tenth", 0, tenth or bought(impact_bps, "tenth")),
        EnvironmentBuy("hundredth", 0, hundredth or bought(impact_bps, "hundredth")),
        EnvironmentBuy("thousandth", 0, thousandth or small_buy()),
    )


def refused_buys(reason: str | None = "paused") -> tuple[EnvironmentBuy, ...]:
    """Every size refused."""
    no = RefusedCall("buy", reason, 50_000)
    return buys(no, no, no, no)


def keeping_buys() -> tuple[EnvironmentBuy, ...]:
    """Every size paid for, and nothing had for it."""
    nothing = RefusedCall("arrive", "nothing arrived for what was paid", 50_000)
    return buys(nothing, nothing, nothing, nothing)


def partial_buys() -> tuple[EnvironmentBuy, ...]:
    """Every size filled in part only."""
    part = {size: bought(0, size, 5000) for size in ("probe", "tenth", "hundredth")}
    return buys(part["probe"], part["tenth"], part["hundredth"], bought(0, "thousandth", 5000))


def venue(
    all_cells: tuple[ProbeCell, ...] | None = None,
    *,
    all_buys: tuple[EnvironmentBuy, ...] | None = None,
    facts: PoolFacts | Missing = LIQUID,
    fee_pips: int = 3000,
    impact_bps: int = 0,
    quote: Quote = "weth",
    told_on_buy: RefusedCall | Missing | None = None,
    told_on_sell: RefusedCall | Missing | None = None,
) -> VenueEvidence:
    """A venue that takes everything for a loss of 0.60 %, unless said otherwise."""
    return VenueEvidence(
        venue=Venue("amm_v3", quote, WETH, POOL, fee_pips),
        facts=facts,
        buys=buys(impact_bps=impact_bps) if all_buys is None else all_buys,
        cells=cells() if all_cells is None else all_cells,
        told_on_buy=told_on_buy,
        told_on_sell=told_on_sell,
    )


def no_trade(facts: PoolFacts | Missing, all_buys: tuple[EnvironmentBuy, ...] = ()) -> VenueEvidence:
    """A venue of which nothing was sold, so nothing was asked a second time."""
    return venue((), all_buys=all_buys, facts=facts)


TOKEN_FACTS = TokenFacts(
    code_bytes=1000,
    name_data=None,
    symbol_data=None,
    decimals=18,
    total_supply_raw=10**27,
    balance_answers=True,
    owner=None,
    proxy_admin=None,
)

MARKET = MarketRates(block_number=100, usdg_per_eth_raw=3_000 * 10**6, pool_fee_pips=500, feed_usd_e8=None)

EMPTY = Evidence(
    schema=1,
    policy_version=POLICY.version,
    chain_id=4663,
    block=BlockRef(100, "0x" + "ab" * 32, 1_700_000_000),
    block_base_fee_wei=10**7,
    token=TOKEN,
    role="token",
    facts=TOKEN_FACTS,
    market=MARKET,
    candidates_complete=True,
)


def evidence(
    *venues: VenueEvidence, facts: TokenFacts = TOKEN_FACTS, market: MarketRates = MARKET
) -> Evidence:
    """A check of an ordinary token with these venues."""
    return replace(EMPTY, venues=venues, facts=facts, market=market)


def keep_of(fee_pips: int) -> int:
    """What a pool with this fee keeps of a round trip, in bps."""
    return pool_keep_bps(fee_pips)


def fee_that_keeps(keep_bps: int) -> int:
    """The largest fee, in pips, of which a round trip keeps exactly this, rounded up."""
    return bisect_right(range(1_000_000), keep_bps, key=pool_keep_bps) - 1
