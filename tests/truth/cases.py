"""Random tokens on random pools: what Hypothesis composes, and how a case is written down to be replayed."""

import json
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from roundtrip.devnet.stories import SUPPLY_TOKENS, PoolPlan, Story

FIELDS = (
    "buy_tax_bps", "sell_tax_bps", "move_tax_bps", "launch_step_bps", "held_step_bps", "max_sell_raw",
    "min_sell_raw", "max_wallet_raw", "cooldown_s", "bomb_s", "opens_s", "blacklist", "closed", "stuck_bps",
    "gas_price_cap_wei", "base_fee_floor_wei", "lookout", "gas_burned", "up_bps", "down_bps", "paused",
    "exact_approval", "silent", "bound",
)  # fmt: skip
"""The fields of the contract's ``Behaviours``, in its order."""

SETTLED_S = 120
"""So long after its launch a token is looked at: no full hour since then ends while a trade is made."""


@dataclass(frozen=True)
class Case:
    """One token, by its behaviours that are not off, and the pools it trades in."""

    on: tuple[tuple[str, int], ...]
    pools: tuple[PoolPlan, ...]

    def story(self) -> Story:
        """The same as the local chain's deployment takes it."""
        values = dict(self.on)
        return Story(
            "composed", "", "truth/composed.vy", "Composed", "CMPS",
            extra_types=("uint256",) * len(FIELDS),
            extra_values=tuple(values.get(name, 0) for name in FIELDS),
            pools=self.pools,
        )  # fmt: skip

    def text(self) -> str:
        """One line that ``parse`` reads."""
        pools = [[p.version, p.quote, p.fee_pips, p.quote_milli, p.supply_bps] for p in self.pools]
        return json.dumps({"on": dict(self.on), "pools": pools}, separators=(",", ":"))


def parse(text: str) -> Case:
    """The case that ``Case.text`` wrote."""
    told = json.loads(text)
    pools = [_pool(q, fee, milli, supply, version) for version, q, fee, milli, supply in told["pools"]]
    return Case(tuple(told["on"].items()), tuple(pools))


# --- pools ------------------------------------------------------------------------------------------

_FEES_PIPS = (100, 500, 3000, 10_000)
_TOLLS_PIPS = (40_000, 60_000, 90_000, 300_000)
"""Of odd v4 keys: from about 51,000 on the pool keeps a tenth of a round trip."""
_ODD_SPACING = 60
_USDG_AN_ETH = 3500
_KEYS = [
    *((3, quote, fee) for quote in ("weth", "usdg") for fee in _FEES_PIPS),
    *((4, quote, fee) for quote in ("eth", "weth", "usdg") for fee in _FEES_PIPS),
    *((4, "eth", fee) for fee in _TOLLS_PIPS),
]
_DEPTHS_MILLI = st.one_of(
    st.sampled_from((20_000, 100_000, 1_000_000)),
    st.sampled_from((10, 50, 100, 150, 200, 300, 400, 500, 600, 700, 1000, 2000, 5000)),
    st.integers(10, 3000),
)
"""Thousandths of an eth: a probe of 0.1 eth in 0.5 eth has a price impact near the line for a warning."""

_POOL_COUNTS = (1, 2, 1, 3, 2, 1)
_EMPTY = (*(False,) * 11, True, *(False,) * 8)


@st.composite
def _pools(draw: st.DrawFn) -> tuple[PoolPlan, ...]:
    count = draw(st.sampled_from(_POOL_COUNTS))
    keys = draw(st.lists(st.sampled_from(_KEYS), min_size=count, max_size=count, unique=True))
    found = []
    for version, quote, fee in keys:
        milli = 0 if draw(st.sampled_from(_EMPTY)) else draw(_DEPTHS_MILLI)
        milli *= _USDG_AN_ETH if quote == "usdg" else 1
        found.append(_pool(quote, fee, milli, draw(st.sampled_from((500, 3000))), version))
    return tuple(found)


def _pool(quote: str, fee_pips: int, milli: int, supply_bps: int, version: int) -> PoolPlan:
    spacing = _ODD_SPACING if fee_pips in _TOLLS_PIPS else None
    return PoolPlan(quote, fee_pips, milli, supply_bps, version, tick_spacing=spacing)


