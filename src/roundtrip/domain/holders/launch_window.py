"""Where a token's launch was, found while its transfers are folded, and who bought in it.

A launchpad tells it. Of any other token it is where a hundredth of all there is was first bought within a
window, the latest block from which on it was; insiders' buys do not count for that. Before that stands the
first block by whose end its pools had a hundredth, after something was put in, and it is the launch for good
where a hundredth is bought in its own window. Where it is not, trading was opened later: then it stands only
until a hundredth is; or until others than insiders have bought a thousandth, less what they sold, bit by
bit: then trading was open all along, and who comes in large after that is late. Of a token with neither it is
the first buy.

So neither early buys of dust nor a pool filled early move it forward, and a hundredth put in after the crowd
has bought does not move it back. Whoever wants to hide what was bought first must himself buy, and keep, a
thousandth before that.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from roundtrip.domain.base.types import Address, TxHash

from .book_packing import texts, wholes
from .token_flows import TokenTx, WalletFlow

WINDOW_BLOCKS = 30
"""The launch block and so many after it: three seconds on a chain that makes ten blocks a second."""

LAUNCHED_PART = 100
"""A token is launched when one part in so many of it was put into pools, or bought."""

OPEN_PART = 1_000
"""Where others hold one part in so many that they bought slowly, trading was open since the pools were
full."""

MOST_LAUNCH_BUYERS = 2_000
"""Of so many the launch's buys are told: of those who bought the most, so that dust hides nobody."""


MOST_TXS = 8
"""Of so many transactions a wallet's buys are told: of the first, and of those it bought the most in."""


