"""What the wallets of one transaction did with one token, told by the token's own transfers.

Who trades is read from where tokens went, not from who sent the transaction: a wallet bought what came to
it out of a pool and stayed, through whatever routers, aggregators and bots it passed; it sold what came from
it and ended in a pool. So several wallets that one transaction fills are several buyers.

The rules. Every hand keeps what it got in this transaction apart from what it had before, and gives away
the latest first, its own last. Pools and burn addresses are ends: what goes in is theirs, and what comes out
is the pool's, whatever went in before. What ends where it set out from is nothing, and so is what is bought
and goes into a pool through whatever hands: a bot that buys here and sells there did nothing with the token.
What is minted and put into a pool in one transaction was minted to the first wallet that had it, and is sold
or pooled by it; liquidity taken out and sold in one was the last wallet's that had it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, ZERO_ADDRESS, Address, TxHash

from .fill_matching import HOOK_TAKES_BPS as HOOK_TAKES_BPS
from .fill_matching import FillParcel, PoolOutflow, claimed_raw, match_fills, scale_to
from .fill_matching import Move as Move
from .fill_matching import VenueFill as VenueFill


class TokenTx(NamedTuple):
    """All transfers of the token in one transaction, in their order, and all fills."""

    tx_hash: TxHash
    block_number: int
    at_s: int
    moves: Sequence[Move]
    fills: Sequence[VenueFill] = ()


@dataclass(frozen=True, slots=True)
class NonWallets:
    """Addresses that are nobody's wallet. ``pools``: what lies in them is there to be bought: curves, v3
    pools, the v4 manager, the launchpad's hook. ``beside``: of the same makers: routers, lockers, escrows,
    vaults; what passes through them in a transaction was not theirs, what stays there is out of hand. The
    token's own address is in neither."""

    pools: frozenset[Address]
    beside: frozenset[Address]


MOST_LOTS = 256
"""Of so many origins one hand keeps apart what it got. Of more, the oldest half is taken to have stayed: ten
thousand wallets' tokens passed round in a ring would take for ever, and whoever wants to hide a trade behind
other hands can as well do it in two transactions."""

What = Literal["bought", "sold", "moved", "got", "pooled", "withdrawn", "burned", "minted"]
"""bought, sold: through a fill. pooled, withdrawn: into a pool and out of it without one. moved: to
``other``, who got it. minted: out of nothing."""


class WalletFlow(NamedTuple):
    """What the transaction did to one wallet, passing through netted out; ``amount_raw`` is above zero.
    ``other``: whom it was moved to or got from; got from a pool: a tax of what others bought there."""

    what: What
    wallet: Address
    other: Address | None
    amount_raw: int


class PaidBuy(NamedTuple):
    """Bought, and what for. By ``fills`` came ``of_raw`` without taxes; of it the part between ``from_raw``
    and ``to_raw`` stayed with ``hand``: a wallet, or an address beside, where others may fetch it."""

    hand: Address
    fills: tuple[VenueFill, ...]
    from_raw: int
    to_raw: int
    of_raw: int


class TransactionFlows(NamedTuple):
    """What a transaction did. ``claimed_raw``: bought in v4 pools and left in the manager."""

    flows: list[WalletFlow]
    paid: Sequence[PaidBuy] = ()
    claimed_raw: int = 0


_NOBODY = "_"
"""So begin origins that are no addresses: parcels, taxes, what was taken out of pools or minted."""
_TAKEN = Address("_taken by ")
_MINTED = "_minted to "
_TAX = "_tax of "
_PARCEL = "_parcel "

_Lot = tuple[Address, int]
_Sums = dict[Address, int]


def flows(tx: TokenTx, places: NonWallets) -> list[WalletFlow]:
    """All of one transaction. Pools, what is beside them and burn addresses have none. Never raises, whatever
    the logs say: whoever sends more than it has, sends its own."""
    return deeds(tx, places).flows


def deeds(tx: TokenTx, places: NonWallets) -> TransactionFlows:
    """The same, with what the buyers paid for."""
    moves, fills, pools = tx.moves, tx.fills, places.pools
    done: list[WalletFlow] = []
    paid: list[PaidBuy] = []
    if len(moves) == 1:
        if not fills or moves[0].sender not in pools:
            done = _one(moves[0], fills, places)
        elif len(fills) == 1:
            return _one_out(moves[0], fills[0], places)
        else:
            done, paid = _follow_transaction(tx, places)
    elif moves:
        done, paid = _follow_transaction(tx, places)
    return TransactionFlows(done, paid, claimed_raw(moves, fills, pools) if fills else 0)


def _follow_transaction(tx: TokenTx, places: NonWallets) -> tuple[list[WalletFlow], list[PaidBuy]]:
    ends = _TokenPaths(tx, places)
    for number, move in enumerate(tx.moves):
        if move.amount_raw > 0 and move.sender != move.recipient:
            ends.follow(number, move)
    return ends.collect_flows(tx.fills)


