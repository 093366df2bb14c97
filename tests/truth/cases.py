"""Random tokens on random pools: what Hypothesis composes, and how a case is written down to be replayed."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from roundtrip_development.devnet.stories import DYNAMIC_FEE, SUPPLY_TOKENS, PoolPlan, Story

FIELDS = (
    "buy_tax_bps", "sell_tax_bps", "move_tax_bps", "launch_step_bps", "held_step_bps", "max_sell_raw",
    "min_sell_raw", "max_wallet_raw", "cooldown_s", "bomb_s", "opens_s", "blacklist", "closed", "stuck_bps",
    "gas_price_cap_wei", "base_fee_floor_wei", "lookout", "gas_burned", "up_bps", "down_bps", "paused",
    "exact_approval", "silent", "bound", "reflected_bps", "again_tax_bps", "shut_hours", "most_gas_left",
    "buyers_only", "sale_gap_s", "sale_gap_blocks", "buy_gap_blocks", "sales_a_block", "code_refused",
    "code_tax_bps", "no_code_tax_bps", "shut_pool", "other_pool_tax_bps", "opens_blocks", "closes_blocks",
    "tied",
)  # fmt: skip
"""The fields of the contract's ``Behaviours``, in its order."""
NOT_DRAWN = ("again_tax_bps",)
"""What only the crowd meets: the rules are of what the main wallet met."""

OF_BLOCKS = ("sale_gap_blocks", "buy_gap_blocks", "opens_blocks", "closes_blocks")
"""Those that count blocks: as many have to pass as on the chain."""

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

    def counted_blocks(self) -> int:
        """How many blocks it can tell apart while a wallet waits, but for those that nobody waits for."""
        counts = [value for name, value in self.on if name in OF_BLOCKS and value != NEVER_BLOCKS]
        return max(counts, default=0)

    def text(self) -> str:
        """One line that ``parse`` reads."""
        pools = [
            [p.version, p.quote, p.key_fee(), p.quote_milli, p.supply_bps, p.tick_spacing, p.hook]
            for p in self.pools
        ]
        return json.dumps({"on": dict(self.on), "pools": pools}, separators=(",", ":"))


def parse(text: str) -> Case:
    """The case that ``Case.text`` wrote."""
    answer = json.loads(text)
    return Case(tuple(answer["on"].items()), tuple(_parsed(*pool) for pool in answer["pools"]))


def _parsed(
    version: int, quote: str, fee_pips: int, milli: int, supply_bps: int, spacing: int | None, hook: str
) -> PoolPlan:
    return _pool(_Key(version, quote, fee_pips, spacing, hook), milli, supply_bps)


# --- pools ------------------------------------------------------------------------------------------

HOOKS = ("harmless", "revert_on_sell", "tenth_by_delta", "fee_jump", "allow_list")
_FEES_PIPS = (100, 500, 3000, 10_000)
_TOLLS_PIPS = (40_000, 60_000, 90_000, 300_000)
"""From about 51,000 on the pool keeps a tenth of a round trip."""
_USUAL_SPACING = 60
_USDG_AN_ETH = 3500


class _Key(NamedTuple):
    """What a pool is found by. ``spacing`` None: the fee's usual one."""

    version: int
    quote: str
    fee_pips: int
    spacing: int | None = None
    hook: str = ""


_USUAL = st.sampled_from(
    [
        *(_Key(3, quote, fee) for quote in ("weth", "usdg") for fee in _FEES_PIPS),
        *(_Key(4, quote, fee) for quote in ("eth", "weth", "usdg") for fee in _FEES_PIPS),
    ]
)
_FREE_FEES = st.one_of(
    st.sampled_from((0, 1, *_TOLLS_PIPS, 500_000, 990_000)), st.integers(0, 20_000), st.integers(0, 400_000)
)
_FREE_SPACINGS = st.one_of(st.sampled_from((1, 60, 61, 200, 32_767)), st.integers(1, 32_767))
_ODD_MONEY = st.sampled_from(("eth", "eth", "weth", "usdg"))
_ODD = st.builds(_Key, st.just(4), _ODD_MONEY, _FREE_FEES, _FREE_SPACINGS, st.just(""))


@st.composite
def _hooked_keys(draw: st.DrawFn) -> _Key:
    hook = draw(st.sampled_from((*HOOKS, "harmless", "tenth_by_delta", "tenth_by_delta")))
    fees = st.just(DYNAMIC_FEE) if hook == "fee_jump" else st.one_of(st.sampled_from(_FEES_PIPS), _FREE_FEES)
    spacing = draw(st.one_of(st.just(_USUAL_SPACING), _FREE_SPACINGS))
    return _Key(4, "eth", draw(fees), spacing, hook)


_KEYS = st.one_of(_USUAL, _USUAL, _ODD, _hooked_keys())
_DEPTHS_MILLI = st.one_of(
    st.sampled_from((20_000, 100_000, 1_000_000)),
    st.sampled_from((10, 50, 100, 150, 200, 300, 400, 500, 600, 700, 1000, 2000, 5000)),
    st.integers(10, 3000),
)
"""Thousandths of an eth: a probe of 0.1 eth in 0.5 eth has a price impact near the line for a warning."""

