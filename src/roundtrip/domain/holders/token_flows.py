"""What the wallets of one transaction did with one token, derived from the token's own transfers.

Traders are read from where tokens went, not from the sender of the transaction: a wallet bought what came to
it out of a pool and stayed, through any routers, aggregators and bots; it sold what came from it and ended in
a pool. So several wallets that one transaction fills are several buyers.

The rules. Every holder keeps what it received in this transaction apart from what it had before, and sends
the latest first, its own tokens last. Pools and burn addresses are ends: what goes in is theirs, and what
comes out is the pool's, whatever went in before. What ends where it started is no flow, and neither is what
is bought and goes into a pool through any addresses: a bot that buys in one pool and sells in another did
nothing with the token. What is minted and put into a pool in one transaction was minted to the first wallet
that had it, and is sold or pooled by it; liquidity taken out and sold in one transaction was the last
wallet's that had it."""

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
    """Addresses that are not wallets. ``pools``: their tokens can be bought: curves, v3 pools, the v4
    manager, the launchpad's hook. ``beside``: contracts of the same makers: routers, lockers, escrows,
    vaults; what passes through them in a transaction was not theirs, what stays there belongs to no wallet.
    The token's own address is in neither."""

    pools: frozenset[Address]
    beside: frozenset[Address]


MAX_LOTS = 256
"""How many origins one holder keeps apart. Beyond that, the oldest half is taken to have stayed: tokens of
ten thousand wallets passed around in a ring would take forever, and a trade can be hidden behind other
wallets with two transactions anyway."""

FlowKind = Literal["bought", "sold", "moved", "got", "pooled", "withdrawn", "burned", "minted"]
"""bought, sold: through a fill. pooled, withdrawn: into and out of a pool without a fill. moved: to
``other``, which got it. minted: newly created."""


class WalletFlow(NamedTuple):
    """What the transaction did to one wallet, with pass-through netted out; ``amount_raw`` is above zero.
    ``other``: the receiver of moved tokens, or the sender of those it got; if that is a pool, they are a tax
    of what others bought there."""

    kind: FlowKind
    wallet: Address
    other: Address | None
    amount_raw: int


class PaidBuy(NamedTuple):
    """A buy with its price. ``fills`` paid out ``of_raw`` without taxes; of that, the part between
    ``from_raw`` and ``to_raw`` stayed with ``hand``: a wallet, or an address of ``NonWallets.beside``, from
    which others may fetch it."""

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


_PSEUDO_PREFIX = "_"
"""The prefix of origins that are not addresses: parcels, taxes, tokens taken out of pools or minted."""
_TAKEN = Address("_taken by ")
_MINTED = "_minted to "
_TAX = "_tax of "
_PARCEL = "_parcel "

_Lot = tuple[Address, int]
_Sums = dict[Address, int]


def trace_transaction(tx: TokenTx, places: NonWallets) -> TransactionFlows:
    """All flows of one transaction, and the prices of its buys. Pools, addresses of ``beside`` and burn
    addresses have no flows. Never raises, whatever the logs say: an address that sends more than it has sends
    its own tokens."""
    moves, fills, pools = tx.moves, tx.fills, places.pools
    wallet_flows: list[WalletFlow] = []
    paid: list[PaidBuy] = []
    if len(moves) == 1:
        if not fills or moves[0].sender not in pools:
            wallet_flows = _trace_single_move(moves[0], fills, places)
        elif len(fills) == 1:
            return _trace_single_buy(moves[0], fills[0], places)
        else:
            wallet_flows, paid = _follow_transaction(tx, places)
    elif moves:
        wallet_flows, paid = _follow_transaction(tx, places)
    return TransactionFlows(wallet_flows, paid, claimed_raw(moves, fills, pools) if fills else 0)


def _follow_transaction(tx: TokenTx, places: NonWallets) -> tuple[list[WalletFlow], list[PaidBuy]]:
    paths = _TokenPaths(tx, places)
    for number, move in enumerate(tx.moves):
        if move.amount_raw > 0 and move.sender != move.recipient:
            paths.follow(number, move)
    return paths.collect_flows(tx.fills)


def _trace_single_buy(move: Move, fill: VenueFill, places: NonWallets) -> TransactionFlows:
    """A single transfer out of a pool and one fill: nearly every buy."""
    sender, recipient, amount = move
    pools, at, bought = places.pools, fill.at, 0
    if at == sender or at not in pools:
        bought = fill.token_raw if fill.buys else 0
    claimed = 0 if at in pools or not bought else claimed_raw((move,), (fill,), pools)
    if amount <= 0 or recipient in pools or recipient in BURN_ADDRESSES:
        return TransactionFlows([], (), claimed)
    if bought > amount:
        bought = amount
    to_wallet = recipient not in places.beside
    wallet_flows = [WalletFlow("bought", recipient, None, bought)] if to_wallet and bought else []
    if to_wallet and amount > bought:
        wallet_flows.append(WalletFlow("withdrawn", recipient, None, amount - bought))
    return TransactionFlows(
        wallet_flows, (PaidBuy(recipient, (fill,), 0, bought, bought),) if bought else (), claimed
    )


