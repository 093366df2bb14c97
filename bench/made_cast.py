"""The length of a made-up history and its wallets: the number of each, and its funder.

Addresses are numbers, as the database interns them; ``Cast`` says which wallet each is.
"""

import bisect
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

TRADES_A_DAY = 1_000_000
FEWEST_TRADES = 200_000
DAY_S = 86_400
BLOCKS_A_S = 10
FIRST_BLOCK = 1_000_000
WALLETS_A_TRADE = 1 / 12


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of it. ``last_s``: the newest block's time, seconds since 1970. A day is always as busy: with
    more trades the history is longer. ``transfers_s``: of so long transfers are made; no board reads
    more than two days. Raises ValueError where there would be no room for those who are always there."""

    trades: int
    last_s: int
    seed: int = 1
    trades_a_day: int = TRADES_A_DAY
    transfers_s: int = 2 * DAY_S

    def __post_init__(self) -> None:
        if self.trades < FEWEST_TRADES:
            raise ValueError(f"no history is made with fewer than {FEWEST_TRADES:,} trades")

    @property
    def first_s(self) -> int:
        return self.last_s - self.trades * DAY_S // self.trades_a_day

    @property
    def blocks(self) -> int:
        return (self.last_s - self.first_s) * BLOCKS_A_S

    @property
    def last_block(self) -> int:
        return FIRST_BLOCK + self.blocks - 1

    @property
    def wallets(self) -> int:
        return int(self.trades * WALLETS_A_TRADE)

    def at_s(self, block: int) -> int:
        """When a block was made."""
        return self.first_s + (block - FIRST_BLOCK) // BLOCKS_A_S

    def block_at(self, at_s: int) -> int:
        """The first block of that second."""
        return FIRST_BLOCK + (at_s - self.first_s) * BLOCKS_A_S


class Cast:
    """Which number is which wallet. Few are the same however long the history is: bots, traders, deployers;
    the rest come as time passes."""

    ZERO, WETH, USDG, MANAGER, HOOK, LAUNCHPAD = range(1, 7)
    EXCHANGES = range(20, 35)
    EVERGREENS = range(50, 74)
    DEPLOYERS = range(100, 300)
    BOTS = range(300, 800)
    CREW_FUNDERS = range(800, 840)
    CREWS = range(840, 840 + 40 * 15)
    TRADERS = range(2_000, 12_000)
    FIRST_WALLET = 12_000

    def __init__(self, scale: Scale, chance: random.Random) -> None:
        self.scale, self._chance = scale, chance
        self.end = self.FIRST_WALLET + scale.wallets - len(self.TRADERS) - len(self.BOTS) - len(self.CREWS)
        self._early = max(1, (self.end - self.FIRST_WALLET) // 50)
        self._bots = _powers(len(self.BOTS), 0.8)
        self._deployers = _powers(len(self.DEPLOYERS), 1.3)
        self.clusters = list(self._made_clusters())
        self._cluster_starts = [first for first, _ in self.clusters]

    def born_by(self, block: int) -> int:
        """The number after the last wallet there was by then."""
        later = self.end - self.FIRST_WALLET - self._early
        return self.FIRST_WALLET + self._early + later * (block - FIRST_BLOCK) // self.scale.blocks

    def birth(self, wallet: int) -> int:
        """The block in which it was first met."""
        if wallet < self.FIRST_WALLET + self._early:
            return FIRST_BLOCK
        later = self.end - self.FIRST_WALLET - self._early
        return FIRST_BLOCK + (wallet - self.FIRST_WALLET - self._early) * self.scale.blocks // later

    def draw_trader(self, block: int) -> int:
        """Who trades: three in ten a bot, one in four a trader, else one of the newer wallets."""
        draw = self._chance.random()
        if draw < 0.3:
            return self.bot()
        if draw < 0.55:
            return self.TRADERS[int(len(self.TRADERS) * self._chance.random() ** 2)]
        return self.newcomer(block)

    def bot(self) -> int:
        """One of the bots: few make most of their trades."""
        return self.BOTS[_pick(self._bots, self._chance)]

    def newcomer(self, block: int) -> int:
        """One of those met in the last days, most likely of the last one."""
        born = self.born_by(block)
        age = int(self._chance.expovariate(1 / 60_000))
        return born - 1 - age % (born - self.FIRST_WALLET)

    def deployer(self, block: int) -> int:
        """Who launches: two in five times a wallet that does nothing else."""
        if self._chance.random() < 0.4:
            return self.DEPLOYERS[_pick(self._deployers, self._chance)]
        return self.newcomer(block)

    def bundle(self, block: int) -> list[int]:
        """Wallets of one funder who buy a launch together."""
        if self._chance.random() < 0.5:
            first = self.CREWS[15 * self._chance.randrange(40)]
            return [first + n for n in range(self._chance.randrange(5, 16))]
        place = bisect.bisect(self._cluster_starts, self.born_by(block)) - 1 - self._chance.randrange(1, 50)
        first, length = self.clusters[max(0, place)]
        return list(range(first, min(first + min(length, 20), self.born_by(block))))

    def funders(self) -> Iterator[tuple[int, int]]:
        """Wallets with their funders, 0: not known."""
        for wallet in (*self.DEPLOYERS, *self.BOTS, *self.TRADERS):
            yield wallet, self._exchange() if self._chance.random() < 0.8 else 0
        for wallet in self.CREWS:
            yield wallet, self.CREW_FUNDERS[(wallet - self.CREWS[0]) // 15]
        clusters, (first, length) = iter(self.clusters), (0, 0)
        for wallet in range(self.FIRST_WALLET, self.end):
            if wallet >= first + length:
                first, length = next(clusters, (self.end, 1))
            if first < wallet < first + length:
                yield wallet, first
            else:
                yield wallet, self._exchange() if self._chance.random() < 0.8 else 0

    def _exchange(self) -> int:
        return self.EXCHANGES[int(len(self.EXCHANGES) * self._chance.random() ** 2)]

    def _made_clusters(self) -> Iterator[tuple[int, int]]:
        """Runs of wallets that the first of them funded: most are a few, some are over five hundred."""
        wallet = self.FIRST_WALLET
        while wallet < self.end:
            length = int(min(900, 3 * self._chance.paretovariate(0.9)))
            yield wallet, min(length, self.end - wallet)
            wallet += length + int(self._chance.expovariate(1 / 25)) + 1


def _powers(count: int, power: float) -> list[float]:
    return list(itertools.accumulate((n + 1) ** -power for n in range(count)))


def _pick(sums: list[float], chance: random.Random) -> int:
    return bisect.bisect(sums, chance.random() * sums[-1])
