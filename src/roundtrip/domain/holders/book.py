"""The holder book: a fold of all transfers of a token, with each address's balance and how it was acquired.
Pure and exact: the same transfers make the same book, in whatever batches, and a book that was saved and
loaded continues as if it had not been."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from roundtrip.domain.base.live_counter import HolderMinutes
from roundtrip.domain.base.types import BURN_ADDRESSES, ZERO_ADDRESS, Address, BlockRef, TxHash

from .book_packing import pack, read_ints, read_texts, unpack
from .columns import HolderColumns as HolderColumns
from .columns import columns_of, read_holdings
from .deployer import SOURCES, Maker
from .hourly_tops import HourlyTops, Leaders, TopShare, read_hours
from .insider_ledger import InsiderLedger as InsiderLedger
from .insider_ledger import record_flow
from .launch_window import LAUNCHED_PART, Launching, read_window
from .launch_window import WINDOW_BLOCKS as WINDOW_BLOCKS
from .launch_window import LaunchBuy as LaunchBuy
from .launch_window import LaunchBuys as LaunchBuys
from .router_parking import ParkedStock, read_parked
from .token_flows import NonWallets, PaidBuy, TokenTx, VenueFill, WalletFlow, trace_transaction

Worth = Callable[[Address, int, int], int | None]
"""The value of a quote amount in millionths of a dollar, from (quote, raw amount, block number). None: not
known."""


@dataclass(frozen=True, slots=True)
class BookStart:
    """What a book starts with. ``first_number``: the token's first block. ``launch_number``: the launch block
    that a launchpad reported; None: the fold finds it. ``insiders``: deployer and creators, as far as known,
    as in ``maker``. ``venues``: every venue whose fills are read, by ``VenueFill.at``; if it changes for
    blocks that were read already, the book is begun again."""

    token: Address
    places: NonWallets
    venues: frozenset[str]
    first_number: int
    launch_number: int | None
    insiders: frozenset[Address]
    maker: Maker | None = None


@dataclass(slots=True)
class HolderBook:
    """The fold. ``block``: every transfer up to its end is included; None: none was read. ``transfers``: how
    many; ``unreadable``: logs of the topic that are not ERC-20 transfers. ``wallets``: every address in a
    transfer above zero, also pools and burn addresses; the zero address's balance is minus the existing
    amount. ``ledgers``: one per insider; ``moved_to``: how much of an insider's tokens each counterparty
    holds. ``minted_into_pools_raw``: minted directly into pools after the token's first block.
    ``claimed_raw``: ever bought in v4 pools and left in their manager, as a claim or as liquidity; transfers
    do not tell the owner. ``parked``: see ``ParkedStock``. ``lost_venues``: venues that are no longer known,
    with the block up to which their fills are included."""

    beginning: BookStart
    block: BlockRef | None = None
    transfers: int = 0
    unreadable: int = 0
    wallets: dict[Address, HolderColumns] = field(default_factory=dict)
    ledgers: dict[Address, InsiderLedger] = field(default_factory=dict)
    launching: Launching = field(init=False)
    minutes: HolderMinutes = field(default_factory=HolderMinutes)
    hours: HourlyTops = field(default_factory=HourlyTops)
    leaders: Leaders = field(default_factory=Leaders, repr=False, compare=False)
    in_pools_raw: int = 0
    holder_count: int = 0
    minted_into_pools_raw: int = 0
    claimed_raw: int = 0
    moved_to: dict[Address, dict[Address, int]] = field(default_factory=dict)
    parked: ParkedStock = field(default_factory=ParkedStock)
    lost_venues: dict[str, int] = field(default_factory=dict)
    _non_wallets: frozenset[Address] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        beginning = self.beginning
        self.launching = Launching(beginning.launch_number, beginning.insiders)
        places = beginning.places
        self._non_wallets = places.pools | places.beside | BURN_ADDRESSES | {beginning.token}
        for insider in sorted(beginning.insiders):
            self.ledgers.setdefault(insider, InsiderLedger())
            self.moved_to.setdefault(insider, {})

    def fold(self, tx: TokenTx, worth: Worth) -> None:
        """Adds a transaction, which must be later than all before it. Transfers of zero and to oneself are
        counted and otherwise ignored."""
        self.transfers += len(tx.moves)
        if tx.moves:
            self._begin_hour(tx.at_s // 3600)
        in_pools_raw = self.in_pools_raw
        filled = self._apply_moves(tx)
        flows, paid, claimed_raw = trace_transaction(tx, self.beginning.places)
        self.claimed_raw += claimed_raw
        if self.parked.stocks:
            flows = self._attribute_fetched(flows, tx.block_number)
        buys = self._apply_flows(flows, tx.at_s)
        if paid:
            self._apply_costs(tx, paid, worth)
        existing_raw = self._existing_raw() if filled or buys else 0
        if filled and not self.launching.is_final:
            bought_raw = sum(fill.token_raw if fill.buys else -fill.token_raw for fill in tx.fills)
            added_raw = self.in_pools_raw - in_pools_raw + bought_raw
            self.launching.note_liquidity(tx.block_number, added_raw, existing_raw)
        filled = filled and 0 < existing_raw <= self.in_pools_raw * LAUNCHED_PART
        launching = self.launching
        if buys or filled or (launching.window is None and launching.known_number is not None):
            buys = [buy for buy in buys if buy.wallet != self.beginning.token]
            moved_to = () if launching.is_final else tuple(self.moved_to.values())
            handed = [buy.wallet for buy in buys if any(buy.wallet in wallets for wallets in moved_to)]
            launching.add_transaction(tx, buys, filled, existing_raw, handed)
        if tx.moves:
            self.minutes.put(tx.at_s // 60, self.holder_count)

    def _begin_hour(self, hour: int) -> None:
        """Records what the biggest wallets held when the hour before this one ended."""
        hours = self.hours
        if hours.newest is not None and hour > hours.newest:
            hours.put(hours.newest, self.top_share())
        hours.newest = hour

    def _apply_moves(self, tx: TokenTx) -> bool:
        """Updates the balances. Returns whether anything went into a pool."""
        wallets, pools, non_wallets = self.wallets, self.beginning.places.pools, self._non_wallets
        note_balance = self.leaders.note_balance
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
            giver_raw, taker_raw = giver.balance_raw, taker.balance_raw
            giver.balance_raw = giver_raw - amount
            taker.balance_raw = taker_raw + amount
            note_balance(recipient, taker_raw + amount)
            if 0 < giver_raw <= amount and sender not in non_wallets:
                self.holder_count -= 1
            if -amount < taker_raw <= 0 and recipient not in non_wallets:
                self.holder_count += 1
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

    def _apply_flows(self, flows: list[WalletFlow], at_s: int) -> list[WalletFlow]:
        """Adds the wallets' flows, and returns the buys among them."""
        buys = []
        for flow in flows:
            kind, wallet, _, amount = flow
            holding = self.wallets[wallet]
            received = 0
            if kind == "got" or kind == "minted":
                received = amount
            elif kind == "bought":
                received = amount
                holding.bought_raw += amount
                if holding.first_buy_s is None:
                    holding.first_buy_s = at_s
                buys.append(flow)
            elif kind == "sold":
                holding.sold_raw += amount
                self.launching.note_sale(wallet, amount)
            elif kind == "pooled":
                holding.pooled_raw += amount
            elif kind == "withdrawn":
                received = max(amount - holding.pooled_raw, 0)
                holding.pooled_raw -= amount - received
            holding.received_raw += received
            if wallet in self.ledgers:
                moved_to = self.moved_to.setdefault(wallet, {})
                record_flow(self.ledgers[wallet], moved_to, flow, received, holding.pooled_raw)
        return buys

    def _apply_costs(self, tx: TokenTx, paid: Sequence[PaidBuy], worth: Worth) -> None:
        """Adds each buyer's share of the cost of the fills. What stays at an address of ``places.beside`` is
        parked there."""
        beside = self.beginning.places.beside
        priced: tuple[VenueFill, ...] | None = None
        total_cost: int | None = None
        for hand, fills, start, end, of_raw in paid:
            if fills is not priced:
                priced, total_cost = fills, _cost(fills, tx.block_number, worth)
            cost = total_cost
            if cost is not None and end - start < of_raw:
                # Cut by the running sum, so that the shares add up to the whole.
                cost = cost * end // of_raw - cost * start // of_raw
            if hand in beside:
                self.parked.put(tx.block_number, hand, end - start, cost)
            elif hand in self.wallets:
                _add_cost(self.wallets[hand], cost)

    def _attribute_fetched(self, flows: list[WalletFlow], block_number: int) -> list[WalletFlow]:
        """The flows, with tokens that a wallet fetched from where they were parked as bought by it."""
        attributed = []
        for flow in flows:
            kind, wallet, other, amount = flow
            fetched = None
            if kind == "got" and other is not None:
                fetched = self.parked.take(block_number, other, amount)
            if fetched is None:
                attributed.append(flow)
                continue
            raw, cost = fetched
            attributed.append(WalletFlow("bought", wallet, None, raw))
            _add_cost(self.wallets[wallet], cost)
            if amount > raw:
                attributed.append(WalletFlow("got", wallet, other, amount - raw))
        return attributed

    def add_venues(self, venues: frozenset[str], places: NonWallets) -> None:
        """Adds venues that were not known and had no trades so far: from here on they are not wallets."""
        start = self.beginning
        pools = start.places.pools | places.pools
        beside = (start.places.beside | places.beside) - pools
        for at in (pools | beside) - self._non_wallets:
            holding = self.wallets.get(at)
            self.holder_count -= holding is not None and holding.balance_raw > 0
        for at in pools - start.places.pools:
            holding = self.wallets.get(at)
            self.in_pools_raw += 0 if holding is None else holding.balance_raw
        self._non_wallets |= pools | beside
        self.beginning = replace(start, venues=start.venues | venues, places=NonWallets(pools, beside))
        self.lost_venues = {at: number for at, number in self.lost_venues.items() if at not in venues}

    def drop_venues(self, venues: Mapping[str, int]) -> None:
        """Removes venues that are no longer known, given the block up to which their fills are included.
        Their addresses stay non-wallets."""
        self.beginning = replace(self.beginning, venues=self.beginning.venues - venues.keys())
        self.lost_venues |= venues

    def advance_to(self, block: BlockRef) -> None:
        """Marks everything up to the end of this block as folded. Raises ValueError if the block is before
        the current one."""
        if self.block is not None and block.number < self.block.number:
            raise ValueError("a book does not go back")
        self.block = block

    def launch(self, related: Collection[Address] = ()) -> LaunchBuys | None:
        """A launchpad's launch block, with the time of the first transfer in it or after. Else the first buy,
        or the first rush of buys, as ``launch_window`` explains; until then the first block by which pools
        held a hundredth. ``related``: wallets that the deployer paid. None: none of these yet."""
        return self.launching.known_launch(related, self._existing_raw())

    def launch_is_over(self) -> bool:
        """Whether the launch is final and its window was read to the end."""
        last_number = self.launching.last_number()
        return last_number is not None and self.block is not None and self.block.number >= last_number

    @property
    def sold_by_token_raw(self) -> int:
        """What the token's own address sold: its taxes, or anything else it holds."""
        holding = self.wallets.get(self.beginning.token)
        return 0 if holding is None else holding.sold_raw

    def holders(self) -> int:
        """The number of wallets with a balance by the logs, without pools, the machinery beside them, burn
        addresses and the token itself."""
        return self.holder_count

    def holders_at(self, at_s: int) -> int | None:
        """The number of holders at the end of that minute, kept for eight days; None: before the token's
        first transfer, or no longer kept."""
        return self.minutes.at(at_s // 60)

    def top_share(self) -> TopShare:
        """What the ten biggest wallets hold by the logs, without pools, the machinery beside them, burn
        addresses and the token itself; and the amount that exists."""
        top_raw = self.leaders.top_raw(self.wallets, self._non_wallets)
        return TopShare(top_raw, self._existing_raw())

    def _existing_raw(self) -> int:
        """The amount that exists by the logs; 0: they report no minting."""
        zero = self.wallets.get(ZERO_ADDRESS)
        return 0 if zero is None else -zero.balance_raw

    def top_share_at(self, at_s: int) -> TopShare | None:
        """As ``top_share``, at the end of that hour, kept for eight days; None: before the token's first
        transfer, or no longer kept."""
        hour, newest = at_s // 3600, self.hours.newest
        return self.top_share() if newest is not None and hour >= newest else self.hours.at(hour)


def _cost(fills: Sequence[VenueFill], block_number: int, worth: Worth) -> int | None:
    cost = 0
    for fill in fills:
        fill_cost = worth(fill.quote, fill.quote_raw, block_number)
        if fill_cost is None:
            return None
        cost += fill_cost
    return cost


def _add_cost(holding: HolderColumns, cost: int | None) -> None:
    if cost is None or holding.spent_micro_usd is None:
        holding.spent_micro_usd = None
    else:
        holding.spent_micro_usd += cost


# --- as bytes -----------------------------------------------------------------------------------------

_VERSION = 7


def dump(book: HolderBook) -> bytes:
    """The book as compressed bytes; equal books make equal bytes."""
    addresses = sorted(book.wallets)
    holdings = [book.wallets[address] for address in addresses]
    return pack(_header_as_json(book), addresses, columns_of(holdings))


def load(data: bytes) -> HolderBook:
    """Decodes ``dump``. Raises ValueError for anything else, also for another version: then the token's
    transfers are read again."""
    header, addresses, columns = unpack(data)
    if read_ints([header.get("version")]) != [_VERSION]:
        raise ValueError("a book of another version")
    try:
        book = _read_header(header)
        book.wallets.update(zip(addresses, read_holdings(columns), strict=True))
        book.leaders.forget()
        # Anything missing, added or repeated in the bytes makes a difference here.
        if len(book.wallets) != len(addresses) or _header_as_json(book) != header:
            raise ValueError("no holder book")
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no holder book") from error
    return book


def _header_as_json(book: HolderBook) -> dict[str, Any]:
    """Everything but the wallets, as JSON returns it."""
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
        "counts": [book.transfers, book.unreadable, book.in_pools_raw, book.holder_count],
        "sums": [book.minted_into_pools_raw, book.claimed_raw],
        "moved_to": book.moved_to,
        "parked": book.parked.as_json(),
        "lost_venues": book.lost_venues,
        "settled": launching.is_final,
        "outside_raw": launching.outside_raw,
        "ledgers": {insider: list(astuple(ledger)) for insider, ledger in book.ledgers.items()},
        "found": None if launching.window is None else launching.window.as_json(),
        "first": None if launching.first_buys is None else launching.first_buys.as_json(),
        "recent": [window.as_json() for window in launching.recent_windows],
        "quiet": [[wallet, window.as_json()] for wallet, window in launching.quiet.items()],
        "large": None if launching.large is None else launching.large.as_json(),
        "opened": launching.opened_number,
        "minutes": [book.minutes.numbers, book.minutes.counts],
        "hours": book.hours.as_json(),
    }


