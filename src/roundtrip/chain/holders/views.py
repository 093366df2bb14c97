"""Reads the balances that a token reports at one block, and the transactions that tie some of its wallets.

The token is written by strangers: any bad answer is None for that wallet and affects no other. Every read is
pinned by the block's hash."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from roundtrip.chain.blocks.full_blocks import block_call, read_block, read_receipt, receipt_call
from roundtrip.chain.blocks.state_witness import AccountState, state_calls, states
from roundtrip.chain.rpc.client import Answer, Meter, RpcCall, RpcError, RpcNode, hex_bytes, quantity
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.venues import abi, entry_point, erc20

from .wallet_views import is_contract

CALLS_A_BATCH = 100
"""Some providers refuse more, and a token with very large answers spoils at most this many."""
RECEIPTS_A_BATCH, BLOCKS_A_BATCH = 20, 8
MAX_BLOCKS = 40
"""How many blocks are read for funding transactions at most: they are read in full."""

Answers = Sequence[Answer] | NodeFault


@dataclass(frozen=True, slots=True)
class Views:
    """The answers at one block; None where it could not be read. ``supply_raw``, ``balances``: in base units,
    as the token reports them. ``contracts``: whether the address has code of its own; an account that runs
    another's (EIP-7702) is a wallet."""

    supply_raw: int | None
    balances: Mapping[Address, int | None]
    contracts: Mapping[Address, bool | None]


# --- balances and codes ---------------------------------------------------------------------------------


def view_calls(
    token: Address, wallets: Sequence[Address], unknown: Sequence[Address], pinned: BlockRef, gas_limit: int
) -> list[list[RpcCall]]:
    """The reads in batches: the chain and the codes of ``unknown``, then the supply and the balances of
    ``wallets``. No call may use more than ``gas_limit``. The token's answers are in batches of their own:
    they may be too large to read."""
    block = {"blockHash": pinned.hash}
    codes = [RpcCall("eth_chainId", []), *(RpcCall("eth_getCode", [address, block]) for address in unknown)]
    selectors = [erc20.TOTAL_SUPPLY, *(abi.call(erc20.BALANCE_OF, wallet) for wallet in wallets)]
    reads = [
        RpcCall("eth_call", [{"to": token, "data": data, "gas": hex(gas_limit)}, block]) for data in selectors
    ]
    return [*_chunk(codes, CALLS_A_BATCH), *_chunk(reads, CALLS_A_BATCH)]


def read_views(
    groups: Sequence[Answers], wallets: Sequence[Address], unknown: Sequence[Address], chain_id: int
) -> Views:
    """Reads the answers to ``view_calls``, with a fault in place of each batch that failed. Raises NodeFault
    if the node is of another chain, or did not report its chain."""
    answers: list[Answer] = []
    for size, group in zip(_batch_sizes(len(unknown) + 1, len(wallets) + 1), groups, strict=True):
        answers += [RpcError()] * size if isinstance(group, NodeFault) else group
    chain, *rest = answers
    if quantity(chain) != chain_id:
        raise NodeFault(f"the node does not answer for chain {chain_id}")
    codes, (supply, *balances) = rest[: len(unknown)], rest[len(unknown) :]
    return Views(
        _amount(supply),
        {wallet: _amount(answer) for wallet, answer in zip(wallets, balances, strict=True)},
        {address: is_contract(code) for address, code in zip(unknown, codes, strict=True)},
    )


async def fetch_views(
    node: RpcNode,
    token: Address,
    wallets: Collection[Address],
    unknown: Collection[Address],
    pinned: BlockRef,
    gas_limit: int,
    chain_id: int,
    meter: Meter,
) -> Views:
    """Requests and reads everything. Raises NodeFault if the node is of another chain or does not answer,
    ServiceFull when the budget is spent."""
    sorted_addresses = sorted(set(wallets)), sorted(set(unknown))
    groups = await node.batches(view_calls(token, *sorted_addresses, pinned, gas_limit), meter)
    return read_views(groups, *sorted_addresses, chain_id)


def _batch_sizes(*totals: int) -> list[int]:
    return [min(CALLS_A_BATCH, total - at) for total in totals for at in range(0, total, CALLS_A_BATCH)]


def _amount(answer: Answer) -> int | None:
    """The first word of a call's result; None if there is none."""
    try:
        return abi.uint_at(hex_bytes(answer), 0)
    except NodeFault:
        return None


# --- ties --------------------------------------------------------------------------------