def _trace_single_move(move: Move, fills: Sequence[VenueFill], places: NonWallets) -> list[WalletFlow]:
    """A single transfer, which most transactions are; without fills if it leaves a pool."""
    sender, recipient, amount = move
    if amount <= 0 or sender == recipient:
        return []
    pools, beside = places.pools, places.beside
    if sender in pools:
        if recipient in pools or recipient in beside or recipient in BURN_ADDRESSES:
            return []
        return [WalletFlow("withdrawn", recipient, None, amount)]
    to_wallet = recipient not in beside
    if recipient in pools or recipient in BURN_ADDRESSES:
        if sender in beside or sender in BURN_ADDRESSES:
            return []
        if recipient in pools:
            return _split_sales({}, {sender: amount}, fills)
        return [WalletFlow("burned", sender, None, amount)]
    if sender == ZERO_ADDRESS:
        return [WalletFlow("minted", recipient, None, amount)] if to_wallet else []
    wallet_flows = []
    if sender not in beside and sender not in BURN_ADDRESSES:
        wallet_flows.append(WalletFlow("moved", sender, recipient, amount))
    if to_wallet:
        wallet_flows.append(WalletFlow("got", recipient, sender, amount))
    return wallet_flows


class _TokenPaths:
    """Where the tokens of one transaction went. ``hands``: what each address holds of each origin, the latest
    last. ``out``: what left pools in a trade, by the index of its transfer. ``into``: what ended in pools, by
    origin. ``parcels``, ``taxes``, ``minted_to``, ``taken_by``: the meaning of origins that are not
    addresses."""

    def __init__(self, tx: TokenTx, places: NonWallets) -> None:
        self.places = places
        self.out: dict[int, list[_Lot]] = {}
        self.parcels: dict[Address, FillParcel] = {}
        self.taxes: dict[Address, Address] = {}
        if tx.fills:
            self._add_origins(match_fills(tx.moves, tx.fills, places.pools), tx.moves)
        self.hands: dict[Address, list[_Lot]] = {}
        self.into: _Sums = {}
        self.burned: _Sums = {}
        self.minted: _Sums = {}
        self.withdrawn: _Sums = {}
        self.minted_to: dict[Address, Address] = {}
        self.taken_by: dict[Address, Address] = {}
        self.stayed: dict[tuple[Address, Address], int] = {}

    def _add_origins(self, outflow: PoolOutflow, moves: Sequence[Move]) -> None:
        for number, parcel in enumerate(outflow.parcels):
            origin = Address(f"{_PARCEL}{number}")
            self.parcels[origin] = parcel
            for place, raw in parcel.raw.items():
                self.out.setdefault(place, []).append((origin, raw))
        for place, raw in outflow.taxes.items():
            pool = moves[place].sender
            origin = Address(_TAX + pool)
            self.taxes[origin] = pool
            self.out.setdefault(place, []).append((origin, raw))

    def follow(self, number: int, move: Move) -> None:
        """Adds a transfer of a positive amount between two addresses. ``number``: its index in the
        transaction."""
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
            origin, lot_raw = lots.pop()
            if lot_raw > amount:
                lots.append((origin, lot_raw - amount))
                lot_raw = amount
            amount -= lot_raw
            if is_end:
                self._end_at(recipient, origin, lot_raw)
            elif origin != recipient:
                self._give(recipient, origin, lot_raw)
        if amount:
            if is_end:
                self._end_at(recipient, sender, amount)
            else:
                self._give(recipient, sender, amount)

    def _give(self, recipient: Address, origin: Address, amount: int) -> None:
        """Adds a lot to what the recipient holds."""
        if recipient not in self.places.beside:
            if origin == ZERO_ADDRESS:
                origin = Address(_MINTED + recipient)
                self.minted_to[origin] = recipient
            elif origin == _TAKEN or origin in self.taken_by:
                origin = Address(_TAKEN + recipient)
                self.taken_by[origin] = recipient
        lots = self.hands.get(recipient)
        if lots is None:
            self.hands[recipient] = [(origin, amount)]
        elif lots and lots[-1][0] == origin:
            lots[-1] = (origin, lots[-1][1] + amount)
        else:
            lots.append((origin, amount))
            if len(lots) > MAX_LOTS:
                self._record_stay(recipient, lots[: MAX_LOTS // 2])
                del lots[: MAX_LOTS // 2]

    def _end_at(self, place: Address, origin: Address, amount: int) -> None:
        """Records that tokens of this origin went into a pool or to a burn address."""
        if place not in self.places.pools:
            _add(self.burned, origin, amount)
            return
        wallet = self.minted_to.get(origin)
        if wallet is not None:
            _add(self.minted, wallet, amount)
        else:
            wallet = self.taken_by.get(origin)
            if wallet is not None:
                _add(self.withdrawn, wallet, amount)
        _add(self.into, origin if wallet is None else wallet, amount)

    def _record_stay(self, holder: Address, lots: Iterable[_Lot]) -> None:
        stayed = self.stayed
        for origin, amount in lots:
            key = (origin, holder)
            stayed[key] = stayed.get(key, 0) + amount

    def collect_flows(self, fills: Sequence[VenueFill]) -> tuple[list[WalletFlow], list[PaidBuy]]:
        """The resulting flows and buys of the wallets."""
        for holder, lots in self.hands.items():
            if lots:
                self._record_stay(holder, lots)
        kept_parcels, moved = self._collect_stays()
        bought, paid = self._collect_bought(kept_parcels)
        wallet_flows = [WalletFlow("minted", wallet, None, amount) for wallet, amount in self.minted.items()]
        wallet_flows += [WalletFlow("bought", wallet, None, amount) for wallet, amount in bought.items()]
        sold = {origin: amount for origin, amount in self.into.items() if self._is_wallet(origin)}
        if sold or self.withdrawn:
            wallet_flows += _split_sales(self.withdrawn, sold, fills)
        wallet_flows += moved
        for origin, amount in self.burned.items():
            if self._is_wallet(origin):
                wallet_flows.append(WalletFlow("burned", origin, None, amount))
        return wallet_flows, paid

    def _collect_stays(self) -> tuple[dict[Address, _Sums], list[WalletFlow]]:
        """Where tokens stayed: parts of bought parcels by parcel and holder, and flows between wallets. Mints
        and withdrawals are added to their sums."""
        kept_parcels: dict[Address, _Sums] = {}
        moved: list[WalletFlow] = []
        for (origin, holder), amount in self.stayed.items():
            is_wallet = self._is_wallet(holder)
            if origin in self.parcels:
                kept_parcels.setdefault(origin, {})[holder] = amount
            elif origin == ZERO_ADDRESS or origin in self.minted_to:
                if is_wallet:
                    _add(self.minted, holder, amount)
            elif origin == _TAKEN or origin in self.taken_by:
                if is_wallet:
                    _add(self.withdrawn, holder, amount)
            else:
                if self._is_wallet(origin):
                    moved.append(WalletFlow("moved", origin, holder, amount))
                if is_wallet:
                    moved.append(WalletFlow("got", holder, self.taxes.get(origin, origin), amount))
        return kept_parcels, moved

    def _collect_bought(self, kept_parcels: dict[Address, _Sums]) -> tuple[_Sums, list[PaidBuy]]:
        bought: _Sums = {}
        paid = []
        for origin, hands in kept_parcels.items():
            parcel = self.parcels[origin]
            of_raw, start_raw = sum(parcel.raw.values()), 0
            for hand, amount in hands.items():
                paid.append(PaidBuy(hand, parcel.fills, start_raw, start_raw + amount, of_raw))
                start_raw += amount
                if self._is_wallet(hand):
                    _add(bought, hand, amount)
        return bought, paid

    def _is_wallet(self, address: Address) -> bool:
        return not (
            address in self.places.beside or address in BURN_ADDRESSES or address.startswith(_PSEUDO_PREFIX)
        )


def _split_sales(taken_out: _Sums, put_in: _Sums, fills: Sequence[VenueFill]) -> list[WalletFlow]:
    """Splits what wallets put into pools (``put_in``) and took out of them without buying
    (``taken_out``): what the fills account for was sold. Of the rest, what a wallet put in and took out
    again cancels out."""
    sells_raw = sum(fill.token_raw for fill in fills if not fill.buys)
    if not taken_out and sum(put_in.values()) <= sells_raw:
        return [WalletFlow("sold", wallet, None, amount) for wallet, amount in put_in.items()]
    sold, rest_out = scale_to(put_in, sells_raw), dict(taken_out)
    rest_in = {wallet: amount - sold.get(wallet, 0) for wallet, amount in put_in.items()}
    for wallet in rest_in.keys() & rest_out.keys():
        returned_raw = min(rest_in[wallet], rest_out[wallet])
        rest_in[wallet] -= returned_raw
        rest_out[wallet] -= returned_raw
    if sum(rest_in.values()) * BPS <= sells_raw * HOOK_TAKES_BPS:
        for wallet, amount in rest_in.items():
            sold[wallet] = sold.get(wallet, 0) + amount
        rest_in = {}
    kinds: tuple[tuple[FlowKind, _Sums], ...] = (("withdrawn", rest_out), ("sold", sold), ("pooled", rest_in))
    return [
        WalletFlow(kind, wallet, None, raw) for kind, sums in kinds for wallet, raw in sums.items() if raw
    ]


def _add(sums: _Sums, key: Address, amount: int) -> None:
    sums[key] = sums.get(key, 0) + amount
