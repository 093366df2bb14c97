"""Finds a token's launch while its transfers are folded, and who bought in it.

A launchpad reports its launches. For any other token trading may open long after its pools are filled, so the
rules are, once pools hold a hundredth of the existing amount (before that there is no market to speak of, and
the launch is provisionally the first buy):

- Rush: where wallets other than insiders buy a hundredth within one window, and nobody unrelated bought
  before, the launch is the latest block from which they did.
- Quiet trading: an executed buy by an unrelated wallet proves that trading is open. The launch is the first
  such buy (the block that filled the pools, if the buy is within that window), and a later hundredth bought
  within one window is the *first large buy*: nobody is a sniper for it.
- Crowd: a dust buy long before the opening is cheap, and whoever opens trading may have a friend make one. So
  the large buy is the launch after all if it is a crowd's: if, besides the two wallets that bought most,
  others bought a thousandth in its window.
- Once others than insiders hold a thousandth that they bought slowly, trading was open, and nothing moves the
  launch any more.

Unrelated: neither an insider nor a wallet that an insider handed tokens to before; and, once that is known,
not paid by the deployer (``known_launch``). Large buys of such wallets do count: otherwise a handed-out unit
would hide a sniper.

So test buys before the opening do not move the launch forward, an early pool does not, and a single large
buyer of a token that traded before is not called a sniper. The price: whoever buys dust with a wallet that
nothing ties to the deployer, waits a window, and then snipes with one or two wallets, is not called a sniper
either. The first large buy is reported with its block and amount all the same.

A launch is an *opening*, which buyers raced for, if it is the launchpad's, if liquidity was added in its
window or at most a window before, or if it is a crowd's. Else the pools had stood open and nobody came: the
first buyer raced nobody, and there are no snipers. The price: one or two wallets that alone snipe a token
whose trading was switched on more than a window after its liquidity are not called snipers."""

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from roundtrip.domain.base.types import Address, TxHash

from .book_packing import read_ints, read_texts
from .token_flows import TokenTx, WalletFlow

WINDOW_BLOCKS = 30
"""The launch block and so many after it: three seconds on a chain that makes ten blocks a second."""

LAUNCHED_PART = 100
"""A token is launched once one part in this many of it was put into pools, or bought."""

OPEN_PART = 1_000
"""If others hold one part in this many that they bought slowly, trading was open before. If others than the
``LARGEST_BUYERS`` bought as much within a window, all of them are a crowd."""
LARGEST_BUYERS = 2
MAX_EARLY_BUYERS = 8
"""The first buy of so many unrelated wallets is kept, as the first ones may turn out to be the deployer's."""

MAX_LAUNCH_BUYERS = 2_000
"""The most buyers that a launch reports, those who bought the most, so that dust hides no buyer."""


MAX_TXS = 8
"""The most transactions reported of a wallet's buys: the first, and those with the largest amounts."""


