"""Which traps the draw of a check's wallets misses: computed from the draw alone, without a node.

``python -m truth.draw_table [--write]`` prints the tables; with ``--write`` also into docs/truth.md. Best
called by ``make write NAME=draw``.
"""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from roundtrip.chain.blocks import environments
from roundtrip.chain.simulate.crowd_plans import Member, block_size, late_s, sell_amounts, sell_waits
from roundtrip.chain.simulate.probe_plans import main_wallet
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.evidence import CrowdWallet, Environment
from roundtrip.services.engine.crowd import draw_crowd, draw_gaps, fit_wallets, room_raw
from roundtrip.services.engine.crowd_sells import choose_sellers
from roundtrip.venues.abi import keccak
from support.documents import PROJECT
from unit.chain.trades import SETTING, WETH
from unit.services.engine.crowds import DEEP, HEAD, bought_on, session

PAGE = PROJECT / "docs/truth.md"
_SECTION = re.compile(r"(<!-- draw: begin -->\n).*(<!-- draw: end -->)", re.DOTALL)
SEEDS = 200
"""Checks that are drawn for each depth; the tables are the same whenever they are computed."""
ONE_IN = (4, 8, 16)
DEPTHS_ETH = (1, 5, 50, 500)
USUAL_DEPTH_ETH = 50
_ETH, _GWEI = 10**18, 10**9
_GAS_MONEY_WEI = 5 * 10**15
"""What a wallet of the crowd holds beyond its purse, and hardly uses where gas is cheap."""


# --- what is drawn ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DrawnCheck:
    """The wallets of one check that trade in a v3 pool: those of the crowd, the largest, and the main one."""

    gaps_s: tuple[int, ...]
    members: tuple[Member, ...]
    largest: CrowdWallet
    main: Environment

    def wallets(self) -> Iterator[CrowdWallet]:
        """All but the main wallet."""
        yield from (member.wallet for member in self.members)
        yield self.largest

    def sales(self) -> Iterator[tuple[Member, int, int]]:
        """Every sale of the crowd: who sells, the seconds after its own last buy, and the amount."""
        setting = replace(SETTING, crowd_gaps_s=self.gaps_s)
        for member in self.members:
            amounts = sell_amounts(member, self.members, POLICY)
            at = sell_waits(member, self.members, POLICY)
            for wait_s, raw in zip(at, amounts, strict=False):
                yield member, wait_s + late_s(member, setting), raw


def draw_checks(depth_eth: int, count: int = SEEDS) -> list[DrawnCheck]:
    """So many checks of a plain token whose pool holds so much eth; the same whenever they are drawn."""
    depth_wei, run = depth_eth * _ETH, session()
    facts = PoolFacts(True, DEEP.sqrt_price_x96, depth_wei, depth_wei)
    trial = bought_on(facts=facts)
    bought = trial.completed_buy("probe")
    assert bought is not None
    room = room_raw(run, WETH, facts, None, bought)
    checks = []
    for number in range(count):
        seed = keccak(f"draw {number}".encode())
        drawn = draw_crowd(seed, WETH, HEAD, POLICY)
        among, alone = (fit_wallets(run, WETH, part, room) for part in (drawn[:-1], drawn[-1:]))
        sells = choose_sellers(run, replace(trial, crowd_wallets=among), None, bought)
        members = getattr(sells, "members", ())
        main = main_wallet(environments.draw(seed, HEAD, POLICY)[0])
        checks.append(DrawnCheck(draw_gaps(seed, POLICY), members, alone[0], main))
    return checks


# --- traps on a scale -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """What a token can look at. ``values``: those that a check tries. ``is_even``: each hour is as likely as
    the next; else each magnitude. ``has_steps``: only whole numbers occur, and the scale has few of them:
    each stands in the middle between itself and the next."""

    name: str
    bounds: str
    low: float
    high: float
    values: Callable[[DrawnCheck], Iterable[float]]
    is_even: bool = False
    has_steps: bool = False

    def place(self, value: float) -> float:
        """0 for the lowest value of the scale, 1 for the highest."""
        value += 0.5 if self.has_steps else 0
        if self.is_even:
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low) if value > 0 else -1

    def missed(self, check: DrawnCheck, one_in: int) -> float:
        """The share of all intervals of this length in which the check tries nothing. Intervals without any
        value that occurs do not count."""
        width = 1 / one_in
        tried = _starts_around(map(self.place, self.values(check)), width)
        if not self.has_steps:
            return max(0.0, 1 - tried / (1 - width))
        whole = range(math.ceil(self.low), math.floor(self.high))
        return max(0.0, 1 - tried / _starts_around(map(self.place, whole), width))


def _starts_around(places: Iterable[float], width: float) -> float:
    """The length of all places at which an interval of this width may start so that it holds one of these."""
    length = end = 0.0
    for place in sorted(place for place in places if -_ROUNDING <= place <= 1 + _ROUNDING):
        first, last = max(end, place - width), min(place, 1 - width)
        if last > first:
            length, end = length + last - first, last
    return length


_ROUNDING = 1e-9


def _gaps(check: DrawnCheck) -> Iterator[int]:
    """Those that a buy comes after."""
    size = block_size(POLICY)
    first = {member.number // size for member in check.members}
    again = {member.number // size + 1 for member in check.members if member.wallet.again_wei}
    return (check.gaps_s[number] for number in first | again)


def _sale_times(check: DrawnCheck) -> Iterator[int]:
    yield from (POLICY.later_s, POLICY.hour_s, POLICY.day_s)
    yield from (after_s for _, after_s, _ in check.sales())


def _shares(check: DrawnCheck) -> Iterator[float]:
    """Each sale's part of what its wallet holds then, 1 for all of it."""
    yield 1
    left: dict[int, int] = {}
    for member, _, raw in check.sales():
        held_raw = left.get(member.number, member.held_raw)
        left[member.number] = held_raw - raw
        yield raw / held_raw