def _probe_buys_raw(pool: PoolPlan) -> int:
    """About what a probe of 0.1 eth buys in a pool, its fee aside."""
    depth_milli = pool.quote_milli / (_USDG_AN_ETH if pool.quote == "usdg" else 1)
    share = 100 / (100 + depth_milli)
    return int(SUPPLY_TOKENS * 10**18 * pool.supply_bps // 10_000 * share)


# --- behaviours -------------------------------------------------------------------------------------

_TAXES = st.one_of(
    st.sampled_from((1, 100, 300, 500, 1000, 1400, 1480, 1500, 1520, 1600, 3000, 4900, 5000, 5100, 9000)),
    st.integers(1, 9900),
)
_STEPS = st.one_of(st.sampled_from((10, 55, 60, 65, 200, 210, 1500, 5000)), st.integers(1, 600))
_SOON = (1, 6, 12, 13, 14, 15, 20, 30, 60)
_LATE = (600, 3599, 3600, 3601, 3700, 5000, 50_000, 86_399, 86_400, 86_401, 88_000, 10**6)
_TIMES = st.sampled_from((*_SOON, *_LATE))
_SINCE_LAUNCH = st.sampled_from((1, 150, 3600, 3700, 50_000, 86_400, 87_000, 10**6))
_SHARES_PERCENT = st.one_of(
    st.sampled_from((1, 9, 30, 45, 49, 50, 51, 55, 90, 99, 100, 101, 110, 1000)), st.integers(1, 120)
)
_STUCK = st.sampled_from((1, 2, 100, 4900, 4999, 5001, 9000, 10_000))
_ON = st.just(1)

_VALUES: dict[str, st.SearchStrategy[int]] = {
    "buy_tax_bps": _TAXES,
    "sell_tax_bps": _TAXES,
    "move_tax_bps": _TAXES,
    "launch_step_bps": _STEPS,
    "held_step_bps": _STEPS,
    "max_sell_raw": _SHARES_PERCENT,
    "min_sell_raw": _SHARES_PERCENT,
    "max_wallet_raw": _SHARES_PERCENT,
    "cooldown_s": _TIMES,
    "bomb_s": _TIMES,
    "opens_s": _SINCE_LAUNCH,
    "blacklist": st.sampled_from((1, 2)),
    "closed": st.sampled_from((1, 2)),
    "stuck_bps": st.one_of(_STUCK, st.integers(1, 10_000)),
    "gas_price_cap_wei": st.sampled_from((1, 10**9, 10**12)),
    "base_fee_floor_wei": st.sampled_from((1, 10**9)),
    "lookout": st.sampled_from((1, 2, 3, 4)),
    "gas_burned": st.sampled_from((200_000, 900_000, 2_000_000, 3_500_000, 12_000_000, 20_000_000)),
    "up_bps": st.sampled_from((1, 20, 100, 400)),
    "down_bps": st.sampled_from((1, 20, 60, 65, 70, 280, 290, 1000, 2000)),
    "paused": _ON,
    "exact_approval": _ON,
    "silent": _ON,
    "bound": _ON,
}  # fmt: skip
_OF_A_PROBE = ("max_sell_raw", "min_sell_raw", "max_wallet_raw")
"""Drawn in percent of what a probe buys."""

_COUNTS = (1, 2, 3, 0, 2, 1, 3, 2, 1, 4, 2)

_LINES_BPS = st.builds(int.__add__, st.sampled_from((1500, 5000)), st.integers(-80, 80))
_ON_A_LINE: dict[str, st.SearchStrategy[int]] = {
    "buy_tax_bps": _LINES_BPS,
    "sell_tax_bps": _LINES_BPS,
    "launch_step_bps": st.one_of(st.integers(58, 66), st.integers(203, 212)),
    "held_step_bps": st.one_of(st.integers(58, 66), st.integers(203, 212)),
    "down_bps": st.one_of(st.integers(60, 72), st.integers(278, 295)),
    "stuck_bps": st.integers(4980, 5020),
    "max_sell_raw": st.integers(47, 53),
}
"""Each alone takes a deep pool near a line of the policy, at once, after an hour or after a day."""
_THIN_MILLI = st.one_of(st.integers(530, 610), st.integers(92, 108))
"""So does the price impact of a pool of this depth."""


@st.composite
def _on_a_line(draw: st.DrawFn) -> Case:
    quote = draw(st.sampled_from(("eth", "weth", "usdg")))
    fee_pips = draw(st.sampled_from((100, 500, 3000)))
    name = draw(st.sampled_from((*_ON_A_LINE, "")))
    milli = 1_000_000 if name else draw(_THIN_MILLI)
    pool = _pool(quote, fee_pips, milli * (_USDG_AN_ETH if quote == "usdg" else 1), 3000, 4)
    return Case(((name, _drawn_value(draw, name, _ON_A_LINE[name], (pool,))),) if name else (), (pool,))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Mostly few behaviours at once: many of them refuse, and hide what others do. A fifth lie on a line."""
    if draw(st.sampled_from((False, False, True, False, False))):
        return draw(_on_a_line())
    pools = draw(_pools())
    count = draw(st.sampled_from(_COUNTS))
    names = sorted(draw(st.lists(st.sampled_from(FIELDS), min_size=count, max_size=count, unique=True)))
    return Case(tuple((name, _drawn_value(draw, name, _VALUES[name], pools)) for name in names), pools)


def _drawn_value(
    draw: st.DrawFn, name: str, values: st.SearchStrategy[int], pools: tuple[PoolPlan, ...]
) -> int:
    value = draw(values)
    if name in _OF_A_PROBE:
        return max(1, _probe_buys_raw(draw(st.sampled_from(pools))) * value // 100)
    return value


def drawn(count: int, with_seed: int) -> list[Case]:
    """So many cases, no two of them with the same behaviours in the same pools; the same ones for the same
    seed."""
    found: dict[object, Case] = {}

    @seed(with_seed)
    @settings(
        max_examples=5 * count + 50,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def keep(case: Case) -> None:
        # Hypothesis likes to change one figure and try again.
        names = tuple(name for name, _ in case.on)
        pools = tuple((p.version, p.quote, p.fee_pips, p.quote_milli == 0) for p in case.pools)
        if len(found) < count:
            found.setdefault((names, pools), case)

    keep()
    return list(found.values())
