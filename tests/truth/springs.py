"""Tokens that spring on some wallets only: what a case is, and what real wallets of each manner meet."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Literal

from roundtrip_development.devnet.deploy import ETH_PRICE_USDG
from roundtrip_development.devnet.stories import SUPPLY_TOKENS, PoolPlan, Story
from roundtrip_development.devnet.world import Built
from truth.cases import FIELDS
from truth.reality import BPS, DAY_S, HOUR_S, SOON_S
from truth.spring_wallets import USUAL_WEI, Manner

ETH = 10**18
SUPPLY_RAW = SUPPLY_TOKENS * ETH

_V3, _V4 = ((3, "weth"), (3, "weth"), (3, "usdg")), ((4, "eth"), (4, "eth"), (4, "usdg"))

Label = Literal["trap", "choice", "honest", "plain"]
"""trap: some wallets that trade as usual cannot sell. choice: so it is, but a trader can choose otherwise.
honest: odd, and everybody can sell. plain: nothing odd; level ok is due."""


@dataclass(frozen=True)
class SpringCase:
    """One token in one pool. ``x`` and ``y`` are the spring's; ``at_s``: the second of the day when it is
    checked. ``takes_bps`` 0: the spring refuses. ``tax_bps`` of every purchase."""

    spring: str
    pool: PoolPlan
    x: int = 0
    y: int = 0
    salt: int = 0
    takes_bps: int = 0
    tax_bps: int = 0
    at_s: int = 43_200

    def row(self) -> "Spring":
        return SPRINGS[self.spring]

    def text(self) -> str:
        """One line that ``parse`` reads."""
        pool = self.pool
        values = asdict(self) | {
            "pool": [pool.version, pool.quote, pool.fee_pips, pool.quote_milli, pool.supply_bps]
        }
        return json.dumps(values, separators=(",", ":"))

    def story(self, built: Built, day: int) -> Story:
        """What the local chain's deployment takes; ``day``: the day of the check, since 1970."""
        row, x = self.row(), self.x
        if row.composed:
            values = {row.composed: x, "buy_tax_bps": self.tax_bps}
            return _story("composed", tuple(values.get(name, 0) for name in FIELDS), self.pool)
        if row.contract:
            x = int(built.contracts[row.contract], 16)
        if row.kind == DAYS:
            x = (day + x) % 7
        return _story("springs", (row.kind, x, self.y, self.salt, self.takes_bps, self.tax_bps), self.pool)


def parse(text: str) -> SpringCase:
    """The case that ``SpringCase.text`` wrote."""
    values = json.loads(text)
    version, quote, fee_pips, milli, supply_bps = values.pop("pool")
    return SpringCase(pool=PoolPlan(quote, fee_pips, milli, supply_bps, version), **values)


def _story(stem: str, values: tuple[int, ...], pool: PoolPlan) -> Story:
    types = ("uint256",) * len(values)
    return Story(
        stem, "", f"truth/{stem}.vy", "Spring", "SPRG",
        extra_types=types, extra_values=values, pools=(pool,),
    )  # fmt: skip


# --- what is drawn ----------------------------------------------------------------------------------


def _between(draw: Random, low: int, high: int) -> int:
    """Each magnitude as often as the others."""
    return int(low * math.exp(draw.random() * math.log(high / low)))


def _pool(draw: Random, row: "Spring") -> PoolPlan:
    version, quote = draw.choice(row.pools)
    milli = _between(draw, 5000, 1_000_000) * (ETH_PRICE_USDG if quote == "usdg" else 1)
    return PoolPlan(quote, draw.choice((500, 3000, 10_000)), milli, draw.choice((2400, 5000, 8000)), version)


def _bought_raw(pool: PoolPlan, wei: int) -> int:
    """About what so much eth buys, fee aside."""
    depth_wei = pool.quote_milli * ETH // 1000 // (ETH_PRICE_USDG if pool.quote == "usdg" else 1)
    return SUPPLY_RAW * pool.supply_bps // BPS * wei // (depth_wei + wei)