@dataclass(frozen=True, slots=True)
class LaunchBuy:
    """What a wallet bought in the launch window, and the transaction of its first buy there. ``txs``: the
    transactions of its buys there, the first one first; empty: only ``tx_hash`` is known."""

    wallet: Address
    bought_raw: int
    tx_hash: TxHash
    block_number: int
    txs: tuple[TxHash, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchBuys:
    """The token's launch and its buyers in the order of their first buys, insiders included. ``left_out``:
    how many more wallets bought, each less than any listed one; a wallet that buys again after it was left
    out counts again. ``is_opening``: whether its buyers raced for it, so that they are snipers."""

    block_number: int
    at_s: int
    buys: tuple[LaunchBuy, ...]
    left_out: int = 0
    is_opening: bool = True


_Txs = tuple[tuple[TxHash, int], ...]
"""Transactions, with the amount bought in each."""

_Buy = tuple[int, _Txs, int]


@dataclass(slots=True)
class Window:
    """Buys from a block on. ``bought_raw``: of all wallets except insiders. ``buys``: amount, transactions
    and first block, by wallet. ``is_opening``: liquidity was added in it, or at most a window before."""

    number: int
    at_s: int
    bought_raw: int = 0
    buys: dict[Address, _Buy] = field(default_factory=dict)
    left_out: int = 0
    is_opening: bool = False

    def holds(self, block_number: int) -> bool:
        """Whether the block is in the window."""
        return self.number <= block_number <= self.number + WINDOW_BLOCKS

    def add(self, wallet: Address, amount_raw: int, txs: _Txs, block_number: int) -> None:
        """Adds what a wallet bought, if the block is in the window. Keeps up to twice as many wallets as are
        reported, so that the smallest need not be searched at every buy."""
        if not self.holds(block_number):
            return
        buy = self.buys.get(wallet)
        if buy is not None:
            self.buys[wallet] = (buy[0] + amount_raw, _merge_txs(buy[1], txs), buy[2])
            return
        self.buys[wallet] = (amount_raw, txs, block_number)
        if len(self.buys) > 2 * MAX_LAUNCH_BUYERS:
            biggest = self.biggest()
            self.left_out += len(self.buys) - len(biggest)
            self.buys = biggest

    def biggest(self) -> dict[Address, _Buy]:
        """The buys that are reported; of equals the first."""
        if len(self.buys) <= MAX_LAUNCH_BUYERS:
            return self.buys
        ranked = sorted(self.buys, key=lambda wallet: -self.buys[wallet][0])[:MAX_LAUNCH_BUYERS]
        wallets = set(ranked)
        return {wallet: buy for wallet, buy in self.buys.items() if wallet in wallets}

    def as_launch(self, is_opening: bool = True) -> LaunchBuys:
        """The window as it is reported."""
        biggest = self.biggest()
        buys = tuple(
            LaunchBuy(wallet, amount_raw, txs[0][0], block_number, tuple(tx_hash for tx_hash, _ in txs))
            for wallet, (amount_raw, txs, block_number) in biggest.items()
        )
        left_out = self.left_out + len(self.buys) - len(biggest)
        return LaunchBuys(self.number, self.at_s, buys, left_out, is_opening)

    def as_json(self) -> list[Any]:
        """The whole window, for ``read_window``."""
        buys = self.buys.values()
        columns = [buy[0] for buy in buys], [_encode_txs(buy[1]) for buy in buys], [buy[2] for buy in buys]
        numbers = [self.number, self.at_s, self.bought_raw, self.left_out, int(self.is_opening)]
        return [*numbers, list(self.buys), *columns]


def read_window(encoded: Any) -> Window:
    """Decodes ``as_json``. Raises ValueError or TypeError for anything else."""
    *numbers, wallets, amounts, lines, blocks = encoded
    number, at_s, bought_raw, left_out, is_opening = read_ints(numbers)
    rows = zip(read_ints(amounts), map(_decode_txs, read_texts(lines)), read_ints(blocks), strict=True)
    buys = dict(zip(map(Address, read_texts(wallets)), rows, strict=True))
    return Window(number, at_s, bought_raw, buys, left_out, bool(is_opening))


def _merge_txs(first: _Txs, second: _Txs) -> _Txs:
    """Both in their order. Beyond ``MAX_TXS`` the smallest are dropped, but never the first."""
    sums = dict(first)
    for tx_hash, amount_raw in second:
        sums[tx_hash] = sums.get(tx_hash, 0) + amount_raw
    if len(sums) > MAX_TXS:
        for tx_hash in sorted(list(sums)[1:], key=lambda tx_hash: sums[tx_hash])[: len(sums) - MAX_TXS]:
            del sums[tx_hash]
    return tuple(sums.items())


def _encode_txs(txs: _Txs) -> str:
    return " ".join(f"{tx_hash} {amount_raw:x}" for tx_hash, amount_raw in txs)


def _decode_txs(line: str) -> _Txs:
    words = line.split(" ")
    amounts = [int(word, 16) for word in words[1::2]]
    return tuple(zip(map(TxHash, words[::2]), amounts, strict=True))


@dataclass(slots=True)
class Launching:
    """The search for the launch. ``known_number``: the block that a launchpad reported. ``window``: the
    launch, ``is_final`` or provisional, unless ``quiet`` trading says otherwise. ``first_buys``: from the
    first buy on, while there is no ``window``. ``recent_windows``: until it is final, one for each of the
    last blocks with buys, and ``recent_raw``: what was bought in all of them. ``insiders``: wallets whose
    buys do not count. ``outside_raw``: what others bought since ``window`` began, less what they sold.
    ``quiet``: the windows that start with the first buys of unrelated wallets, in their order. ``large``: the
    first large buy after them, unless it is the launch. ``opened_number``: the last block in which liquidity
    was added, while there is no final launch."""

    known_number: int | None
    insiders: frozenset[Address] = frozenset()
    window: Window | None = None
    is_final: bool = False
    first_buys: Window | None = None
    recent_windows: list[Window] = field(default_factory=list)
    recent_raw: int = 0
    outside_raw: int = 0
    quiet: dict[Address, Window] = field(default_factory=dict)
    large: Window | None = None
    opened_number: int | None = None

    def restore(
        self, window: Window | None, is_final: bool, first_buys: Window | None, recent_windows: list[Window]
    ) -> None:
        """Restores a saved state, but for ``outside_raw``, ``quiet``, ``large`` and ``opened_number``."""
        self.window, self.is_final, self.first_buys, self.recent_windows = (
            window,
            is_final,
            first_buys,
            recent_windows,
        )
        self.recent_raw = sum(window.bought_raw for window in recent_windows)

    def note_sale(self, wallet: Address, amount_raw: int) -> None:
        """Records a sale."""
        if not self.is_final and self.window is not None and wallet not in self.insiders:
            self.outside_raw -= amount_raw

    def note_liquidity(self, block_number: int, added_raw: int, existing_raw: int) -> None:
        """Records what was put into pools, apart from sales. Less than a thousandth opens no market."""
        if self.is_final or added_raw <= 0 or existing_raw > added_raw * OPEN_PART:
            return
        self.opened_number = block_number
        for window in (self.window, self.first_buys, *self.recent_windows, *self.quiet.values()):
            if window is not None and window.holds(block_number):
                window.is_opening = True

    def add_transaction(
        self,
        tx: TokenTx,
        buys: Sequence[WalletFlow],
        filled: bool,
        existing_raw: int,
        handed: Collection[Address] = (),
    ) -> None:
        """Adds a transaction and the buys in it. ``filled``: it put tokens into pools, which now hold the
        part that makes a launch. ``existing_raw``: all there is of the token. ``handed``: buyers that an
        insider handed tokens to."""
        if self.window is None and self.known_number is not None and tx.block_number >= self.known_number:
            self.window, self.is_final = Window(self.known_number, tx.at_s, is_opening=True), True
        if self.is_final:
            for window in (self.window, self.large, *self.quiet.values()):
                if buys and window is not None:
                    self._add(window, buys, tx)
            if self.large is not None and self.large.holds(tx.block_number):
                self._check_crowd(self.large, existing_raw)
        elif self.known_number is None and (buys or (filled and self.window is None)):
            self._search(tx, buys, filled, existing_raw)
            if not self.is_final:
                self._note_early_buyers(tx, buys, handed)

    def _search(self, tx: TokenTx, buys: Sequence[WalletFlow], filled: bool, existing_raw: int) -> None:
        """Applies the rules of the module's docstring to one more transaction."""
        latest = self._window_of(tx)
        bought_before_raw = latest.bought_raw
        for window in (latest, *self.quiet.values()):
            self._add(window, buys, tx)
        self.recent_raw += latest.bought_raw - bought_before_raw
        if self.window is not None:
            self._add(self.window, buys, tx)
        elif filled:
            self.window, self.first_buys, self.quiet = _join_windows(self.recent_windows[-1:]), None, {}
            self.window.is_opening = True
        if self.window is not None:
            self.outside_raw += latest.bought_raw - bought_before_raw
            if existing_raw > 0 and existing_raw <= self.window.bought_raw * LAUNCHED_PART:
                self._finalize(self.window)
                return
            # Most buyers may have bought within the last window, so its buys do not count here.
            slowly_raw = self.outside_raw - self.recent_raw
            if existing_raw > 0 and existing_raw <= slowly_raw * OPEN_PART:
                self.restore(self.window, True, None, [])
                return
        if 0 < existing_raw <= self.recent_raw * LAUNCHED_PART:
            self._end_with(self._join_launch_windows(existing_raw), existing_raw)
        elif self.window is None:
            if self.first_buys is None:
                self.first_buys = self._begin_window(tx)
            self._add(self.first_buys, buys, tx)

    def _end_with(self, window: Window, existing_raw: int) -> None:
        """Ends the search with the first large buy: the launch, unless an unrelated wallet bought before."""
        if self.window is None or all(early.number >= window.number for early in self.quiet.values()):
            self._finalize(window)
            return
        self.restore(self.window, True, None, [])
        self.large = window
        self._check_crowd(window, existing_raw)

    def _check_crowd(self, large: Window, existing_raw: int) -> None:
        """Makes the first large buy the launch if wallets besides its largest ones bought enough."""
        if existing_raw > 0 and self._is_crowd(large, existing_raw):
            self._finalize(large)

    def _is_crowd(self, window: Window, existing_raw: int) -> bool:
        """Whether others than the ``LARGEST_BUYERS`` bought a thousandth."""
        outside = (buy[0] for wallet, buy in window.buys.items() if wallet not in self.insiders)
        beyond_raw = window.bought_raw - sum(heapq.nlargest(LARGEST_BUYERS, outside))
        return beyond_raw > 0 and existing_raw <= beyond_raw * OPEN_PART

    def _note_early_buyers(
        self, tx: TokenTx, buys: Sequence[WalletFlow], handed: Collection[Address]
    ) -> None:
        for buy in buys:
            is_known = buy.wallet in self.quiet or len(self.quiet) >= MAX_EARLY_BUYERS
            if not (is_known or buy.wallet in self.insiders or buy.wallet in handed):
                self.quiet[buy.wallet] = _join_windows(self.recent_windows[-1:])

    def _window_of(self, tx: TokenTx) -> Window:
        """The window that starts at the transaction's block; windows that are too old are dropped."""
        if not self.recent_windows or self.recent_windows[-1].number != tx.block_number:
            oldest = tx.block_number - WINDOW_BLOCKS
            while self.recent_windows and self.recent_windows[0].number < oldest:
                self.recent_raw -= self.recent_windows.pop(0).bought_raw
            self.recent_windows.append(self._begin_window(tx))
        return self.recent_windows[-1]

    def _begin_window(self, tx: TokenTx) -> Window:
        opened = self.opened_number
        is_opening = opened is not None and tx.block_number <= opened + WINDOW_BLOCKS
        return Window(tx.block_number, tx.at_s, is_opening=is_opening)

    def _join_launch_windows(self, existing_raw: int) -> Window:
        """The fewest recent windows, up to the latest, in which enough of the supply was bought."""
        bought_raw, start = 0, len(self.recent_windows)
        while start and existing_raw > bought_raw * LAUNCHED_PART:
            start -= 1
            bought_raw += self.recent_windows[start].bought_raw
        return _join_windows(self.recent_windows[start:])

    def _add(self, window: Window, buys: Iterable[WalletFlow], tx: TokenTx) -> None:
        """Adds the buys, if their block is in the window."""
        if not window.holds(tx.block_number):
            return
        for buy in buys:
            window.add(buy.wallet, buy.amount_raw, ((tx.tx_hash, buy.amount_raw),), tx.block_number)
            if buy.wallet not in self.insiders:
                window.bought_raw += buy.amount_raw

    def _finalize(self, window: Window) -> None:
        self.restore(window, True, None, [])
        self.quiet, self.large = {}, None

    def known_launch(self, related: Collection[Address] = (), existing_raw: int = 0) -> LaunchBuys | None:
        """The launch as far as it is known; before that, the window of the first buy. ``related``: wallets
        that are the deployer's own as their funder shows: an early buy of theirs does not prove that trading
        was open. ``existing_raw``: all there is of the token."""
        window = self._launch_window(related)
        if window is None:
            return None
        return window.as_launch(window.is_opening or self._is_crowd(window, existing_raw))

    def _launch_window(self, related: Collection[Address]) -> Window | None:
        window = self.window or self.first_buys
        early = next((quiet for wallet, quiet in self.quiet.items() if wallet not in related), None)
        if early is None:
            return self.large or window
        return (
            window if window is not None and window is self.window and window.holds(early.number) else early
        )

    def first_large_buy(self, related: Collection[Address] = ()) -> LaunchBuys | None:
        """The first large buy after a launch by quiet trading; insiders' buys are left out. None: there is
        none, or it is the launch or part of it."""
        launch = self._launch_window(related)
        if self.large is None or launch is None or launch is self.large or launch.holds(self.large.number):
            return None
        large = self.large.as_launch()
        return replace(large, buys=tuple(buy for buy in large.buys if buy.wallet not in self.insiders))

    def last_number(self) -> int | None:
        """The last block that may change who bought at the launch; None: there is no launch, or it is not
        final."""
        if not self.is_final:
            return None
        windows = (self.window, self.large, *self.quiet.values())
        numbers = [window.number for window in windows if window is not None]
        return max(numbers, default=0) + WINDOW_BLOCKS if numbers else None


def _join_windows(windows: Sequence[Window]) -> Window:
    """One window from the first block on, with the buys of all windows."""
    is_opening = any(window.is_opening for window in windows)
    joined = Window(windows[0].number, windows[0].at_s, is_opening=is_opening)
    for window in windows:
        joined.left_out += window.left_out
        joined.bought_raw += window.bought_raw
        for wallet, buy in window.buys.items():
            joined.add(wallet, *buy)
    return joined