async def find_entry_point_txs(
    node: RpcNode, tx_hashes: Iterable[TxHash], meter: Meter
) -> dict[TxHash, bool | None]:
    """Which transactions ran account operations: their sender is unrelated to the accounts. None: could not
    be found out. Raises ServiceFull."""
    ran_operations: dict[TxHash, bool | None] = dict.fromkeys(tx_hashes)
    groups = _chunk(list(ran_operations), RECEIPTS_A_BATCH)
    receipts = await node.batches([[receipt_call(tx_hash) for tx_hash in group] for group in groups], meter)
    for group, answers in zip(groups, receipts, strict=True):
        if isinstance(answers, NodeFault):
            continue
        for tx_hash, answer in zip(group, answers, strict=True):
            try:
                logs = read_receipt(answer, tx_hash).logs
            except NodeFault:
                continue
            ran_operations[tx_hash] = any(entry_point.decode_operation_log(log) is not None for log in logs)
    return ran_operations


class FirstFunding(NamedTuple):
    """The wallet that sent another its first eth, and in which block."""

    funder: Address
    wallet: Address
    block_number: int


class FunderPayment(NamedTuple):
    """The first plain transfer from the funder in that block, and the sum of all of them in wei."""

    tx_hash: TxHash
    paid_wei: int


async def find_funding_txs(
    node: RpcNode, fundings: Sequence[FirstFunding], meter: Meter
) -> dict[Address, FunderPayment | None]:
    """The payment to each wallet. None: it could not be found out, or there is none; blocks beyond the first
    MAX_BLOCKS are not read. Raises ServiceFull."""
    numbers = list(dict.fromkeys(funding.block_number for funding in fundings))[:MAX_BLOCKS]
    groups = _chunk(numbers, BLOCKS_A_BATCH)
    blocks = await node.batches([[block_call(number) for number in group] for group in groups], meter)
    paid: dict[tuple[int, str, str], FunderPayment] = {}
    for group, answers in zip(groups, blocks, strict=True):
        if isinstance(answers, NodeFault):
            continue
        for number, answer in zip(group, answers, strict=True):
            try:
                block = read_block(answer, number)
            except NodeFault:
                continue
            for tx in block.transactions:
                if tx.to is not None and tx.is_transfer():
                    key = number, tx.sender.lower(), tx.to.lower()
                    first = paid.get(key, FunderPayment(TxHash(tx.hash.lower()), 0))
                    paid[key] = first._replace(paid_wei=first.paid_wei + int(tx.value, 16))
    return {
        funding.wallet: paid.get((funding.block_number, funding.funder, funding.wallet))
        for funding in fundings
    }


async def had_before(
    node: RpcNode, pairs: Sequence[tuple[Address, int]], rich: Address, meter: Meter
) -> dict[Address, bool | None]:
    """Whether a wallet had a nonce or a balance before the block. None: could not be found out, as with a
    node without that state. A node that answers zeros instead does so for ``rich``, too: an account known to
    have had eth at all these blocks. Raises ServiceFull."""
    # Four calls for each pair: nonce and balance of the wallet, and of ``rich``.
    groups = _chunk(list(pairs), CALLS_A_BATCH // 4)
    batches = []
    for group in groups:
        earlier = [(wallet, max(number - 1, 0)) for wallet, number in group]
        batches.append(state_calls(pair for wallet, at in earlier for pair in ((wallet, at), (rich, at))))
    used_before: dict[Address, bool | None] = {}
    for group, answers in zip(groups, await node.batches(batches, meter), strict=True):
        for at, (wallet, _) in enumerate(group):
            try:
                accounts = [] if isinstance(answers, NodeFault) else states(answers[4 * at : 4 * at + 4])
            except NodeFault:
                accounts = []
            used_before[wallet] = _was_used(*accounts) if accounts else None
    return used_before


def _was_used(account: AccountState, witness: AccountState) -> bool | None:
    if account.is_empty() and witness.is_empty():
        return None
    return not account.is_empty()


async def was_made_in(node: RpcNode, token: Address, number: int, meter: Meter) -> bool | None:
    """Whether the token has code since the block ``number`` and had none before. None: could not be found
    out, as with a node without those states, which may report no code in both. Raises ServiceFull."""
    numbers = [number, *([number - 1] if number else [])]
    try:
        answers = await node.batch([RpcCall("eth_getCode", [token, hex(at)]) for at in numbers], meter)
        has_code, *had_code = [bool(hex_bytes(answer)) for answer in answers]
    except NodeFault:
        return None
    return not any(had_code) if has_code else None


T = TypeVar("T")


def _chunk(items: Sequence[T], size: int) -> list[list[T]]:
    return [list(items[at : at + size]) for at in range(0, len(items), size)]