def drawn(count: int, seed: int, names: tuple[str, ...] = ()) -> list[SpringCase]:
    """So many cases, each spring in turn, or only those named; the same for the same seed."""
    draw, chosen, cases = Random(seed), names or tuple(SPRINGS), []
    for number in range(count):
        name = chosen[number % len(chosen)]
        row = SPRINGS[name]
        pool = _pool(draw, row)
        x, y = row.draw(draw, pool)
        case = SpringCase(
            name, pool, x, y, draw.getrandbits(64),
            # A v3 pool refuses a sale that arrives short.
            takes_bps=draw.choice((0, draw.randint(6000, 9900))) if pool.version == 4 else 0,
            tax_bps=draw.choice((0, 0, 100, 300)),
            at_s=draw.randrange(DAY_S - HOUR_S),
        )  # fmt: skip
        cases.append(case)
    return cases


# --- the springs ------------------------------------------------------------------------------------

(
    ADDRESS, MARKED, SELL_ABOVE, SELL_BELOW, BOUGHT_ABOVE, RICH, POOR, TIPPED, HOLDS, SECOND_BUY, BUYERS,
    SELLERS, ROUTER, HOURS, DAYS, LATE, EARLY, UNBOUNDED, DOUBLE, ONCE_A_BLOCK, BUY_PAUSE,
) = range(1, 22)  # fmt: skip
"""The kinds of ``contracts/truth/springs.vy``."""


@dataclass(frozen=True)
class Spring:
    """One row. ``draw`` gives x and y. ``caught``: a manner in which every try to sell fails; None for honest
    tokens. ``free``: with one in which every try succeeds. ``contract``: x is this contract's address.
    ``composed``: the token is contracts/truth/composed.vy, and x is this field of it."""

    label: Label
    kind: int
    draw: Callable[[Random, PoolPlan], tuple[int, int]]
    free: Callable[[SpringCase], Manner]
    caught: Callable[[SpringCase], Manner] | None = None
    contract: str = ""
    composed: str = ""
    pools: tuple[tuple[int, str], ...] = (*_V3, *_V4)


def _fixed(x: int, y: int = 0) -> Callable[[Random, PoolPlan], tuple[int, int]]:
    return lambda draw, pool: (x, y)


def _drawn_between(low: int, high: int) -> Callable[[Random, PoolPlan], tuple[int, int]]:
    return lambda draw, pool: (_between(draw, low, high), 0)


