"""Everything a token's transfers tell, folded: who has how much, and how they came by it. Pure and exact: the
same transfers make the same book, however they were cut into batches, and a book that was written down and
read again goes on as if it had not been.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from roundtrip.domain.base.live_counter import HolderMinutes
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, BlockRef, TxHash

from .book_packing import pack, texts, unpack, wholes
from .columns import HolderColumns as HolderColumns
from .columns import columns_of, holdings_of
from .deployer import SOURCES, Maker
from .insider_ledger import InsiderLedger as InsiderLedger
from .insider_ledger import note
from .launch_window import LAUNCHED_PART, Launching, window_of
from .launch_window import WINDOW_BLOCKS as WINDOW_BLOCKS
from .launch_window import LaunchBuy as LaunchBuy
from .launch_window import LaunchBuys as LaunchBuys
from .router_parking import ParkedStock, parked_of
from .token_flows import NonWallets, PaidBuy, TokenTx, VenueFill, WalletFlow, deeds

Worth = Callable[[Address, int, int], int | None]
"""What an amount of a quote was worth in millionths of a dollar: (quote, raw amount, block number). None: not
known."""


@dataclass(frozen=True, slots=True)
class BookStart:
    """What a book is begun with. ``first_number``: the token's first block. ``launch_number``: its launch's,
    where a launchpad told it; None: found in the fold. ``insiders``: deployer and creator, as far as known,
    whom ``maker`` names. ``venues``: every place whose fills are read, by ``Fill.at``: where it changes for
    what was read already, the book is begun anew."""

    token: Address
    places: NonWallets
    venues: frozenset[str]
    first_number: int
    launch_number: int | None
    insiders: frozenset[Address]
    maker: Maker | None = None


@dataclass(slots=True)
class HolderBook:
    """The fold. ``block``: every transfer up to its end is in it; None: none was read. ``transfers``: how
    many there were; ``unreadable``: logs of the topic that are no ERC-20 transfer. ``wallets``: whoever
    appears in a transfer of anything, pools and burn addresses too: the zero address has less than zero, by
    as much as there is of the token. ``ledgers``: one for every insider; ``moved_to``: what of his is with
    whom. ``minted_into_pools_raw``: after the token's first block and past every hand. ``claimed_raw``: ever
    bought in v4 pools and left in their manager, as a claim or as liquidity: whose, the transfers do not
    tell. ``parked``: see there. ``lost_venues``: of whom nobody knows any more, and up to which block their
    fills are in it."""

    beginning: BookStart
    block: BlockRef | None = None
    transfers: int = 0
    unreadable: int = 0
    wallets: dict[Address, HolderColumns] = field(default_factory=dict)
    ledgers: dict[Address, InsiderLedger] = field(default_factory=dict)
    launching: Launching = field(init=False)
    minutes: HolderMinutes = field(default_factory=HolderMinutes)
    in_pools_raw: int = 0
    held_by: int = 0
    minted_into_pools_raw: int = 0
    claimed_raw: int = 0
    moved_to: dict[Address, dict[Address, int]] = field(default_factory=dict)
    parked: ParkedStock = field(default_factory=ParkedStock)
    lost_venues: dict[str, int] = field(default_factory=dict)
    _no_wallets: frozenset[Address] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        beginning = self.beginning
        self.launching = Launching(beginning.launch_number, beginning.insiders)
        places = beginning.places
        self._no_wallets = places.pools | places.beside | BURN_ADDRESSES | {beginning.token}
        for insider in sorted(beginning.insiders):
            self.ledgers.setdefault(insider, InsiderLedger())
            self.moved_to.setdefault(insider, {})

    def fold(self, tx: TokenTx, worth: Worth) -> None:
        """One more transaction, later than all before it. Transfers of nothing and to oneself are counted
        and tell nothing."""
        self.transfers += len(tx.moves)
        filled = self._balance(tx)
        done, paid, claimed_raw = deeds(tx, self.beginning.places)
        self.claimed_raw += claimed_raw
        if self.parked.stocks:
            done = self._attribute_fetched(done, tx.block_number)
        buys = self._enter(done, tx.at_s)
        if paid:
            self._spend(tx, paid, worth)
        existing_raw = 0
        if (filled or buys) and ZERO_ADDRESS in self.wallets:
            existing_raw = -self.wallets[ZERO_ADDRESS].balance_raw
        filled = filled and 0 < existing_raw <= self.in_pools_raw * LAUNCHED_PART
        launching = self.launching
        if buys or filled or (launching.found is None and launching.given is not None):
            token = self.beginning.token
            launching.see(tx, [buy for buy in buys if buy.wallet != token], filled, existing_raw)
        if tx.moves:
            self.minutes.put(tx.at_s // 60, self.held_by)

    def _balance(self, tx: TokenTx) -> bool:
        """Who has how much now. Tells whether anything went into a pool."""
        wallets, pools, no_wallets = self.wallets, self.beginning.places.pools, self._no_wallets
        filled = False
        for sender, recipient, amount in tx.moves:
            if amount <= 0 or sender == recipient:
                continue
            giver = wallets.get(sender)
            if giver is None:
                giver = wallets[sender] = HolderColumns()
            taker = wallets.get(recipient)
            if taker is None:
                taker = wallets[recipient] = HolderColumns(first_s=tx.at_s)
            elif not taker.first_s:
                taker.first_s = tx.at_s
            had, has = giver.balance_raw, taker.balance_raw
            giver.balance_raw = had - amount
            taker.balance_raw = has + amount
            if 0 < had <= amount and sender not in no_wallets:
                self.held_by -= 1
            if -amount < has <= 0 and recipient not in no_wallets:
                self.held_by += 1
            if recipient == ZERO_ADDRESS:
                taker.received_raw += amount
            if sender in pools:
                self.in_pools_raw -= amount
            if recipient in pools:
                self.in_pools_raw += amount
                filled = True
                if sender == ZERO_ADDRESS and tx.block_number > self.beginning.first_number:
                    self.minted_into_pools_raw += amount
        return filled

    def _enter(self, done: list[WalletFlow], at_s: int) -> list[WalletFlow]:
        """What the wallets did, and of it what they bought."""
        buys = []
        for flow in done:
            what, wallet, _, amount = flow
            holding = self.wallets[wallet]
            received = 0
            if what == "got" or what == "minted":
                received = amount
            elif what == "bought":
                received = amount
                holding.bought_raw += amount
                if holding.first_buy_s is None:
                    holding.first_buy_s = at_s
                buys.append(flow)
            elif what == "sold":
                holding.sold_raw += amount
                self.launching.note_sale(wallet, amount)
            elif what == "pooled":
                holding.pooled_raw += amount
            elif what == "withdrawn":
                received = max(amount - holding.pooled_raw, 0)
                holding.pooled_raw -= amount - received
            holding.received_raw += received
            if wallet in self.ledgers:
                moved_to = self.moved_to.setdefault(wallet, {})
                note(self.ledgers[wallet], moved_to, flow, received, holding.pooled_raw)
        return buys

    def _spend(self, tx: TokenTx, paid: Sequence[PaidBuy], worth: Worth) -> None:
        """Every buyer's share of what the fills cost that it was bought by. What stays with an address beside
        is parked there."""
        beside = self.beginning.places.beside
        priced: tuple[VenueFill, ...] | None = None
        all_of_it: int | None = None
        for hand, fills, start, end, of_raw in paid:
            if fills is not priced:
                priced, all_of_it = fills, _cost(fills, tx.block_number, worth)
            cost = all_of_it
            if cost is not None and end - start < of_raw:
                # Cut by the running sum, so that the shares add up to the whole.
                cost = cost * end // of_raw - cost * start // of_raw
            if hand in beside:
                self.parked.put(tx.block_number, hand, end - start, cost)
            elif hand in self.wallets:
                _spent(self.wallets[hand], cost)

    def _attribute_fetched(self, done: list[WalletFlow], block_number: int) -> list[WalletFlow]:
        """The same, with what was fetched where it was parked bought by whoever fetched it."""
        told = []
        for flow in done:
            what, wallet, other, amount = flow
            fetched = None
            if what == "got" and other is not None:
                fetched = self.parked.take(block_number, other, amount)
            if fetched is None:
                told.append(flow)
                continue
            raw, cost = fetched
            told.append(WalletFlow("bought", wallet, None, raw))
            _spent(self.wallets[wallet], cost)
            if amount > raw:
                told.append(WalletFlow("got", wallet, other, amount - raw))
        return told

    def learn(self, venues: frozenset[str], places: NonWallets) -> None:
        """Places that were not known, and where nothing was traded so far: from here on what is there is
        nobody's."""
        begun = self.beginning
        pools = begun.places.pools | places.pools
        beside = (begun.places.beside | places.beside) - pools
        for at in (pools | beside) - self._no_wallets:
            holding = self.wallets.get(at)
            self.held_by -= holding is not None and holding.balance_raw > 0
        for at in pools - begun.places.pools:
            holding = self.wallets.get(at)
            self.in_pools_raw += 0 if holding is None else holding.balance_raw
        self._no_wallets |= pools | beside
        self.beginning = replace(begun, venues=begun.venues | venues, places=NonWallets(pools, beside))
        self.lost_venues = {at: number for at, number in self.lost_venues.items() if at not in venues}

    def lose(self, venues: Mapping[str, int]) -> None:
        """Places that nobody knows of any more, and up to which block their fills are in it. They stay
        nobody's wallets."""
        self.beginning = replace(self.beginning, venues=self.beginning.venues - venues.keys())
        self.lost_venues |= venues

    def advance_to(self, block: BlockRef) -> None:
        """Everything up to the end of this block is folded. Raises ValueError for a block before the one
        that was reached."""
        if self.block is not None and block.number < self.block.number:
            raise ValueError("a book does not go back")
        self.block = block

    def launch(self) -> LaunchBuys | None:
        """A launchpad's launch block, with the time of the first transfer in it or after. Else the block
        from which on one hundredth of what there is was bought within a window; until then the first by
        which pools had a hundredth; until then its first buy. Why so: see ``launching``. None: none of
        these yet."""
        return self.launching.known_launch()

    def launch_is_over(self) -> bool:
        """Whether the launch is found for good and its window read to the end."""
        number = self.launching.number() if self.launching.settled else None
        return number is not None and self.block is not None and self.block.number >= number + WINDOW_BLOCKS

    @property
    def sold_by_token_raw(self) -> int:
        """What the token's own address sold: its taxes, or whatever else it has."""
        own = self.wallets.get(self.beginning.token)
        return 0 if own is None else own.sold_raw

    def holders(self) -> int:
        """How many wallets have some of it by the logs; pools, what is beside them, burn addresses and the
        token itself are no wallets."""
        return self.held_by

    def holders_at(self, at_s: int) -> int | None:
        """How many there were at the end of that minute; kept for eight days, None before the token's first
        transfer or beyond."""
        return self.minutes.at(at_s // 60)


def _cost(fills: Sequence[VenueFill], block_number: int, worth: Worth) -> int | None:
    cost = 0
    for fill in fills:
        one = worth(fill.quote, fill.quote_raw, block_number)
        if one is None:
            return None
        cost += one
    return cost


def _spent(holding: HolderColumns, cost: int | None) -> None:
    if cost is None or holding.spent_micro_usd is None:
        holding.spent_micro_usd = None
    else:
        holding.spent_micro_usd += cost


# --- as bytes -----------------------------------------------------------------------------------------

_VERSION = 4


def dump(book: HolderBook) -> bytes:
    """The book as bytes, compressed; equal books make equal bytes."""
    addresses = sorted(book.wallets)
    holdings = [book.wallets[address] for address in addresses]
    return pack(_as_json(book), addresses, columns_of(holdings))


def load(data: bytes) -> HolderBook:
    """What ``dump`` wrote. Raises ValueError for anything else, another version's too."""
    told, addresses, columns = unpack(data)
    if wholes([told.get("version")]) != [_VERSION]:
        raise ValueError("a book of another version")
    try:
        book = _read(told)
        book.wallets.update(zip(addresses, holdings_of(columns), strict=True))
        # Whatever was left out, added or twice in the bytes would be missing or different now.
        if len(book.wallets) != len(addresses) or _as_json(book) != told:
            raise ValueError("no holder book")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no holder book") from error
    return book


def _as_json(book: HolderBook) -> dict[str, Any]:
    """Everything but the wallets, as JSON has it."""
    beginning, launching, block = book.beginning, book.launching, book.block
    return {
        "version": _VERSION,
        "token": beginning.token,
        "pools": sorted(beginning.places.pools),
        "beside": sorted(beginning.places.beside),
        "venues": sorted(beginning.venues),
        "insiders": sorted(beginning.insiders),
        "maker": None if beginning.maker is None else _maker_as_json(beginning.maker),
        "first_number": beginning.first_number,
        "launch_number": beginning.launch_number,
        "block": None if block is None else list(astuple(block)),
        "counts": [book.transfers, book.unreadable, book.in_pools_raw, book.held_by],
        "sums": [book.minted_into_pools_raw, book.claimed_raw],
        "moved_to": book.moved_to,
        "parked": book.parked.as_json(),
        "lost_venues": book.lost_venues,
        "settled": launching.settled,
        "outside_raw": launching.outside_raw,
        "ledgers": {insider: list(astuple(ledger)) for insider, ledger in book.ledgers.items()},
        "found": None if launching.found is None else launching.found.as_json(),
        "first": None if launching.first is None else launching.first.as_json(),
        "recent": [window.as_json() for window in launching.recent],
        "minutes": [book.minutes.numbers, book.minutes.counts],
    }


def _read(told: dict[str, Any]) -> HolderBook:
    launch_number, block, found, first = (told[name] for name in ("launch_number", "block", "found", "first"))
    token, first_number = texts([told["token"]])[0], wholes([told["first_number"]])[0]
    beginning = BookStart(
        Address(token),
        NonWallets(_addresses(told["pools"]), _addresses(told["beside"])),
        frozenset(texts(told["venues"])),
        first_number,
        None if launch_number is None else wholes([launch_number])[0],
        _addresses(told["insiders"]),
        _maker(told["maker"]),
    )
    book = HolderBook(beginning)
    if block is not None:
        number, block_hash, timestamp_s = block
        book.block = BlockRef(wholes([number])[0], texts([block_hash])[0], wholes([timestamp_s])[0])
    book.transfers, book.unreadable, book.in_pools_raw, book.held_by = wholes(told["counts"])
    book.ledgers = {Address(who): InsiderLedger(*wholes(sums)) for who, sums in told["ledgers"].items()}
    book.minted_into_pools_raw, book.claimed_raw = wholes(told["sums"])
    book.moved_to = {
        Address(who): dict(zip(map(Address, to), wholes(to.values()), strict=True))
        for who, to in told["moved_to"].items()
    }
    book.parked = parked_of(told["parked"])
    lost = told["lost_venues"]
    book.lost_venues = dict(zip(lost, wholes(lost.values()), strict=True))
    if type(told["settled"]) is not bool:
        raise ValueError("no holder book")
    book.launching.go_on(
        None if found is None else window_of(found),
        told["settled"],
        None if first is None else window_of(first),
        [window_of(window) for window in told["recent"]],
    )
    (book.launching.outside_raw,) = wholes([told["outside_raw"]])
    numbers, counts = told["minutes"]
    if len(numbers) != len(counts):
        raise ValueError("no holder book")
    book.minutes = HolderMinutes(wholes(numbers), wholes(counts))
    return book


def _maker_as_json(maker: Maker) -> list[Any]:
    # As JSON gives it back: no tuples.
    return [maker.deployer, maker.source, list(maker.creators), maker.tx_hash]


def _maker(told: Any) -> Maker | None:
    if told is None:
        return None
    deployer, source, creators, tx_hash = told
    if source not in SOURCES or not (tx_hash is None or type(tx_hash) is str):
        raise ValueError("no holder book")
    made = tuple(Address(one) for one in texts(creators))
    said = None if tx_hash is None else TxHash(tx_hash)
    return Maker(Address(texts([deployer])[0]), source, made, said)


def _addresses(told: Any) -> frozenset[Address]:
    return frozenset(Address(address) for address in texts(told))