def _eth_held(check: DrawnCheck) -> Iterator[float]:
    yield check.main.gas_float_wei / _ETH
    yield from ((wallet.purse_wei + _GAS_MONEY_WEI) / _ETH for wallet in check.wallets())


def _tips(check: DrawnCheck) -> Iterator[float]:
    return (wallet.tip_wei / _GWEI for wallet in check.wallets())


_LEAST_GAS, *_, _MOST_GAS = POLICY.sell_gas_ladder


def _sell_gas(check: DrawnCheck) -> Iterator[int]:
    """Limits of sales; the main wallet sells with the least of the ladder, and with the most."""
    yield from (_LEAST_GAS, _MOST_GAS)
    yield from (member.sell_gas for member in check.members)


def _bought_eth(check: DrawnCheck) -> Iterator[float]:
    yield from (POLICY.probe_wei / _ETH, POLICY.large_wei / _ETH)
    for wallet in check.wallets():
        yield from (wallet.size_wei / _ETH, wallet.again_wei / _ETH)


def _sold_eth(check: DrawnCheck) -> Iterator[float]:
    """What the tokens of each sale had cost."""
    yield from (POLICY.probe_wei / _ETH, POLICY.large_wei / _ETH, check.largest.size_wei / _ETH)
    for member, _, raw in check.sales():
        paid_wei = member.wallet.size_wei + member.wallet.again_wei
        yield paid_wei * raw / max(1, member.held_raw) / _ETH


def size_scales(depth_eth: int) -> tuple[Scale, ...]:
    """What depends on the pool's depth: sizes up to half of it."""
    high = min(3, depth_eth / 2)
    bounds = f"0.01 to {high:g} eth"
    return (
        Scale("size of a buy", bounds, 0.01, high, _bought_eth),
        Scale("size of a sale", bounds, 0.01, high, _sold_eth),
    )


_SOON, _HOUR, _DAY = POLICY.later_s, POLICY.hour_s, POLICY.day_s
SCALES = (
    Scale("seconds between two blocks of buys", "1 to 60", 1, 61, _gaps, has_steps=True),
    Scale("time from buy to sale, first hour", "13 s to 1 h", _SOON, _HOUR, _sale_times),
    Scale("time from buy to sale, after the first hour", "1 h to 24 h", _HOUR, _DAY, _sale_times),
    Scale("the same, each hour alike", "1 h to 24 h", _HOUR, _DAY, _sale_times, is_even=True),
    Scale("share of the balance that is sold", "1 % to 100 %", 0.01, 1, _shares),
    Scale("eth that the seller holds", "0.01 to 30 eth", 0.01, 30, _eth_held),
    Scale("tip", "0.001 to 3 gwei", 0.001, POLICY.crowd_most_tip_wei / _GWEI, _tips),
    Scale("gas limit of the sale", "0.4 to 16.8 M", _LEAST_GAS, _MOST_GAS, _sell_gas),
)


# --- traps on wallets of one kind -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """Wallets that have something in common; the main wallet may be one of them."""

    name: str
    includes: Callable[[CrowdWallet], bool]
    includes_main: bool = False

    def addresses(self, check: DrawnCheck) -> list[Address]:
        """The wallets of this kind that traded."""
        main = [check.main.buyer] if self.includes_main else []
        return main + [wallet.wallet for wallet in check.wallets() if self.includes(wallet)]


