"""A plausible history of a busy chain, made up from a seed: its wallets, launches and trades.

A token's whole life is played at once, in the order of its blocks: stories of wallets (in, perhaps in again,
perhaps out) against a pool with a price that follows them, each trade folded by
``domain/market/profit.py``, as the sync folds it. So positions, closings and curves are what the trades
make of them, to the last unit. What a life leaves for later days waits in ``Rows`` until their turn.
"""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from roundtrip.domain.base.events import Spot
from roundtrip.domain.base.types import WEI_PER_ETH, TxHash
from roundtrip.domain.market.profit import EMPTY, ValuedFill, WalletPosition, fold

from .made_cast import DAY_S, FIRST_BLOCK, Cast, Scale

NULL = "\\N"
_NO_HASH = TxHash("")
ETH_USD = 3_000
PHANTOM_WEI, THRESHOLD_WEI = 168 * WEI_PER_ETH // 100, 42 * WEI_PER_ETH // 10
SUPPLY_RAW = 10**27
RECENT_S = 7 * DAY_S
"""Transfers and what insiders did are kept for so long."""


LINE_COLUMNS = {
    "trade": (
        "micro_usd", "at_s", "block_number", "log_index", "pool_id", "trader_id", "buys", "token_raw",
        "quote_raw", "eth_wei", "tx_hash", "kept_raw",
    ),
    "liquidity": (
        "at_s", "block_number", "log_index", "pool_id", "owner_id", "sender_id", "tick_lower", "tick_upper",
        "liquidity_delta", "token_raw", "quote_raw", "tx_hash",
    ),
    "transfer": (
        "at_s", "block_number", "log_index", "token_id", "from_id", "to_id", "amount_raw", "tx_hash",
    ),
    "pool": (
        "id", "at", "kind", "token_id", "quote_id", "in_money_from", "fee_pips", "tick_spacing", "hook_id",
        "block_number", "log_index", "at_s",
    ),
    "launch": (
        "token_id", "generation", "deployer_id", "sender_id", "quote_id", "at", "threshold_raw",
        "block_number", "log_index", "at_s", "tx_hash",
    ),
    "launch_step": (
        "at_s", "block_number", "log_index", "token_id", "step", "quote_raw", "token_raw", "tx_hash",
    ),
    "closing": ("block_number", "log_index", "at_s", "wallet_id", "token_id", "spent_wei", "got_wei"),
    "curve": ("pool_id", "raised_raw", "last_s"),
    "inside": (
        "block_number", "log_index", "at_s", "what", "token_id", "wallet_id", "other_id", "token_raw",
        "eth_wei", "tx_hash",
    ),
}  # fmt: skip
"""In which order a line has a table's columns."""


class Line(NamedTuple):
    """A row in COPY's text form, and its place on the chain as a number to sort by."""

    place: int
    text: str


