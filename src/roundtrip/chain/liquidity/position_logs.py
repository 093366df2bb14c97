"""Positions from a pool's own logs, for pools that no index has followed from their first block. Pure.

A node may refuse to read its whole chain; then nothing is known. What the logs do not account for shows in
the pool's liquidity.
"""

from collections.abc import Mapping, Sequence

import msgspec

from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.chain.rpc.node_logs import UnverifiedBlockLog, UnverifiedLog
from roundtrip.domain.base.types import Address, BlockRef, parse_address
from roundtrip.domain.base.venue import Venue
from roundtrip.domain.liquidity.depth import Position
from roundtrip.venues import abi, amm_v3, amm_v4
from roundtrip.venues.base import Contracts
from roundtrip.venues.positions import manager_of

MAX_LOGS = 5000
_APPROVAL_FOR_ALL = "0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31"
"""ApprovalForAll(address,address,bool)."""
MAX_RECEIPTS = 50
"""Transactions that minted v3 positions, of which the NFTs' numbers are read: the largest."""


class _Receipt(msgspec.Struct):
    logs: list[UnverifiedLog]


Key = tuple[Address, int, int, int]
"""Owner, number, lower and upper tick."""


def log_call(venue: Venue, contracts: Contracts, head: BlockRef, owner: Address | None = None) -> RpcCall:
    """Reads every change of the pool's liquidity since the first block, or of one owner in it."""
    blocks = {"fromBlock": "0x0", "toBlock": hex(head.number)}
    topics: list[object] = [[amm_v3.MINT, amm_v3.BURN]]
    if venue.pool is None:
        topics = [amm_v4.MODIFY_LIQUIDITY, venue.pool_id]
    topics += [] if owner is None else ["0x" + abi.word(owner)]
    emitter = venue.pool or contracts.v4_pool_manager
    return RpcCall("eth_getLogs", [{"address": emitter, "topics": topics, **blocks}])


def operators_call(manager: Address, holder: Address, head: BlockRef) -> RpcCall:
    """Reads whom the holder of NFTs let act for it, since the first block."""
    blocks = {"fromBlock": "0x0", "toBlock": hex(head.number)}
    topics = [_APPROVAL_FOR_ALL, "0x" + abi.word(holder)]
    return RpcCall("eth_getLogs", [{"address": manager, "topics": topics, **blocks}])


def read_operators(answer: msgspec.Raw | RpcError) -> tuple[Address, ...] | None:
    """Who may move all NFTs of the holder, from the answer to ``operators_call``; None: not known."""
    logs = read_logs(answer)
    if logs is None:
        return None
    may_move: dict[Address | None, bool] = {}
    for log in logs:
        decoded = log.decode()
        may_move[abi.topic_address(decoded.topics, 2)] = bool(abi.uint_at(decoded.data, 0))
    return None if None in may_move else tuple(who for who, may in may_move.items() if may and who)


def transaction_call(tx_hash: str) -> RpcCall:
    """Reads a transaction."""
    return RpcCall("eth_getTransactionByHash", [tx_hash])


class _SentTransaction(msgspec.Struct, rename={"sender": "from"}):
    sender: str


def read_sender(answer: msgspec.Raw | RpcError) -> Address | None:
    """Who sent the transaction; None: not known."""
    try:
        read = (
            None
            if isinstance(answer, RpcError)
            else msgspec.json.decode(answer, type=_SentTransaction | None)
        )
        return None if read is None else parse_address(read.sender)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def read_logs(answer: msgspec.Raw | RpcError) -> tuple[UnverifiedBlockLog, ...] | None:
    """The logs in the answer to ``log_call``; None: the node refused, or there are more than are read."""
    if isinstance(answer, RpcError):
        return None
    try:
        logs = msgspec.json.decode(answer, type=list[UnverifiedBlockLog])
        for log in logs:
            log.decode()
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return tuple(logs) if len(logs) <= MAX_LOGS else None


def minting(logs: Sequence[UnverifiedBlockLog], venue: Venue, contracts: Contracts) -> tuple[str, ...]:
    """The transactions in which the v3 position manager added to the pool, those of most liquidity first:
    only they name the NFTs."""
    if venue.pool is None:
        return ()
    added: dict[str, int] = {}
    for log in logs:
        moved = amm_v3.decode_mint(log.decode()) if log.topics[:1] == (amm_v3.MINT,) else None
        if moved is not None and moved.owner == manager_of(venue, contracts):
            added[log.transaction_hash] = max(added.get(log.transaction_hash, 0), moved.liquidity_delta)
    return tuple(sorted(added, key=lambda hash_: -added[hash_])[:MAX_RECEIPTS])


def receipt_call(tx_hash: str) -> RpcCall:
    """Reads the logs of one transaction."""
    return RpcCall("eth_getTransactionReceipt", [tx_hash])


def read_numbers(
    answers: Sequence[msgspec.Raw | RpcError], venue: Venue, contracts: Contracts
) -> Mapping[Key, tuple[int, ...]]:
    """The NFTs' numbers, by the key of the manager's position in the pool: it has one for all NFTs with the
    same ticks."""
    numbers: dict[Key, dict[int, None]] = {}
    manager = manager_of(venue, contracts)
    for answer in answers:
        try:
            receipt = (
                None if isinstance(answer, RpcError) else msgspec.json.decode(answer, type=_Receipt | None)
            )
            logs = [] if receipt is None else [log.decode() for log in receipt.logs]
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        minted = None
        for log in logs:
            if log.topics[:1] == (amm_v3.MINT,) and log.address == venue.pool:
                minted = amm_v3.decode_mint(log)
            elif log.topics[:1] == (amm_v3.INCREASE_LIQUIDITY,) and log.address == manager and minted:
                numbered = amm_v3.decode_numbered(log)
                if numbered is not None and numbered.liquidity_delta == minted.liquidity_delta:
                    key = (manager, 0, minted.tick_lower, minted.tick_upper)
                    numbers.setdefault(key, {})[numbered.number] = None
                minted = None
    return {key: tuple(nfts) for key, nfts in numbers.items()}


def fold_positions(
    logs: Sequence[UnverifiedBlockLog],
    venue: Venue,
    contracts: Contracts,
    numbers: Mapping[Key, tuple[int, ...]],
) -> tuple[Position, ...]:
    """The positions that the logs leave, the most liquidity first. What the v3 position manager holds between
    two ticks is one position for each NFT there; its liquidity is read with it."""
    manager = manager_of(venue, contracts)
    left: dict[Key, int] = {}
    for log in logs:
        decoded = log.decode()
        if venue.pool is not None:
            read = amm_v3.decode_mint if decoded.topics[:1] == (amm_v3.MINT,) else amm_v3.decode_burn
            moved = read(decoded)
        else:
            moved = amm_v4.decode_liquidity_move(decoded)
        if moved is not None:
            key = (moved.owner, moved.number, moved.tick_lower, moved.tick_upper)
            left[key] = left.get(key, 0) + moved.liquidity_delta
    folded: list[Position] = []
    for (owner, number, lower, upper), liquidity in left.items():
        if liquidity <= 0:
            continue
        holder = None if owner == manager else owner
        nfts = numbers.get((owner, number, lower, upper), ()) or (number,)
        folded += [Position(owner, nft, lower, upper, liquidity, holder) for nft in nfts]
    return tuple(sorted(folded, key=lambda position: -position.liquidity))