def _one_out(move: Move, fill: VenueFill, places: NonWallets) -> TransactionFlows:
    """The same of a single transfer out of a pool, and one fill: nearly every buy."""
    sender, recipient, amount = move
    pools, at, bought = places.pools, fill.at, 0
    if at == sender or at not in pools:
        bought = fill.token_raw if fill.buys else 0
    claimed = 0 if at in pools or not bought else claimed_raw((move,), (fill,), pools)
    if amount <= 0 or recipient in pools or recipient in BURN_ADDRESSES:
        return TransactionFlows([], (), claimed)
    if bought > amount:
        bought = amount
    keeps = recipient not in places.beside
    done = [WalletFlow("bought", recipient, None, bought)] if keeps and bought else []
    if keeps and amount > bought:
        done.append(WalletFlow("withdrawn", recipient, None, amount - bought))
    return TransactionFlows(
        done, (PaidBuy(recipient, (fill,), 0, bought, bought),) if bought else (), claimed
    )


def _one(move: Move, fills: Sequence[VenueFill], places: NonWallets) -> list[WalletFlow]:
    """The same of a single transfer, which most transactions are; without fills where it leaves a pool."""
    sender, recipient, amount = move
    if amount <= 0 or sender == recipient:
        return []
    pools, beside = places.pools, places.beside
    if sender in pools:
        if recipient in pools or recipient in beside or recipient in BURN_ADDRESSES:
            return []
        return [WalletFlow("withdrawn", recipient, None, amount)]
    keeps = recipient not in beside
    if recipient in pools or recipient in BURN_ADDRESSES:
        if sender in beside or sender in BURN_ADDRESSES:
            return []
        if recipient in pools:
            return _split_sales({}, {sender: amount}, fills)
        return [WalletFlow("burned", sender, None, amount)]
    if sender == ZERO_ADDRESS:
        return [WalletFlow("minted", recipient, None, amount)] if keeps else []
    done = []
    if sender not in beside and sender not in BURN_ADDRESSES:
        done.append(WalletFlow("moved", sender, recipient, amount))
    if keeps:
        done.append(WalletFlow("got", recipient, sender, amount))
    return done