def _size(low_wei: int = ETH // 50, high_wei: int = ETH) -> Callable[[Random, PoolPlan], tuple[int, int]]:
    """Tokens, and the wei that buy about as many."""

    def size(draw: Random, pool: PoolPlan) -> tuple[int, int]:
        wei = _between(draw, low_wei, high_wei)
        return _bought_raw(pool, wei), wei

    return size


def _manner(**fields: object) -> Callable[[SpringCase], Manner]:
    return lambda case: replace(Manner(), **fields)  # type: ignore[arg-type]


def _by_address(kind: int, one_in: int) -> Spring:
    return Spring("trap", kind, _fixed(one_in), _manner(caught=False), _manner(caught=True))


def _until(case: SpringCase, closed: bool) -> Manner:
    """A sale that lies in the closed hours, or outside, a quarter of an hour at least from where they end."""

    def is_closed(at_s: int) -> bool:
        return (at_s // HOUR_S - case.x) % 24 < case.y

    delays_s = (
        delay_s
        for delay_s in range(SOON_S, DAY_S, 900)
        if {is_closed(case.at_s + delay_s + shift_s) for shift_s in (-450, 450)} == {closed}
    )
    return Manner(delays_s=(next(delays_s),))


def _larger(case: SpringCase) -> Manner:
    return Manner(size_wei=3 * case.y)


def _smaller(case: SpringCase) -> Manner:
    return Manner(size_wei=case.y // 3)


def _richer(case: SpringCase) -> Manner:
    return Manner(purse_wei=3 * case.x)


def _poorer(case: SpringCase) -> Manner:
    return Manner(purse_wei=case.x // 3)


def _few(draw: Random, pool: PoolPlan) -> tuple[int, int]:
    return draw.randint(1, 8), 0


_PLAIN = _manner()
_SMALL = _manner(size_wei=USUAL_WEI // 10)
_PURSES = _drawn_between(ETH // 50, 10 * ETH)

SPRINGS: dict[str, Spring] = {
    **{f"address, 1 in {n}": _by_address(ADDRESS, n) for n in (2, 4, 8, 16)},
    **{f"marked at the buy, 1 in {n}": _by_address(MARKED, n) for n in (2, 4, 8, 16)},
    "sender holds more eth": Spring("trap", RICH, _PURSES, _poorer, _richer),
    "sender holds less eth": Spring("trap", POOR, _PURSES, _richer, _poorer),
    "seller holds weth": Spring("trap", HOLDS, _fixed(0), _PLAIN, _manner(money="weth"), contract="weth"),
    # A v3 pool pays before it takes: a seller for usdg always holds some.
    "seller holds usdg": Spring(
        "trap", HOLDS, _fixed(0), _PLAIN, _manner(money="usdg"), contract="usdg", pools=(_V3[0], *_V4)
    ),
    "bought twice": Spring("trap", SECOND_BUY, _fixed(0), _PLAIN, _manner(buys=2)),
    "after others bought": Spring("trap", BUYERS, _few, _PLAIN, lambda case: Manner(others_buy=case.x)),
    "after others sold": Spring("trap", SELLERS, _few, _PLAIN, lambda case: Manner(others_sell=case.x)),
    "sale above": Spring("choice", SELL_ABOVE, _size(), _smaller, _larger),
    "sale below": Spring("choice", SELL_BELOW, _size(high_wei=ETH // 12), _larger, _smaller),
    "bought above": Spring("choice", BOUGHT_ABOVE, _size(low_wei=ETH // 8), _smaller, _larger),
    "tip": Spring(
        "choice", TIPPED, _drawn_between(10**6, 5 * 10**7), _PLAIN,
        lambda case: Manner(tip_wei=2 * case.x),
    ),
    "not by Permit2": Spring(
        "choice", ROUTER, _fixed(0), _PLAIN, _manner(universal=True), contract="permit2", pools=_V3
    ),
    "not by SwapRouter02": Spring(
        "choice", ROUTER, _fixed(0), _manner(universal=True), _PLAIN, contract="swapRouter02", pools=_V3
    ),
    "hours": Spring(
        "choice", HOURS, lambda draw, pool: (draw.randrange(24), draw.randint(2, 12)),
        lambda case: _until(case, closed=False), lambda case: _until(case, closed=True),
    ),
    "day of the week": Spring(
        "choice", DAYS, lambda draw, pool: (draw.randrange(2), 0),
        lambda case: Manner(delays_s=(SOON_S if case.x else DAY_S,)),
        lambda case: Manner(delays_s=(DAY_S if case.x else SOON_S,)),
    ),
    "only soon after the buy": Spring(
        "trap", LATE, _fixed(HOUR_S - 60), _manner(delays_s=(SOON_S,)), _manner(delays_s=(HOUR_S, DAY_S))
    ),
    "only a day after the buy": Spring(
        "choice", EARLY, _fixed(DAY_S - 60), _manner(delays_s=(DAY_S,)), _manner(delays_s=(SOON_S, HOUR_S))
    ),
    "unbounded approval": Spring("choice", UNBOUNDED, _fixed(0), _PLAIN, _manner(approves_all=True)),
    "reflection": Spring(
        "honest", 0, _drawn_between(50, 300), _PLAIN, composed="reflected_bps", pools=_V4
    ),
    "sale of 1 % at most": Spring("honest", 0, _fixed(SUPPLY_RAW // 100), _SMALL, composed="max_sell_raw"),
    "wallet of 2 % at most": Spring("honest", 0, _fixed(SUPPLY_RAW // 50), _SMALL, composed="max_wallet_raw"),
    "cap on gas price": Spring(
        "honest", 0, _drawn_between(10**10, 10**12), _PLAIN, composed="gas_price_cap_wei"
    ),
    "unbounded approval, double": Spring("honest", DOUBLE, _fixed(0), _PLAIN),
    "one trade a block": Spring("honest", ONCE_A_BLOCK, _fixed(0), _PLAIN),
    "30 s between buys": Spring("honest", BUY_PAUSE, _fixed(30), _PLAIN),
    "plain": Spring("plain", 0, _fixed(0), _PLAIN),
}  # fmt: skip
"""By name, as the table shows them."""