KINDS = (
    Kind("any wallet", lambda wallet: True, includes_main=True),
    Kind("approves the exact amount", lambda wallet: not wallet.approves_all, includes_main=True),
    Kind("approves without a limit", lambda wallet: wallet.approves_all),
    Kind("buys twice", lambda wallet: wallet.again_wei > 0),
    Kind("pays a tip", lambda wallet: wallet.tip_wei > 0),
    Kind("holds weth", lambda wallet: wallet.weth_wei > 0),
    Kind("holds usdg", lambda wallet: wallet.usdg_raw > 0),
    Kind("sells by the second route", lambda wallet: wallet.way == "second route"),
    Kind("sells in ten pieces", lambda wallet: wallet.way == "pieces"),
    Kind("has code (EIP-7702)", lambda wallet: wallet.delegates),
)


def missed_by_address(addresses: Sequence[Address], one_in: int) -> float:
    """The share of traps, each for one in so many addresses by their hash, that none of these falls into."""
    residues = {int.from_bytes(keccak(bytes.fromhex(address[2:])), "big") % one_in for address in addresses}
    return 1 - len(residues) / one_in


# --- the page ---------------------------------------------------------------------------------------


def markdown(count: int = SEEDS) -> str:
    """The tables, each share a mean over so many checks."""
    by_depth = {depth_eth: draw_checks(depth_eth, count) for depth_eth in DEPTHS_ETH}
    usual = by_depth[USUAL_DEPTH_ETH]
    parts = (_scales_table(usual), _sizes_table(by_depth), _kinds_table(usual))
    head = f"Written by `make write NAME=draw` from {count} drawn checks for each depth; do not edit by hand."
    return "\n\n".join((head, *("\n".join(part) for part in parts))) + "\n"


def _scales_table(checks: Sequence[DrawnCheck]) -> Iterator[str]:
    yield _row("what the trap looks at", "scale", *(f"1 in {one_in}" for one_in in ONE_IN))
    yield _row(*["---"] * (2 + len(ONE_IN)))
    for scale in SCALES:
        yield _row(scale.name, scale.bounds, *(_percent(_mean_missed(scale, checks, n)) for n in ONE_IN))


def _sizes_table(by_depth: dict[int, list[DrawnCheck]]) -> Iterator[str]:
    yield _row("what the trap looks at", "hits", *(f"{depth_eth} eth" for depth_eth in DEPTHS_ETH))
    yield _row(*["---"] * (2 + len(DEPTHS_ETH)))
    for number, scale in enumerate(size_scales(DEPTHS_ETH[-1])):
        for one_in in ONE_IN:
            shares = (
                _mean_missed(size_scales(depth_eth)[number], by_depth[depth_eth], one_in)
                for depth_eth in DEPTHS_ETH
            )
            yield _row(scale.name, f"1 in {one_in}", *map(_percent, shares))


def _kinds_table(checks: Sequence[DrawnCheck]) -> Iterator[str]:
    yield _row("the trap hits a wallet that", "wallets", "all", *(f"1 in {one_in}" for one_in in ONE_IN))
    yield _row(*["---"] * (3 + len(ONE_IN)))
    for kind in KINDS:
        known = [kind.addresses(check) for check in checks]
        counts = sorted(map(len, known))
        number = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
        shares = (_mean([missed_by_address(some, one_in) for some in known]) for one_in in (1, *ONE_IN))
        yield _row(kind.name, number, *map(_percent, shares))


def _mean_missed(scale: Scale, checks: Sequence[DrawnCheck], one_in: int) -> float:
    return _mean([scale.missed(check, one_in) for check in checks])


def _mean(shares: Sequence[float]) -> float:
    return sum(shares) / len(shares)


def _percent(share: float) -> str:
    return "under 1 %" if 0.0001 < share < 0.01 else f"{100 * share:.0f} %"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def read_page() -> str:
    """The tables that the page has. Raises ValueError: it has no place for them."""
    found = _SECTION.search(PAGE.read_text())
    if found is None:
        raise ValueError(f"{PAGE.name} has no place for the tables of the draw")
    return found[0].removeprefix(found[1]).removesuffix(found[2])


def write_page(tables: str) -> None:
    """Puts the tables into the page. Raises ValueError: it has no place for them."""
    written, count = _SECTION.subn(lambda found: found[1] + tables + found[2], PAGE.read_text())
    if count != 1:
        raise ValueError(f"{PAGE.name} has no place for the tables of the draw")
    PAGE.write_text(written)


def main() -> int:
    """Computes and prints."""
    parser = argparse.ArgumentParser(prog="truth.draw_table", description=__doc__)
    parser.add_argument("--write", action="store_true", help="also into docs/truth.md")
    parser.add_argument("--checks", type=int, default=SEEDS, help="how many are drawn for each depth")
    asked = parser.parse_args()
    tables = markdown(asked.checks)
    print(tables)
    if asked.write:
        write_page(tables)
    return 0


if __name__ == "__main__":
    sys.exit(main())
