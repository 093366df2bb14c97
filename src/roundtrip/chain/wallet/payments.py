"""A payment: the tokens that a transaction moved, and whether that is final. A node is not believed.

What is checked beside what ``transactions`` checks of a transaction and its receipt: its block is the chain's
at that number, and so is the block that was called final, which is as high or higher; this is asked once
finality was told, by one request, all of it answered by one node. The block has the transaction in its
place, and its bloom all that the receipt's has. And the logs of the block, asked for apart, tell of the same
transfers with the same amounts, which no bloom covers. What cannot be seen: a whole chain that was made up.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec

from roundtrip.chain.blocks.bloom import address_bits, topic_bits
from roundtrip.chain.blocks.spans import NodeLied
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, RpcNode, quantity
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import Log

from .transactions import MinedTransaction, SentTransaction, read_transaction

_MOST_NUMBER = 2**63
_LOGS_IN_A_ROW = 1_000
T = TypeVar("T")
_Quantity = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{1,64}\Z")]
_Word = Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z")]
_Bytes = Annotated[str, msgspec.Meta(pattern=r"\A0x([0-9a-fA-F]{2})*\Z")]


@dataclass(frozen=True, slots=True)
class Finalized:
    """The newest block that is final."""

    number: int
    hash: str
    timestamp_s: int


@dataclass(frozen=True, slots=True)
class MinedPayment:
    """A transaction that is in a block. ``transfers``: of every token, with the log's index in the block.
    ``bloom_bits``: what its logs set. ``finalized``: as it was known when the receipt was read."""

    sent: SentTransaction
    block_number: int
    block_hash: str
    place: int
    succeeded: bool
    transfers: tuple[tuple[int, Transferred], ...]
    bloom_bits: int
    finalized: Finalized

    def is_final(self) -> bool:
        """Whether its block is, if it is the chain's: that has to be confirmed."""
        return self.block_number <= self.finalized.number


class _PaymentHeader(msgspec.Struct):
    number: _Quantity
    hash: _Word
    timestamp: _Quantity

    def as_finalized(self) -> Finalized:
        return Finalized(int(self.number, 16), self.hash.lower(), int(self.timestamp, 16))


class _PaymentBlock(_PaymentHeader, rename="camel"):
    logs_bloom: Annotated[str, msgspec.Meta(pattern=r"\A0x[0-9a-fA-F]{512}\Z")]
    transactions: list[_Word]


class _PaymentRawLog(msgspec.Struct, rename="camel"):
    address: str
    topics: Annotated[list[str], msgspec.Meta(max_length=4)]
    data: _Bytes
    block_hash: _Word
    transaction_hash: _Word
    log_index: _Quantity
    removed: bool = False


# --- asking ----------------------------------------------------------------------------------------


async def find(
    node: RpcNode, tx_hash: TxHash, chain_id: int, meter: Meter
) -> MinedPayment | SentTransaction | None:
    """The transaction with the transfers that its receipt tells; as it was sent, while it is in no block;
    None: the node knows of none. Raises NodeFault, and NodeLied where its answers contradict each other."""
    own = Meter(), Meter()
    found, finalized = await asyncio.gather(
        read_transaction(node, tx_hash, chain_id, own[0]),
        _read_finalized(node, own[1]),
        return_exceptions=True,
    )
    meter.add(*own)
    for one in (found, finalized):
        if isinstance(one, BaseException):
            raise one
    assert not isinstance(found, BaseException)
    assert not isinstance(finalized, BaseException)
    if found is None:
        return None
    sent, mined = found
    return sent if mined is None else await _paying(sent, mined, finalized)


async def confirm(
    node: RpcNode, paying: MinedPayment, token: Address, wallet: Address, chain_id: int, meter: Meter
) -> None:
    """Returns where the transaction is in a final block of the chain, and the wallet's transfers of the token
    in it are those that its receipt tells. Raises NodeFault where that is not so, or could not be found out;
    ``paying`` is final by what it tells itself."""
    assert paying.is_final()
    calls = [
        # Named here, so that nothing is asked beside.
        RpcCall("eth_chainId", []),
        RpcCall("eth_getBlockByNumber", [hex(paying.finalized.number), False]),
        RpcCall("eth_getBlockByNumber", [hex(paying.block_number), False]),
        RpcCall(
            "eth_getLogs",
            [
                {
                    "blockHash": paying.block_hash,
                    "address": token,
                    "topics": [erc20.TRANSFER_TOPIC, "0x" + abi.word(wallet)],
                }
            ],
        ),
    ]
    chain, finalized, block, logs = await _of_one_node(node, calls, meter)
    if quantity(chain) != chain_id:
        raise NodeFault("it is of another chain")
    # Finality told by a node that stands on this fork says nothing of another one.
    if _decode(finalized, _PaymentHeader, "final block").as_finalized() != paying.finalized:
        raise NodeLied("the block that was final is another one now")
    _check_block(_decode(block, _PaymentBlock, "block"), paying)
    if _told_by(_decode(logs, list[_PaymentRawLog], "logs"), paying, token, wallet) != [
        (index, one) for index, one in paying.transfers if one.token == token and one.sender == wallet
    ]:
        raise NodeLied("its receipt and its logs tell of other transfers")