def _read_header(header: dict[str, Any]) -> HolderBook:
    launch_number, block, window, first = (
        header[name] for name in ("launch_number", "block", "found", "first")
    )
    token, first_number = read_texts([header["token"]])[0], read_ints([header["first_number"]])[0]
    beginning = BookStart(
        Address(token),
        NonWallets(_read_addresses(header["pools"]), _read_addresses(header["beside"])),
        frozenset(read_texts(header["venues"])),
        first_number,
        None if launch_number is None else read_ints([launch_number])[0],
        _read_addresses(header["insiders"]),
        _read_maker(header["maker"]),
    )
    book = HolderBook(beginning)
    if block is not None:
        number, block_hash, timestamp_s = block
        book.block = BlockRef(
            read_ints([number])[0], read_texts([block_hash])[0], read_ints([timestamp_s])[0]
        )
    book.transfers, book.unreadable, book.in_pools_raw, book.holder_count = read_ints(header["counts"])
    book.ledgers = {
        Address(insider): InsiderLedger(*read_ints(sums)) for insider, sums in header["ledgers"].items()
    }
    book.minted_into_pools_raw, book.claimed_raw = read_ints(header["sums"])
    book.moved_to = {
        Address(insider): dict(zip(map(Address, moved_to), read_ints(moved_to.values()), strict=True))
        for insider, moved_to in header["moved_to"].items()
    }
    book.parked = read_parked(header["parked"])
    lost_venues = header["lost_venues"]
    book.lost_venues = dict(zip(lost_venues, read_ints(lost_venues.values()), strict=True))
    if type(header["settled"]) is not bool:
        raise ValueError("no holder book")
    book.launching.restore(
        None if window is None else read_window(window),
        header["settled"],
        None if first is None else read_window(first),
        [read_window(recent) for recent in header["recent"]],
    )
    (book.launching.outside_raw,) = read_ints([header["outside_raw"]])
    wallets, windows = zip(*header["quiet"], strict=True) if header["quiet"] else ((), ())
    book.launching.quiet = dict(
        zip(map(Address, read_texts(wallets)), map(read_window, windows), strict=True)
    )
    large = header["large"]
    book.launching.large = None if large is None else read_window(large)
    opened = header["opened"]
    book.launching.opened_number = None if opened is None else read_ints([opened])[0]
    numbers, counts = header["minutes"]
    if len(numbers) != len(counts):
        raise ValueError("no holder book")
    book.minutes = HolderMinutes(read_ints(numbers), read_ints(counts))
    book.hours = read_hours(header["hours"])
    return book


def _maker_as_json(maker: Maker) -> list[Any]:
    # As JSON returns it: no tuples.
    return [maker.deployer, maker.source, list(maker.creators), maker.tx_hash]


def _read_maker(encoded: Any) -> Maker | None:
    if encoded is None:
        return None
    deployer, source, creators, tx_hash = encoded
    if source not in SOURCES or not (tx_hash is None or type(tx_hash) is str):
        raise ValueError("no holder book")
    creator_addresses = tuple(Address(creator) for creator in read_texts(creators))
    hash_or_none = None if tx_hash is None else TxHash(tx_hash)
    return Maker(Address(read_texts([deployer])[0]), source, creator_addresses, hash_or_none)


def _read_addresses(encoded: Any) -> frozenset[Address]:
    return frozenset(Address(address) for address in read_texts(encoded))
