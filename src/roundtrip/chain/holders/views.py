"""What a token tells of its holders at one block, and the transactions that tie some of them to each other.

A token is a stranger's: whatever it answers, or does not, is None for that wallet and harms nobody else's.
Every read is pinned by the block's hash.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from roundtrip.chain.blocks.full_blocks import block_call, read_block, read_receipt, receipt_call
from roundtrip.chain.blocks.state_witness import AccountState, state_calls, states
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, RpcNode, hex_bytes, quantity
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.venues import abi, entry_point, erc20

from .wallet_views import is_contract

CALLS_A_BATCH = 100
"""More are refused by some providers, and a token that answers with very much loses this many at most."""
RECEIPTS_A_BATCH, BLOCKS_A_BATCH = 20, 8
MOST_BLOCKS = 40
"""So many blocks are read for funding transactions at most: they come in full."""

Answer = msgspec.Raw | RpcError
Answers = Sequence[Answer] | NodeFault


@dataclass(frozen=True, slots=True)
class Views:
    """What was told at one block; None where it could not be read. ``supply_raw``, ``balances``: in base
    units, by the token itself. ``contracts``: who has code of its own; an account that runs another's
    (EIP-7702) is a wallet."""

    supply_raw: int | None
    balances: Mapping[Address, int | None]
    contracts: Mapping[Address, bool | None]


# --- what it tells ---------------------------------------------------------------------------------


def view_calls(
    token: Address,
    wallets: Sequence[Address],
    unknown: Sequence[Address],
    pinned: BlockRef,
    gas_limit: int,
) -> list[list[RpcCall]]:
    """The reads as batches: the chain and codes of ``unknown``, then the supply and balances of ``wallets``.
    No call may use more than ``gas_limit``. What the token answers stands apart: it may be too much to
    read."""
    block = {"blockHash": pinned.hash}
    codes = [RpcCall("eth_chainId", []), *(RpcCall("eth_getCode", [one, block]) for one in unknown)]
    heads = [erc20.TOTAL_SUPPLY, *(abi.call(erc20.BALANCE_OF, wallet) for wallet in wallets)]
    told = [
        RpcCall("eth_call", [{"to": token, "data": data, "gas": hex(gas_limit)}, block]) for data in heads
    ]
    return [*_cut(codes, CALLS_A_BATCH), *_cut(told, CALLS_A_BATCH)]


def read_views(
    groups: Sequence[Answers], wallets: Sequence[Address], unknown: Sequence[Address], chain_id: int
) -> Views:
    """What the batches of ``view_calls`` were answered, a fault where one was not. Raises NodeFault when the
    node is of another chain, or did not tell of which."""
    answers: list[Answer] = []
    for size, group in zip(_sizes(len(unknown) + 1, len(wallets) + 1), groups, strict=True):
        answers += [RpcError()] * size if isinstance(group, NodeFault) else group
    chain, *rest = answers
    if quantity(chain) != chain_id:
        raise NodeFault(f"it does not answer for chain {chain_id}")
    codes, (supply, *balances) = rest[: len(unknown)], rest[len(unknown) :]
    return Views(
        _amount(supply),
        {wallet: _amount(answer) for wallet, answer in zip(wallets, balances, strict=True)},
        {one: is_contract(answer) for one, answer in zip(unknown, codes, strict=True)},
    )


async def views_of(
    node: RpcNode,
    token: Address,
    wallets: Collection[Address],
    unknown: Collection[Address],
    pinned: BlockRef,
    gas_limit: int,
    chain_id: int,
    meter: Meter,
) -> Views:
    """Everything at once. Raises NodeFault when the node is of another chain or says nothing, ServiceFull
    when the budget is spent."""
    asked = sorted(set(wallets)), sorted(set(unknown))
    groups = await node.batches(view_calls(token, *asked, pinned, gas_limit), meter)
    return read_views(groups, *asked, chain_id)


def _sizes(*totals: int) -> list[int]:
    """How many calls each batch has."""
    return [min(CALLS_A_BATCH, total - at) for total in totals for at in range(0, total, CALLS_A_BATCH)]


def _amount(answer: Answer) -> int | None:
    """The one word of what a call gave; None where it gave none."""
    try:
        return abi.uint_at(hex_bytes(answer), 0)
    except NodeFault:
        return None


# --- what ties them --------------------------------------------------------------------------------


async def entry_point_txs(
    node: RpcNode, tx_hashes: Iterable[TxHash], meter: Meter
) -> dict[TxHash, bool | None]:
    """Which transactions ran operations of accounts: whoever sends such a one has nothing to do with those
    whose operations are in it. None: could not be found out. Raises ServiceFull."""
    found: dict[TxHash, bool | None] = dict.fromkeys(tx_hashes)
    groups = _cut(list(found), RECEIPTS_A_BATCH)
    given = await node.batches([[receipt_call(one) for one in group] for group in groups], meter)
    for group, answers in zip(groups, given, strict=True):
        if isinstance(answers, NodeFault):
            continue
        for tx_hash, answer in zip(group, answers, strict=True):
            try:
                logs = read_receipt(answer, tx_hash).logs
            except NodeFault:
                continue
            found[tx_hash] = any(entry_point.decode_operation_log(log) is not None for log in logs)
    return found


class FirstFunding(NamedTuple):
    """Who is known to have sent a wallet its first eth, and in which block."""

    funder: Address
    wallet: Address
    block_number: int


class FunderPayment(NamedTuple):
    """The first plain transfer from the funder in that block, and what all of them brought in wei."""

    tx_hash: TxHash
    paid_wei: int


async def funding_txs(
    node: RpcNode, wanted: Sequence[FirstFunding], meter: Meter
) -> dict[Address, FunderPayment | None]:
    """What each was paid, by wallet. None: it could not be found out, or there is none; of the blocks behind
    the first MOST_BLOCKS none is read. Raises ServiceFull."""
    numbers = list(dict.fromkeys(one.block_number for one in wanted))[:MOST_BLOCKS]
    groups = _cut(numbers, BLOCKS_A_BATCH)
    given = await node.batches([[block_call(one) for one in group] for group in groups], meter)
    paid: dict[tuple[int, str, str], FunderPayment] = {}
    for group, answers in zip(groups, given, strict=True):
        if isinstance(answers, NodeFault):
            continue
        for number, answer in zip(group, answers, strict=True):
            try:
                block = read_block(answer, number)
            except NodeFault:
                continue
            for tx in block.transactions:
                if tx.to is not None and tx.is_transfer():
                    place = number, tx.sender.lower(), tx.to.lower()
                    first = paid.get(place, FunderPayment(TxHash(tx.hash.lower()), 0))
                    paid[place] = first._replace(paid_wei=first.paid_wei + int(tx.value, 16))
    return {one.wallet: paid.get((one.block_number, one.funder, one.wallet)) for one in wanted}


async def had_before(
    node: RpcNode, wanted: Sequence[tuple[Address, int]], rich: Address, meter: Meter
) -> dict[Address, bool | None]:
    """Whether a wallet had a nonce or a balance before the block. None: could not be found out, as of a node
    without that state. One that answers zeros instead does so of ``rich``, too: somebody who is known to have
    eth ever since. Raises ServiceFull."""
    groups = _cut(list(wanted), CALLS_A_BATCH // 4)
    asked = []
    for group in groups:
        before = [(wallet, max(number - 1, 0)) for wallet, number in group]
        asked.append(state_calls(pair for who, at in before for pair in ((who, at), (rich, at))))
    found: dict[Address, bool | None] = {}
    for group, answers in zip(groups, await node.batches(asked, meter), strict=True):
        for at, (wallet, _) in enumerate(group):
            try:
                both = [] if isinstance(answers, NodeFault) else states(answers[4 * at : 4 * at + 4])
            except NodeFault:
                both = []
            found[wallet] = _had(*both) if both else None
    return found


def _had(own: AccountState, witness: AccountState) -> bool | None:
    if own.is_empty() and witness.is_empty():
        return None
    return not own.is_empty()


async def was_made_in(node: RpcNode, token: Address, number: int, meter: Meter) -> bool | None:
    """Whether the token has code since the block ``number`` and had none before. None: could not be found
    out, as of a node without those states, which may answer that there is none in both. Raises
    ServiceFull."""
    numbers = [number, *([number - 1] if number else [])]
    try:
        answers = await node.batch([RpcCall("eth_getCode", [token, hex(one)]) for one in numbers], meter)
        has, *had = [bool(hex_bytes(answer)) for answer in answers]
    except NodeFault:
        return None
    return not any(had) if has else None


T = TypeVar("T")


def _cut(items: Sequence[T], size: int) -> list[list[T]]:
    return [list(items[at : at + size]) for at in range(0, len(items), size)]