@dataclass(slots=True)
class Rows:
    """What was made so far and not taken yet: by day of UTC where the table is cut into days, else by
    table."""

    daily: dict[tuple[str, int], list[Line]] = field(default_factory=dict)
    plain: dict[str, list[str]] = field(default_factory=dict)

    def take_day(self, table: str, day: int) -> list[str]:
        """A day's rows in the order of the chain."""
        lines = self.daily.pop((table, day), [])
        lines.sort()
        return [line.text for line in lines]

    def take(self, table: str) -> list[str]:
        """Those of a table that is not cut."""
        return self.plain.pop(table, [])

    def add(self, table: str, text: str) -> None:
        self.plain.setdefault(table, []).append(text)

    def add_daily(self, table: str, at_s: int, place: int, text: str) -> None:
        self.daily.setdefault((table, at_s // DAY_S), []).append(Line(place, text))


class Planned(NamedTuple):
    """What a wallet wants to do. ``amount``: wei to buy for, or below zero thousandths of what it holds."""

    block: int
    wallet: int
    amount: int


@dataclass(slots=True)
class Market:
    """A token and where it trades. ``quote_wei`` and ``token_raw``: the pool's reserves, the curve's phantom
    eth among them. ``tells_amounts``: its logs of liquidity do."""

    token: int
    pool: int
    opened: int
    in_usdg: bool = False
    deployer: int = 0
    launched: bool = False
    on_curve: bool = False
    tells_amounts: bool = False
    quote_wei: int = 5 * WEI_PER_ETH
    token_raw: int = SUPPLY_RAW
    last_block: int = 0
    last_curve_block: int = 0
    positions: dict[int, WalletPosition] = field(default_factory=dict)


class World:
    """Everything under way. ``take``: rows that are made."""

    def __init__(self, scale: Scale) -> None:
        self.scale, self.chance = scale, random.Random(scale.seed)
        self.cast = Cast(scale, self.chance)
        self.rows = Rows()
        self.trades = self.pools = 0
        self.tokens = self.cast.end
        self.logs = bytearray(scale.blocks)
        self.evergreens: list[Market] = []
        self._recent_s = scale.last_s - RECENT_S
        self._transfers_s = scale.last_s - scale.transfers_s
        self._begin()

    # --- places -----------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.open_pool("amm_v3", Cast.WETH, Cast.USDG, FIRST_BLOCK)
        for number, token in enumerate(Cast.EVERGREENS):
            in_usdg = number % 2 == 1
            pool = self.open_pool("amm_v3", token, Cast.USDG if in_usdg else Cast.WETH, FIRST_BLOCK)
            market = Market(token, pool, FIRST_BLOCK, in_usdg, quote_wei=2_000 * WEI_PER_ETH)
            self.evergreens.append(market)

    def place(self, block: int) -> tuple[int, int]:
        """The block, or one soon after it that has room, and a new log's number in it."""
        at = min(block, self.scale.last_block) - FIRST_BLOCK
        while self.logs[at] == 255 and at + 1 < len(self.logs):
            at += 1
        log = self.logs[at]
        self.logs[at] = min(255, log + 1)
        return at + FIRST_BLOCK, log

    def open_pool(self, kind: str, token: int, quote: int, block: int, money: bool = True) -> int:
        """A new place's number."""
        self.pools += 1
        short = kind in ("amm_v3", "launchpad_curve")
        at = f"{self.chance.getrandbits(160):040x}" if short else f"{self.chance.getrandbits(256):064x}"
        block, log = self.place(block)
        hook = Cast.HOOK if kind == "launchpad_pool" else "\\N"
        fee, spacing = {"amm_v3": (10_000, 200), "amm_v4": (3_000, 60)}.get(kind, (0, 200))
        self.rows.add(
            "pool",
            f"{self.pools}\t\\\\x{at}\t{kind}\t{token}\t{quote}\t{block if money else NULL}\t{fee}\t{spacing}"
            f"\t{hook}\t{block}\t{log}\t{self.scale.at_s(block)}\n",
        )
        return self.pools

    def new_token(self) -> int:
        """The number of a new contract."""
        self.tokens += 1
        return self.tokens - 1

    def move_liquidity(self, market: Market, block: int, delta: int) -> None:
        """A wallet adds liquidity to a pool, or takes it away."""
        block, log = self.place(block)
        at_s = self.scale.at_s(block)
        owner = market.deployer or self.cast.newcomer(block)
        amounts = (delta * 10**6, delta // 100) if market.tells_amounts else (NULL, NULL)
        self.rows.add_daily(
            "liquidity", at_s, block << 12 | log,
            f"{at_s}\t{block}\t{log}\t{market.pool}\t{owner}\t{owner}\t-887200\t887200\t{delta}\t{amounts[0]}"
            f"\t{amounts[1]}\t{self._hash()}\n",
        )  # fmt: skip

    # --- a token's life ---------------------------------------------------------------------------

    def play(self, market: Market, planned: list[Planned]) -> None:
        """Everything that happens to a token from here on, as far as the history goes. What a wallet wants
        and cannot do is not done."""
        planned.sort()
        for block, wallet, amount in planned:
            if block > self.scale.last_block:
                break
            self._trade(market, max(block, market.last_block), wallet, amount)

    def _trade(self, market: Market, block: int, wallet: int, amount: int) -> None:
        before = market.positions.get(wallet, EMPTY)
        buys = amount > 0
        if buys:
            kept = amount // 100 if market.on_curve else 0
            paid = amount
            tokens = (paid - kept) * market.token_raw // (market.quote_wei + paid - kept)
            moved = paid - kept
        else:
            tokens = before.held_raw * -amount // 1000
            gross = tokens * market.quote_wei // (market.token_raw + tokens)
            kept = gross // 100 if market.on_curve else 0
            paid, moved, tokens = gross - kept, -gross, -tokens
        if not tokens or paid < 10**9:
            return
        market.quote_wei += moved
        market.token_raw -= tokens
        block, log = self.place(block)
        market.last_block = block
        at_s, micro_usd = self.scale.at_s(block), paid * ETH_USD // 10**12
        spot = Spot(block, log, at_s, _NO_HASH)
        after, closing = fold(before, ValuedFill(spot, buys, abs(tokens), paid, micro_usd))
        market.positions[wallet] = after
        if closing is not None:
            self.rows.add(
                "closing",
                f"{block}\t{log}\t{at_s}\t{wallet}\t{market.token}\t{closing.spent_wei}\t{closing.got_wei}\n",
            )
        quote, worth = (micro_usd, paid) if market.in_usdg else (paid, NULL)
        tx = self._hash()
        self.trades += 1
        self.rows.add_daily(
            "trade", at_s, block << 12 | log,
            f"{micro_usd}\t{at_s}\t{block}\t{log}\t{market.pool}\t{wallet}\t{'t' if buys else 'f'}\t"
            f"{abs(tokens)}\t{quote}\t{worth}\t{tx}\t{kept if market.on_curve else NULL}\n",
        )  # fmt: skip
        if market.launched:
            self._after_trade(market, spot, wallet, tokens, paid, tx)

    def _after_trade(self, market: Market, spot: Spot, wallet: int, tokens: int, paid: int, tx: str) -> None:
        """What else the index keeps of a launched token's trade."""
        if spot.at_s >= self._transfers_s:
            sides = (Cast.MANAGER, wallet) if tokens > 0 else (wallet, Cast.MANAGER)
            self._transfer(market.token, spot.block_number, *sides, abs(tokens), tx)
        if wallet == market.deployer and tokens < 0 and spot.at_s >= self._recent_s:
            self.inside("sold", market.token, spot, wallet, NULL, -tokens, str(paid), tx)
        if market.on_curve:
            market.last_curve_block = spot.block_number
            if market.quote_wei - PHANTOM_WEI >= THRESHOLD_WEI:
                self._graduate(market, spot.block_number)

    def is_recent(self, at_s: int) -> bool:
        """Whether what insiders did then is still kept."""
        return at_s >= self._recent_s

    def inside(
        self, what: str, token: int, spot: Spot, wallet: int, other: int | str, raw: int, wei: str, tx: str
    ) -> None:
        """What an insider of a launch did."""
        self.rows.add(
            "inside",
            f"{spot.block_number}\t{spot.log_index}\t{spot.at_s}\t{what}\t{token}\t{wallet}\t{other}\t{raw}\t"
            f"{wei}\t{tx}\n",
        )

    def _transfer(self, token: int, block: int, sender: int, to: int, raw: int, tx: str) -> None:
        block, log = self.place(block)
        at_s = self.scale.at_s(block)
        line = f"{at_s}\t{block}\t{log}\t{token}\t{sender}\t{to}\t{raw}\t{tx}\n"
        self.rows.add_daily("transfer", at_s, block << 12 | log, line)

    def _graduate(self, market: Market, block: int) -> None:
        self.put_curve(market)
        market.on_curve = False
        for step, wait in (("swept", 0), ("pooled", 50)):
            at, log = self.place(block + wait)
            raw = f"{market.quote_wei - PHANTOM_WEI}\t{SUPPLY_RAW * 10 // 49}"
            self.rows.add(
                "launch_step",
                f"{self.scale.at_s(at)}\t{at}\t{log}\t{market.token}\t{step}\t{raw}\t{self._hash()}\n",
            )
        market.pool = self.open_pool("launchpad_pool", market.token, Cast.ZERO, block + 50)
        self.move_liquidity(market, block + 50, 10**21)

    def put_curve(self, market: Market) -> None:
        """What lies in a launch's curve now."""
        at_s = self.scale.at_s(market.last_curve_block or market.opened)
        self.rows.add("curve", f"{market.pool}\t{market.quote_wei - PHANTOM_WEI}\t{at_s}\n")

    def end(self, market: Market) -> None:
        """No more happens to it: what its wallets hold is written."""
        if market.on_curve:
            self.put_curve(market)
        token, put = market.token, self.rows.plain.setdefault("position", []).append
        for wallet, position in market.positions.items():
            put(f"{wallet}\t{token}\t" + "\t".join(map(str, position)) + "\n")

    def _hash(self) -> str:
        return f"\\\\x{self.chance.getrandbits(256):064x}"