_POOL_COUNTS = (1, 2, 1, 3, 2, 1, 4)
_EMPTY = (*(False,) * 11, True, *(False,) * 8)


@st.composite
def _pools(draw: st.DrawFn) -> tuple[PoolPlan, ...]:
    count = draw(st.sampled_from(_POOL_COUNTS))
    found = []
    for key in draw(st.lists(_KEYS, min_size=count, max_size=count, unique=True)):
        milli = 0 if draw(st.sampled_from(_EMPTY)) else draw(_DEPTHS_MILLI)
        found.append(_pool(key, _worth(key, milli), draw(st.sampled_from((500, 2400)))))
    return tuple(found)


@st.composite
def _second_pools(draw: st.DrawFn) -> tuple[PoolPlan, ...]:
    """A v3 pool, and one or two of another version, money, fee, hook or size: a token tells them apart by
    address, but for those of v4."""
    first = _Key(3, draw(st.sampled_from(("weth", "usdg"))), draw(st.sampled_from(_FEES_PIPS)))
    only_v3 = draw(st.booleans())
    other = _KEYS.filter(lambda key: key != first and (key.version == 3 or not only_v3))
    others = draw(st.lists(other, min_size=1, max_size=2, unique=True))
    keys = draw(st.permutations([first, *others]))
    depths_milli = [draw(st.sampled_from((500, 1000, 5000, 20_000, 100_000, 1_000_000))) for _ in keys]
    is_one_price, most = draw(st.sampled_from((True, True, False))), max(depths_milli)
    return tuple(
        _pool(key, _worth(key, milli), max(1, 2400 * milli // most) if is_one_price else 2400)
        for key, milli in zip(keys, depths_milli, strict=True)
    )


@st.composite
def _beside(draw: st.DrawFn) -> tuple[PoolPlan, ...]:
    """A hooked pool and a fair one, both deep, whose round trips lie near the margin apart that a hook needs;
    or a cheap hooked one that is bait."""
    fee = draw(st.sampled_from((100, 500, 3000)))
    hook = draw(st.sampled_from(("harmless", "harmless", *HOOKS)))
    hooked = _Key(4, "eth", DYNAMIC_FEE if hook == "fee_jump" else fee, _USUAL_SPACING, hook)
    apart = draw(st.one_of(st.integers(4900, 5200), st.sampled_from((-100, 0, 2500, 10_000))))
    fair = _Key(4, draw(st.sampled_from(("eth", "weth"))), max(0, fee + apart), _USUAL_SPACING)
    keys = draw(st.permutations([hooked, fair]))
    return tuple(_pool(key, 1_000_000, 3000) for key in keys)


def _worth(key: _Key, milli: int) -> int:
    return milli * (_USDG_AN_ETH if key.quote == "usdg" else 1)


def _pool(key: _Key, quote_milli: int, supply_bps: int) -> PoolPlan:
    dynamic = key.fee_pips == DYNAMIC_FEE
    return PoolPlan(
        key.quote, 0 if dynamic else key.fee_pips, quote_milli, supply_bps, key.version,
        hook=key.hook, tick_spacing=key.spacing, dynamic_fee=dynamic,
    )  # fmt: skip


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

NEVER_BLOCKS = 10**6
"""More than pass while anybody waits."""

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
    # The crowd's last sells are some seconds later than a day, those of the wallets here are not.
    "bomb_s": _TIMES.filter(lambda at_s: at_s != 86_401),
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
    "reflected_bps": st.one_of(st.sampled_from((1, 100, 500, 780, 1000, 2800, 2930, 5000)), _TAXES),
    "shut_hours": st.sampled_from((2, 8, 14, 20)),
    # Between the most gas of most sells of a check and that of a transaction.
    "most_gas_left": st.sampled_from((4_000_000, 10_000_000, 16_000_000)),
    "buyers_only": _ON,
    "sale_gap_s": st.sampled_from((1, 9700, 100_000)),
    "sale_gap_blocks": st.sampled_from((1, NEVER_BLOCKS)),
    # Not 2: on the chain one number passes in 13 s, or two; the main wallet's simulation has two, and those
    # of who bought last in the crowd and of who got it from the buyer have one.
    "buy_gap_blocks": st.sampled_from((1, 8, NEVER_BLOCKS)),
    # Four of the crowd sell in one block.
    "sales_a_block": st.sampled_from((1, 2, 50)),
    "code_refused": st.sampled_from((1, 2)),
    "code_tax_bps": _TAXES,
    "no_code_tax_bps": _TAXES,
    "shut_pool": st.sampled_from((1, 2, 3)),
    "other_pool_tax_bps": _TAXES,
    "opens_blocks": st.sampled_from((1, 8, NEVER_BLOCKS)),
    "closes_blocks": st.sampled_from((1, 8, NEVER_BLOCKS)),
    "tied": _ON,
}  # fmt: skip
_SHORT_GAPS: dict[str, st.SearchStrategy[int]] = {
    # Ten sales in a day are 9,598 s apart, fifty 1,763 s.
    "sale_gap_s": st.sampled_from((60, 1700, 1800, 9500)),
    "sale_gap_blocks": st.sampled_from((2, 8)),
}
"""Drawn only where a sale of half of it is too much. Elsewhere the check says ok at level ``warn``: the
wallet of the crowd that sells in pieces does so at the others' moments, which are nearer together than its
pieces are when it is tried alone, and the text names the others' trades as the cause."""
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
    key = _Key(4, quote, fee_pips)
    pool = _pool(key, _worth(key, milli), 3000)
    return Case(((name, _drawn_value(draw, name, _ON_A_LINE[name], (pool,))),) if name else (), (pool,))


_KINDS = (
    "any",
    "hooked",
    "line",
    "pace",
    "any",
    "beside",
    "code",
    "any",
    "second",
    "hooked",
    "any",
    "blocks",
)
_FAMILIES = {
    "pace": ("sale_gap_s", "sale_gap_blocks", "buy_gap_blocks", "sales_a_block"),
    "code": ("code_refused", "code_tax_bps", "no_code_tax_bps"),
    "second": ("shut_pool", "other_pool_tax_bps", "tied", "tied"),
    "blocks": ("buy_gap_blocks", "opens_blocks", "closes_blocks"),
}
_BESIDE_FAMILY = (
    "max_sell_raw",
    "max_sell_raw",
    "buy_tax_bps",
    "sell_tax_bps",
    "shut_hours",
    "cooldown_s",
    "",
)
"""What such a token may have, too; a bound of a sale has the wallet sell often."""
_OF_A_TRADE = ("buy_tax_bps", "sell_tax_bps", "move_tax_bps", "reflected_bps", "stuck_bps", "max_sell_raw")


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Mostly few behaviours at once: many of them refuse, and hide what others do. Some lie on a line, some
    have a hooked pool beside a fair one, some a hooked pool and what a token takes of trades, and some a
    behaviour of ``_FAMILIES``."""
    kind = draw(st.sampled_from(_KINDS))
    if kind == "line":
        return draw(_on_a_line())
    if kind in _FAMILIES:
        return draw(_of_family(kind))
    names = _OF_A_TRADE if kind in ("beside", "hooked") else tuple(_VALUES)
    count = draw(st.sampled_from((0, 1, 2) if kind in ("beside", "hooked") else _COUNTS))
    if kind == "hooked":
        pools: tuple[PoolPlan, ...] = (_pool(draw(_hooked_keys()), 100_000, 3000),)
    else:
        pools = draw(_beside() if kind == "beside" else _pools())
    chosen = draw(st.lists(st.sampled_from(names), min_size=count, max_size=count, unique=True))
    on = ((name, _drawn_value(draw, name, _VALUES[name], pools)) for name in sorted(chosen))
    return Case(tuple(on), pools)


@st.composite
def _of_family(draw: st.DrawFn, kind: str) -> Case:
    """One behaviour of a family, and perhaps another one, mostly in one deep pool."""
    pools = draw(_second_pools() if kind == "second" else _deep_pools())
    if kind == "pace" and draw(st.booleans()):
        return draw(_sold_in_pieces(pools))
    names = {draw(st.sampled_from(_FAMILIES[kind])), draw(st.sampled_from(_BESIDE_FAMILY))} - {""}
    on = ((name, _drawn_value(draw, name, _VALUES[name], pools)) for name in sorted(names))
    return Case(tuple(on), pools)


@st.composite
def _sold_in_pieces(draw: st.DrawFn, pools: tuple[PoolPlan, ...]) -> Case:
    """A bound of one sale below half of what each pool sells for a probe, and a gap between sales."""
    name = draw(st.sampled_from(tuple(_SHORT_GAPS)))
    gap = draw(st.one_of(_SHORT_GAPS[name], _VALUES[name]))
    percent = draw(st.sampled_from((1, 3, 9, 11, 30, 45)))
    most_raw = min(map(_probe_buys_raw, pools)) * percent // 100
    return Case((("max_sell_raw", most_raw), (name, gap)), pools)


@st.composite
def _deep_pools(draw: st.DrawFn) -> tuple[PoolPlan, ...]:
    keys = draw(st.lists(_USUAL, min_size=1, max_size=draw(st.sampled_from((1, 1, 2))), unique=True))
    depths = st.sampled_from((20_000, 100_000, 1_000_000))
    return tuple(_pool(key, _worth(key, draw(depths)), 2400) for key in keys)


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
        pools = tuple((p.version, p.quote, p.key_fee(), p.hook, p.quote_milli == 0) for p in case.pools)
        if len(found) < count:
            found.setdefault((names, pools), case)

    keep()
    return list(found.values())