async def _read_finalized(node: RpcNode, meter: Meter) -> Finalized:
    (answer,) = await node.batch([RpcCall("eth_getBlockByNumber", ["finalized", False])], meter)
    found = _decode(answer, _PaymentHeader, "final block").as_finalized()
    if found.number >= _MOST_NUMBER:
        raise NodeLied("the number of its final block is out of bounds")
    return found


async def _of_one_node(node: RpcNode, calls: Sequence[RpcCall], meter: Meter) -> list[msgspec.Raw | RpcError]:
    """Of several nodes one that lags may leave out what it does not know, and another one fills that in:
    together they would say what neither knows. Then more was sent than was asked."""
    for _ in range(2):
        own = Meter()
        answers = await node.batch(calls, own)
        meter.trips += own.trips
        meter.calls += own.calls
        meter.node_ms += own.node_ms
        if own.calls <= len(calls):
            return answers
    raise NodeFault("it took several nodes to answer, and none of them all of it")


# --- reading what came -----------------------------------------------------------------------------


async def _paying(sent: SentTransaction, mined: MinedTransaction, finalized: Finalized) -> MinedPayment:
    assert sent.block is not None
    number, block_hash, place = sent.block
    transfers, bloom = [], 0
    for count, (index, log) in enumerate(mined.logs):
        if count % _LOGS_IN_A_ROW == 0:
            await asyncio.sleep(0)
        bloom |= _bits(log)
        moved = _decode_transfer(log)
        if moved is not None:
            transfers.append((index, moved))
    return MinedPayment(sent, number, block_hash, place, mined.succeeded, tuple(transfers), bloom, finalized)


def _bits(log: Log) -> int:
    found = address_bits(log.address)[1]
    for topic in log.topics:
        found |= topic_bits(topic)[1]
    return found


def _decode_transfer(log: Log) -> Transferred | None:
    """Only in exactly the form that ERC-20 gives it."""
    if not log.topics or log.topics[0] != erc20.TRANSFER_TOPIC or len(log.data) != abi.WORD:
        return None
    return erc20.decode_transfer(log)


def _check_block(block: _PaymentBlock, paying: MinedPayment) -> None:
    if (int(block.number, 16), block.hash.lower()) != (paying.block_number, paying.block_hash):
        raise NodeLied("its block is not the chain's any more")
    places = block.transactions
    if not paying.place < len(places) or places[paying.place].lower() != paying.sent.hash:
        raise NodeLied("its block does not have the transaction where it should be")
    if paying.bloom_bits & ~int(block.logs_bloom, 16):
        raise NodeLied("its block's bloom does not have its receipt's logs")


def _told_by(
    logs: list[_PaymentRawLog], paying: MinedPayment, token: Address, wallet: Address
) -> list[tuple[int, Transferred]]:
    """The wallet's transfers of the token in this transaction, as the logs of its block have them."""
    found = []
    for one in logs:
        if one.removed or one.block_hash.lower() != paying.block_hash:
            raise NodeLied("it gave logs of something else")
        if one.transaction_hash.lower() != paying.sent.hash:
            continue
        try:
            topics = tuple(topic_bits(text)[0] for text in one.topics)
            log = Log(address_bits(one.address)[0], topics, bytes.fromhex(one.data[2:]))
        except ValueError as error:
            raise NodeFault("it gave logs that cannot be read") from error
        moved = _decode_transfer(log)
        if moved is not None and moved.token == token and moved.sender == wallet:
            found.append((int(one.log_index, 16), moved))
    return sorted(found, key=lambda told: told[0])


def _decode(answer: msgspec.Raw | RpcError, shape: type[T], what: str) -> T:
    if isinstance(answer, RpcError):
        raise NodeFault(f"it gave no {what} ({describe_error(answer)})")
    try:
        return msgspec.json.decode(answer, type=shape)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise NodeFault(f"it gave a {what} that cannot be read") from error