class _TokenPaths:
    """Where the tokens of one transaction went. ``hands``: what each address has of others, the latest last.
    ``out``: what left pools in a trade, by the place of its transfer. ``into``: by whose it was, what ended
    in pools. ``parcels``, ``taxes``, ``made``, ``taken``: what the origins were named for that are nobody."""

    def __init__(self, tx: TokenTx, places: NonWallets) -> None:
        self.places = places
        self.out: dict[int, list[_Lot]] = {}
        self.parcels: dict[Address, FillParcel] = {}
        self.taxes: dict[Address, Address] = {}
        if tx.fills:
            self._name(match_fills(tx.moves, tx.fills, places.pools), tx.moves)
        self.hands: dict[Address, list[_Lot]] = {}
        self.into: _Sums = {}
        self.burned: _Sums = {}
        self.minted: _Sums = {}
        self.withdrawn: _Sums = {}
        self.made: dict[Address, Address] = {}
        self.taken: dict[Address, Address] = {}
        self.stayed: dict[tuple[Address, Address], int] = {}

    def _name(self, out: PoolOutflow, moves: Sequence[Move]) -> None:
        for number, parcel in enumerate(out.parcels):
            origin = Address(f"{_PARCEL}{number}")
            self.parcels[origin] = parcel
            for place, raw in parcel.raw.items():
                self.out.setdefault(place, []).append((origin, raw))
        for place, raw in out.taxes.items():
            pool = moves[place].sender
            origin = Address(_TAX + pool)
            self.taxes[origin] = pool
            self.out.setdefault(place, []).append((origin, raw))

    def follow(self, number: int, move: Move) -> None:
        """One more transfer of something to somebody else, and its place in the transaction."""
        sender, recipient, amount = move
        pools = self.places.pools
        if sender in pools:
            if recipient not in pools and recipient not in BURN_ADDRESSES:
                for origin, raw in self.out.get(number, ()):
                    if raw:
                        self._give(recipient, origin, raw)
                    amount -= raw
                if amount:
                    self._give(recipient, _TAKEN, amount)
            return
        is_end = recipient in pools or recipient in BURN_ADDRESSES
        lots = self.hands.get(sender)
        while lots and amount:
            origin, had = lots.pop()
            if had > amount:
                lots.append((origin, had - amount))
                had = amount
            amount -= had
            if is_end:
                self._end(recipient, origin, had)
            elif origin != recipient:
                self._give(recipient, origin, had)
        if amount:
            if is_end:
                self._end(recipient, sender, amount)
            else:
                self._give(recipient, sender, amount)

    def _give(self, recipient: Address, origin: Address, amount: int) -> None:
        if recipient not in self.places.beside:
            if origin == ZERO_ADDRESS:
                origin = Address(_MINTED + recipient)
                self.made[origin] = recipient
            elif origin == _TAKEN or origin in self.taken:
                origin = Address(_TAKEN + recipient)
                self.taken[origin] = recipient
        lots = self.hands.get(recipient)
        if lots is None:
            self.hands[recipient] = [(origin, amount)]
        elif lots and lots[-1][0] == origin:
            lots[-1] = (origin, lots[-1][1] + amount)
        else:
            lots.append((origin, amount))
            if len(lots) > MOST_LOTS:
                self._stay(recipient, lots[: MOST_LOTS // 2])
                del lots[: MOST_LOTS // 2]

    def _end(self, place: Address, origin: Address, amount: int) -> None:
        if place not in self.places.pools:
            _add(self.burned, origin, amount)
            return
        wallet = self.made.get(origin)
        if wallet is not None:
            _add(self.minted, wallet, amount)
        else:
            wallet = self.taken.get(origin)
            if wallet is not None:
                _add(self.withdrawn, wallet, amount)
        _add(self.into, origin if wallet is None else wallet, amount)

    def _stay(self, holder: Address, lots: Iterable[_Lot]) -> None:
        stayed = self.stayed
        for origin, amount in lots:
            key = (origin, holder)
            stayed[key] = stayed.get(key, 0) + amount

    def collect_flows(self, fills: Sequence[VenueFill]) -> tuple[list[WalletFlow], list[PaidBuy]]:
        """What all this was to the wallets."""
        for holder, lots in self.hands.items():
            if lots:
                self._stay(holder, lots)
        kept: dict[Address, _Sums] = {}
        moved: list[WalletFlow] = []
        for (origin, holder), amount in self.stayed.items():
            keeps = self._is_wallet(holder)
            if origin in self.parcels:
                kept.setdefault(origin, {})[holder] = amount
            elif origin == ZERO_ADDRESS or origin in self.made:
                if keeps:
                    _add(self.minted, holder, amount)
            elif origin == _TAKEN or origin in self.taken:
                if keeps:
                    _add(self.withdrawn, holder, amount)
            else:
                if self._is_wallet(origin):
                    moved.append(WalletFlow("moved", origin, holder, amount))
                if keeps:
                    moved.append(WalletFlow("got", holder, self.taxes.get(origin, origin), amount))
        bought, paid = self._collect_bought(kept)
        done = [WalletFlow("minted", wallet, None, amount) for wallet, amount in self.minted.items()]
        done += [WalletFlow("bought", wallet, None, amount) for wallet, amount in bought.items()]
        sold = {origin: amount for origin, amount in self.into.items() if self._is_wallet(origin)}
        if sold or self.withdrawn:
            done += _split_sales(self.withdrawn, sold, fills)
        done += moved
        for origin, amount in self.burned.items():
            if self._is_wallet(origin):
                done.append(WalletFlow("burned", origin, None, amount))
        return done, paid

    def _collect_bought(self, kept: dict[Address, _Sums]) -> tuple[_Sums, list[PaidBuy]]:
        bought: _Sums = {}
        paid = []
        for origin, hands in kept.items():
            parcel = self.parcels[origin]
            of_raw, before = sum(parcel.raw.values()), 0
            for hand, amount in hands.items():
                paid.append(PaidBuy(hand, parcel.fills, before, before + amount, of_raw))
                before += amount
                if self._is_wallet(hand):
                    _add(bought, hand, amount)
        return bought, paid

    def _is_wallet(self, address: Address) -> bool:
        return not (address in self.places.beside or address in BURN_ADDRESSES or address.startswith(_NOBODY))


def _split_sales(out: _Sums, into: _Sums, fills: Sequence[VenueFill]) -> list[WalletFlow]:
    """What wallets took out of pools without buying it, and what they put in, told apart: what the fills
    account for was sold. Of the rest, what a wallet put in and took out again is nothing."""
    sells_raw = sum(fill.token_raw for fill in fills if not fill.buys)
    if not out and sum(into.values()) <= sells_raw:
        return [WalletFlow("sold", wallet, None, amount) for wallet, amount in into.items()]
    sold, rest_out = scale_to(into, sells_raw), dict(out)
    rest_in = {wallet: amount - sold.get(wallet, 0) for wallet, amount in into.items()}
    for wallet in rest_in.keys() & rest_out.keys():
        back = min(rest_in[wallet], rest_out[wallet])
        rest_in[wallet] -= back
        rest_out[wallet] -= back
    if sum(rest_in.values()) * BPS <= sells_raw * HOOK_TAKES_BPS:
        for wallet, amount in rest_in.items():
            sold[wallet] = sold.get(wallet, 0) + amount
        rest_in = {}
    kinds: tuple[tuple[What, _Sums], ...] = (("withdrawn", rest_out), ("sold", sold), ("pooled", rest_in))
    return [
        WalletFlow(what, wallet, None, raw) for what, sums in kinds for wallet, raw in sums.items() if raw
    ]


def _add(sums: _Sums, key: Address, amount: int) -> None:
    sums[key] = sums.get(key, 0) + amount
