"""The lives of tokens: when they open, how many wallets come, and what each wants to do."""

import math
import random
from collections.abc import Iterator

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import WEI_PER_ETH, TxHash

from .made_cast import BLOCKS_A_S, DAY_S, Cast
from .made_up import NULL, PHANTOM_WEI, SUPPLY_RAW, Market, Planned, World

TRADES_A_POOL = 24
"""With 24 million trades a million pools."""
CURVES, V3 = 0.144, 0.604
"""Of all places: some 6,000 launches a day. The rest are v4 pools."""
MAX_STORIES = 3_000
SPAMMED = 3
"""So many tokens have one in a hundred of all pools, which others opened of them."""


class Lives:
    """Plays a world's tokens, a span of seconds after the other."""

    def __init__(self, world: World) -> None:
        self.world, self.chance = world, world.chance
        self.played: list[tuple[int, bool]] = []
        """Tokens with a symbol that may have been read, and whether they were launched."""

    def play(self, from_s: int, end_s: int) -> None:
        """Everything that begins in that time, and the evergreens' share of trades in it."""
        world, scale = self.world, self.world.scale
        pools_a_day = scale.trades_a_day // TRADES_A_POOL
        for share in range(24):
            first = scale.block_at(from_s + (end_s - from_s) * share // 24)
            end = scale.block_at(from_s + (end_s - from_s) * (share + 1) // 24)
            for _ in range(round((end - first) * pools_a_day / DAY_S / BLOCKS_A_S)):
                self._open(self.chance.randrange(first, end))
        due = (end_s - from_s) * scale.trades_a_day // DAY_S
        there = sum(
            len(lines)
            for (table, day), lines in world.rows.daily.items()
            if table == "trade" and day == from_s // DAY_S
        )
        # Of what is planned a fifth comes to nothing: who holds nothing cannot sell.
        wanted = max(due // 50, (due - there) * 5 // 4)
        self._evergreens(scale.block_at(from_s), scale.block_at(end_s), wanted)

    def end(self) -> None:
        """Writes what the evergreens' wallets hold."""
        for market in self.world.evergreens:
            self.world.end(market)

    def _open(self, block: int) -> None:
        draw, chance = self.chance.random(), self.chance
        if draw < CURVES:
            self._launch(block)
            return
        kind = "amm_v3" if draw < CURVES + V3 else "amm_v4"
        quote = Cast.USDG if chance.random() < 0.1 else Cast.WETH if kind == "amm_v3" else Cast.ZERO
        draw = chance.random()
        if draw < 0.01:
            token = Cast.EVERGREENS[int(SPAMMED * chance.random())]
            self.world.open_pool(kind, token, quote, block)
            return
        token = self.world.new_token()
        if draw < 0.1:
            # Against a token that is not money: its trades are not stored.
            self.world.open_pool(kind, token, max(self.world.cast.end, token - 500), block, money=False)
            return
        market = Market(token, self.world.open_pool(kind, token, quote, block), block, quote == Cast.USDG)
        market.tells_amounts = kind == "amm_v3"
        market.quote_wei = int(3 * WEI_PER_ETH * chance.paretovariate(1.2))
        self.world.move_liquidity(market, block, 10**20)
        count = int(min(MAX_STORIES, 0.6 * chance.paretovariate(1.0)))
        if count:
            self._live(market, count)
        if chance.random() < 0.25:
            later = block + int(chance.expovariate(1 / (4 * 3600 * BLOCKS_A_S)))
            if later <= self.world.scale.last_block:
                self.world.move_liquidity(market, later, -(10**20))

    def _launch(self, block: int) -> None:
        world, chance = self.world, self.chance
        token, deployer = world.new_token(), world.cast.deployer(block)
        pool = world.open_pool("launchpad_curve", token, Cast.ZERO, block)
        # The curve's address is the pool's: the newest row has it.
        at = world.rows.plain["pool"][-1].split("\t")[1]
        block, log = world.place(block)
        at_s = world.scale.at_s(block)
        world.rows.add(
            "launch",
            f"{token}\t2\t{deployer}\t{deployer}\t{Cast.ZERO}\t{at}\t{42 * 10**17}\t{block}\t{log}\t{at_s}\t"
            f"\\\\x{chance.getrandbits(256):064x}\n",
        )
        market = Market(token, pool, block, deployer=deployer, launched=True, on_curve=True)
        market.quote_wei = PHANTOM_WEI
        self._live(market, int(min(MAX_STORIES, 2.5 * chance.paretovariate(0.85))))
        self._insiders(market)

    def _live(self, market: Market, count: int) -> None:
        """``count`` wallets come, most of them early; the more, the longer it lasts."""
        chance, world = self.chance, self.world
        life = 6_000 * (1 + count / 50) ** 0.7 * math.exp(chance.gauss(0, 1)) * BLOCKS_A_S / 10
        size = 0.012 * (1 + count / 40) ** 0.5
        planned: list[Planned] = []
        for _ in range(count):
            block = market.opened + 1 + int(chance.expovariate(1 / life))
            if block > world.scale.last_block:
                continue
            planned += self._story(block, world.cast.draw_trader(block), life, size)
        if market.launched:
            planned += self._first_buyers(market, life, size)
        world.play(market, planned)
        world.end(market)
        self.played.append((market.token, market.launched))

    def _story(self, block: int, wallet: int, life: float, size: float) -> Iterator[Planned]:
        """A wallet comes: a bot goes in and out again at once and often, others mostly in, and perhaps
        out."""
        chance = self.chance
        if wallet in Cast.BOTS:
            for _ in range(1 + int(chance.expovariate(1.0))):
                yield Planned(block, wallet, self._wei(size))
                block += 1 + int(chance.expovariate(1 / 200))
                yield Planned(block, wallet, -1000)
                block += 1 + int(chance.expovariate(1 / 600))
            return
        yield Planned(block, wallet, self._wei(size))
        for _ in range(int(chance.expovariate(2.0))):
            block += 1 + int(chance.expovariate(2 / life))
            yield Planned(block, wallet, self._wei(size))
        draw = chance.random()
        if draw < 0.35:
            return
        block += 1 + int(chance.expovariate(2 / life))
        if draw < 0.55:
            yield Planned(block, wallet, -500)
            block += 1 + int(chance.expovariate(2 / life))
        yield Planned(block, wallet, -1000)

    def _first_buyers(self, market: Market, life: float, size: float) -> Iterator[Planned]:
        chance, opened = self.chance, market.opened
        if chance.random() < 0.7:
            yield Planned(opened, market.deployer, self._wei(4 * size))
            if chance.random() < 0.6:
                yield Planned(opened + int(chance.expovariate(1 / life)), market.deployer, -1000)
        if chance.random() < 0.12:
            out = opened + 40 + int(chance.expovariate(1 / life))
            for wallet in self.world.cast.bundle(opened):
                yield Planned(opened + chance.randrange(30), wallet, self._wei(3 * size))
                yield Planned(out + chance.randrange(30), wallet, -1000)

    def _insiders(self, market: Market) -> None:
        """Deployers that move what they have, and those who burn."""
        world, chance = self.world, self.chance
        if chance.random() >= 0.08:
            return
        what = "moved" if chance.random() < 0.6 else "burned"
        block, log = world.place(market.opened + int(chance.expovariate(1 / 36_000)))
        spot = Spot(block, log, world.scale.at_s(block), TxHash(""))
        other = world.cast.newcomer(block) if what == "moved" else NULL
        raw = int(SUPPLY_RAW * chance.random() / 20)
        tx = f"\\\\x{chance.getrandbits(256):064x}"
        if world.is_recent(spot.at_s):
            world.inside(what, market.token, spot, market.deployer, other, raw, NULL, tx)

    def _evergreens(self, first: int, end: int, count: int) -> None:
        """``count`` trades of the tokens that are always there, the first of them the most."""
        chance, markets = self.chance, self.world.evergreens
        planned: list[list[Planned]] = [[] for _ in markets]
        for _ in range(count):
            block = chance.randrange(first, end)
            amount = self._wei(0.1) if chance.random() < 0.55 else -500 if chance.random() < 0.5 else -1000
            place = int(len(markets) * chance.random() ** 2)
            wallet = self.world.cast.draw_trader(block)
            planned[place].append(Planned(block, wallet, amount))
        for market, wants in zip(markets, planned, strict=True):
            self.world.play(market, wants)

    def _wei(self, size: float) -> int:
        return int(size * math.exp(self.chance.gauss(0, 1)) * WEI_PER_ETH)


def symbol(chance: random.Random) -> str:
    """A symbol: a few stand on very many tokens, one in five on this one alone."""
    draw = chance.random()
    if draw < 0.2:
        return f"U{chance.getrandbits(40):X}"
    if draw < 0.5:
        return COMMON[int(len(COMMON) * chance.random() ** 3)]
    return f"{COMMON[chance.randrange(len(COMMON))]}{int(4000 * chance.random() ** 2)}"


COMMON = (
    "PEPE", "DOGE", "ROBIN", "HOOD", "CAT", "MOON", "TRUMP", "AI", "WOJAK", "SHIB", "FROG", "BONK", "GOLD",
    "ELON", "BABY", "PONS", "TEST", "MEME", "CHAD", "GIGA", "PUMP", "KING", "APE", "BULL", "WIF", "MOG",
    "NVDA", "TSLA", "FLOKI", "COIN", "GROK", "DEGEN",
)  # fmt: skip