@dataclass(frozen=True, slots=True)
class LaunchBuy:
    """What a wallet bought in the launch window, and the transaction of its first buy there. ``txs``: of its
    buys there, this one first; empty: only this one is known."""

    wallet: Address
    bought_raw: int
    tx_hash: TxHash
    block_number: int
    txs: tuple[TxHash, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchBuys:
    """Where the token's launch was, and who bought in it, in the order of their first buys, insiders too.
    ``left_out``: how many more wallets bought, each less than all of these; one that comes again after it
    was left out counts again."""

    block_number: int
    at_s: int
    buys: tuple[LaunchBuy, ...]
    left_out: int = 0


_Txs = tuple[tuple[TxHash, int], ...]
"""Transactions, and how much was bought in each."""

_Buy = tuple[int, _Txs, int]


@dataclass(slots=True)
class Window:
    """Buys from a block on. ``bought_raw``: of all wallets but insiders. ``buys``: bought, transactions, the
    first one's block, by wallet."""

    number: int
    at_s: int
    bought_raw: int = 0
    buys: dict[Address, _Buy] = field(default_factory=dict)
    left_out: int = 0

    def holds(self, block_number: int) -> bool:
        """Whether the block is in it."""
        return self.number <= block_number <= self.number + WINDOW_BLOCKS

    def add(self, wallet: Address, amount_raw: int, txs: _Txs, block_number: int) -> None:
        """What one wallet bought, if it is in the window. Up to twice as many wallets are kept as are told:
        so the smallest need not be looked for at every buy."""
        if not self.holds(block_number):
            return
        had = self.buys.get(wallet)
        if had is not None:
            self.buys[wallet] = (had[0] + amount_raw, _both(had[1], txs), had[2])
            return
        self.buys[wallet] = (amount_raw, txs, block_number)
        if len(self.buys) > 2 * MOST_LAUNCH_BUYERS:
            kept = self.biggest()
            self.left_out += len(self.buys) - len(kept)
            self.buys = kept

    def biggest(self) -> dict[Address, _Buy]:
        """Those that are told; of equals the first."""
        if len(self.buys) <= MOST_LAUNCH_BUYERS:
            return self.buys
        ranked = sorted(self.buys, key=lambda wallet: -self.buys[wallet][0])[:MOST_LAUNCH_BUYERS]
        kept = set(ranked)
        return {wallet: buy for wallet, buy in self.buys.items() if wallet in kept}

    def as_launch(self) -> LaunchBuys:
        """For others."""
        kept = self.biggest()
        buys = tuple(
            LaunchBuy(wallet, amount_raw, txs[0][0], block_number, tuple(tx_hash for tx_hash, _ in txs))
            for wallet, (amount_raw, txs, block_number) in kept.items()
        )
        return LaunchBuys(self.number, self.at_s, buys, self.left_out + len(self.buys) - len(kept))

    def as_json(self) -> list[Any]:
        """All of it, for ``window_of``."""
        buys = self.buys.values()
        columns = [buy[0] for buy in buys], [_line(buy[1]) for buy in buys], [buy[2] for buy in buys]
        return [self.number, self.at_s, self.bought_raw, self.left_out, list(self.buys), *columns]


def window_of(told: Any) -> Window:
    """What ``as_json`` told. Raises ValueError or TypeError for anything else."""
    *numbers, wallets, amounts, lines, blocks = told
    number, at_s, bought_raw, left_out = wholes(numbers)
    rows = zip(wholes(amounts), map(_txs, texts(lines)), wholes(blocks), strict=True)
    buys = dict(zip(map(Address, texts(wallets)), rows, strict=True))
    return Window(number, at_s, bought_raw, buys, left_out)


def _both(had: _Txs, more: _Txs) -> _Txs:
    """Both's, in their order; of more than are told the smallest are left out, the first one never."""
    sums = dict(had)
    for tx_hash, amount_raw in more:
        sums[tx_hash] = sums.get(tx_hash, 0) + amount_raw
    if len(sums) > MOST_TXS:
        for tx_hash in sorted(list(sums)[1:], key=lambda one: sums[one])[: len(sums) - MOST_TXS]:
            del sums[tx_hash]
    return tuple(sums.items())


def _line(txs: _Txs) -> str:
    return " ".join(f"{tx_hash} {amount_raw:x}" for tx_hash, amount_raw in txs)


def _txs(line: str) -> _Txs:
    words = line.split(" ")
    amounts = [int(word, 16) for word in words[1::2]]
    return tuple(zip(map(TxHash, words[::2]), amounts, strict=True))


@dataclass(slots=True)
class Launching:
    """Looks for the launch. ``given``: its block, by a launchpad. ``found``: where it was, ``settled``: for
    good. Before it is found ``first``: from the first buy on; until it is settled ``recent``: one for each of
    the last blocks with buys, and ``lately_raw``: what was bought in all of them. ``insiders``: whose buys
    make no launch. ``outside_raw``: what others bought since the pools' block, less what they sold."""

    given: int | None
    insiders: frozenset[Address] = frozenset()
    found: Window | None = None
    settled: bool = False
    first: Window | None = None
    recent: list[Window] = field(default_factory=list)
    lately_raw: int = 0
    outside_raw: int = 0

    def go_on(self, found: Window | None, settled: bool, first: Window | None, recent: list[Window]) -> None:
        """From where it was written down."""
        self.found, self.settled, self.first, self.recent = found, settled, first, recent
        self.lately_raw = sum(window.bought_raw for window in recent)

    def note_sale(self, wallet: Address, amount_raw: int) -> None:
        """Somebody sold."""
        if not self.settled and self.found is not None and wallet not in self.insiders:
            self.outside_raw -= amount_raw

    def see(self, tx: TokenTx, buys: Sequence[WalletFlow], filled: bool, existing_raw: int) -> None:
        """One more transaction and what was bought in it. ``filled``: it put something into pools, and after
        it they have the part that makes a launch. ``existing_raw``: all there is of the token."""
        if self.found is None and self.given is not None and tx.block_number >= self.given:
            self.found, self.settled = Window(self.given, tx.at_s), True
        if self.settled:
            if buys and self.found is not None and self.found.holds(tx.block_number):
                self._add(self.found, buys, tx)
        elif self.given is None and (buys or (filled and self.found is None)):
            self._look(tx, buys, filled, existing_raw)

    def _look(self, tx: TokenTx, buys: Sequence[WalletFlow], filled: bool, existing_raw: int) -> None:
        if not self.recent or self.recent[-1].number != tx.block_number:
            oldest = tx.block_number - WINDOW_BLOCKS
            while self.recent and self.recent[0].number < oldest:
                self.lately_raw -= self.recent.pop(0).bought_raw
            self.recent.append(Window(tx.block_number, tx.at_s))
        latest = self.recent[-1]
        before = latest.bought_raw
        self._add(latest, buys, tx)
        self.lately_raw += latest.bought_raw - before
        if self.found is not None:
            if self.found.holds(tx.block_number):
                self._add(self.found, buys, tx)
        elif filled:
            self.found, self.first = _join_windows(self.recent[-1:]), None
        if self.found is not None:
            self.outside_raw += latest.bought_raw - before
            # What was bought within a window of now may be the crowd that just came in.
            slowly_raw = self.outside_raw - self.lately_raw
            is_open = existing_raw <= slowly_raw * OPEN_PART
            if existing_raw > 0 and (is_open or existing_raw <= self.found.bought_raw * LAUNCHED_PART):
                self._settle(self.found)
                return
        if 0 < existing_raw <= self.lately_raw * LAUNCHED_PART:
            bought_raw = 0
            for start in reversed(range(len(self.recent))):
                bought_raw += self.recent[start].bought_raw
                if existing_raw <= bought_raw * LAUNCHED_PART:
                    self._settle(_join_windows(self.recent[start:]))
                    return
        if self.found is None:
            if self.first is None:
                self.first = Window(tx.block_number, tx.at_s)
            if self.first.holds(tx.block_number):
                self._add(self.first, buys, tx)

    def _add(self, window: Window, buys: Iterable[WalletFlow], tx: TokenTx) -> None:
        for buy in buys:
            window.add(buy.wallet, buy.amount_raw, ((tx.tx_hash, buy.amount_raw),), tx.block_number)
            if buy.wallet not in self.insiders:
                window.bought_raw += buy.amount_raw

    def _settle(self, found: Window) -> None:
        self.go_on(found, True, None, [])

    def known_launch(self) -> LaunchBuys | None:
        """The launch, as far as it is known; before it is found the first buy stands for it."""
        window = self.found or self.first
        return None if window is None else window.as_launch()

    def number(self) -> int | None:
        """The launch's block, as far as it is known."""
        window = self.found or self.first
        return self.given if window is None else window.number


def _join_windows(windows: Sequence[Window]) -> Window:
    """From the first of these on, what was bought in all of them."""
    joined = Window(windows[0].number, windows[0].at_s)
    for window in windows:
        joined.left_out += window.left_out
        joined.bought_raw += window.bought_raw
        for wallet, buy in window.buys.items():
            joined.add(wallet, *buy)
    return joined
