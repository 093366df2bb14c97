"""A payment is believed only where the receipt, its block, the block's logs and finality fit together."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from roundtrip.chain.blocks.spans import NodeLied
from roundtrip.chain.rpc.client import NO_ANSWER, NULL, Meter, RpcCall, RpcError
from roundtrip.chain.wallet import payments
from roundtrip.chain.wallet.payments import MinedPayment
from roundtrip.chain.wallet.transactions import SentTransaction
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.events import Transferred
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.venues.erc20 import TRANSFER_TOPIC
from support.one_batch import OneBatchNode
from unit.chain.told_transactions import (
    ALICE,
    BLOCK,
    BOB,
    CHAIN,
    ELSE,
    PARENT,
    TOKEN,
    TX,
    a_log,
    a_receipt,
    a_tx,
    bloom,
)

Json = dict[str, Any]
FINAL = "0x" + "f1" * 32


def padded(address: str) -> str:
    return "0x" + "00" * 12 + address[2:]


def amount(raw: int) -> str:
    return f"0x{raw:064x}"


def a_transfer(index: int, sender: str = ALICE, recipient: str = BOB, raw: int = 5, **more: Any) -> Json:
    topics = [TRANSFER_TOPIC, padded(sender), padded(recipient)]
    return a_log(index, topics=topics, data=amount(raw), **more)


PAID = a_transfer(4)
OTHERS = a_transfer(5, sender=BOB, recipient=ALICE)


class PaymentNode(OneBatchNode):
    """A node that answers by method, and by block where that is asked for. ``sent_more``: how many calls more
    than were asked each request took, in turn."""

    def __init__(self) -> None:
        logs = [PAID, OTHERS]
        self.chain: Any = hex(CHAIN)
        self.tx: Any = a_tx()
        self.receipt: Any = a_receipt(*logs)
        self.final: Any = {"number": "0xb", "hash": FINAL, "timestamp": "0x64"}
        self.final_by_number: Any = {"number": "0xb", "hash": FINAL, "timestamp": "0x64"}
        self.block: Any = {
            "number": "0x9", "hash": BLOCK, "timestamp": "0x60", "logsBloom": bloom(*logs, a_log(0)),
            "transactions": [ELSE, TX],
        }  # fmt: skip
        self.logs: Any = [PAID]
        self.sent_more: list[int] = []
        self.asked: list[list[RpcCall]] = []

    async def batch(
        self, calls: Sequence[RpcCall], meter: Meter | None = None, *_: Any, **__: Any
    ) -> list[msgspec.Raw | RpcError]:
        self.asked.append(list(calls))
        assert meter is not None
        meter.trips += 1
        meter.calls += len(calls)
        if calls[-1].method == "eth_getLogs" and self.sent_more:
            meter.calls += self.sent_more.pop(0)
        return [self._answer(call) for call in calls]

    def _answer(self, call: RpcCall) -> msgspec.Raw | RpcError:
        rows = {
            "eth_chainId": self.chain,
            "eth_getTransactionByHash": self.tx,
            "eth_getTransactionReceipt": self.receipt,
            "eth_getLogs": self.logs,
        }
        if call.method == "eth_getBlockByNumber":
            answer = {"finalized": self.final, "0xb": self.final_by_number, "0x9": self.block}[
                str(call.params[0])
            ]
        else:
            answer = rows[call.method]
        if isinstance(answer, RpcError):
            return answer
        if answer is None:
            return NULL if call.method.startswith("eth_getTransaction") else NO_ANSWER
        return msgspec.Raw(msgspec.json.encode(answer))


async def find(node: PaymentNode) -> MinedPayment | SentTransaction | None:
    return await payments.find(node, TxHash(TX), CHAIN, Meter())


async def confirmed(node: PaymentNode) -> MinedPayment:
    found = await find(node)
    assert isinstance(found, MinedPayment)
    await payments.confirm(node, found, Address(TOKEN), Address(ALICE), CHAIN, Meter())
    return found


async def test_a_final_payment_is_read_and_confirmed() -> None:
    node = PaymentNode()
    found = await confirmed(node)
    token, alice, bob = Address(TOKEN), Address(ALICE), Address(BOB)
    assert found.transfers == ((4, Transferred(token, alice, bob, 5)), (5, Transferred(token, bob, alice, 5)))
    assert (found.block_number, found.block_hash, found.place) == (9, BLOCK, 1)
    assert (found.succeeded, found.is_final(), found.finalized.number) == (True, True, 11)
    logs = node.asked[-1][-1].params[0]
    assert logs == {"blockHash": BLOCK, "address": TOKEN, "topics": [TRANSFER_TOPIC, padded(ALICE)]}


async def test_finality_is_asked_of_the_chain_by_requests_one_after_another() -> None:
    node, meter = PaymentNode(), Meter()
    found = await payments.find(node, TxHash(TX), CHAIN, meter)
    assert isinstance(found, MinedPayment)
    assert (meter.trips, meter.calls) == (1, 4), "the first two were asked at once"
    await payments.confirm(node, found, Address(TOKEN), Address(ALICE), CHAIN, meter)
    assert (meter.trips, meter.calls) == (2, 8)


async def test_what_nobody_knows_and_what_is_in_no_block() -> None:
    node = PaymentNode()
    node.tx = node.receipt = None
    assert await find(node) is None
    node.tx = a_tx(blockHash=None, blockNumber=None, transactionIndex=None)
    found = await find(node)
    assert isinstance(found, SentTransaction)


@pytest.mark.parametrize(("final", "is_final"), [("0x8", False), ("0x9", True), ("0xa", True)])
async def test_a_block_is_final_up_to_the_one_that_is(final: str, is_final: bool) -> None:
    node = PaymentNode()
    node.final = node.final | {"number": final}
    found = await find(node)
    assert isinstance(found, MinedPayment)
    assert found.is_final() is is_final


async def test_what_failed_moved_nothing() -> None:
    node = PaymentNode()
    node.receipt = a_receipt(status="0x0")
    found = await find(node)
    assert isinstance(found, MinedPayment)
    assert (found.succeeded, found.transfers) == (False, ())


STRANGE = {
    "four topics": a_log(4, topics=[TRANSFER_TOPIC, padded(ALICE), padded(BOB), amount(5)], data="0x"),
    "an amount that is indexed": a_log(4, topics=[TRANSFER_TOPIC, padded(ALICE), padded(BOB), amount(5)]),
    "two topics": a_log(4, topics=[TRANSFER_TOPIC, padded(ALICE)], data=amount(5)),
    "no topics": a_log(4, topics=[], data=amount(5)),
    "too little data": a_transfer(4) | {"data": "0x" + "00" * 30 + "05"},
    "too much data": a_transfer(4) | {"data": amount(5) + "00"},
    "more than an address": a_log(
        4, topics=[TRANSFER_TOPIC, "0x01" + padded(ALICE)[4:], padded(BOB)], data=amount(5)
    ),
    "more than an address to": a_log(
        4, topics=[TRANSFER_TOPIC, padded(ALICE), "0x01" + padded(BOB)[4:]], data=amount(5)
    ),
    "another event": a_log(4, topics=["0x" + "dd" * 32, padded(ALICE), padded(BOB)], data=amount(5)),
}


@pytest.mark.parametrize("log", STRANGE.values(), ids=STRANGE)
async def test_what_only_looks_like_a_transfer_is_none(log: Json) -> None:
    node = PaymentNode()
    node.receipt = a_receipt(log)
    node.block = node.block | {"logsBloom": bloom(log)}
    node.logs = []
    assert (await confirmed(node)).transfers == ()


async def test_a_receipt_of_very_many_logs_is_read() -> None:
    node = PaymentNode()
    many = [a_transfer(index) for index in range(5_000)]
    node.receipt, node.logs = a_receipt(*many), many
    assert len((await confirmed(node)).transfers) == 5_000


async def test_the_order_in_which_a_node_gives_logs_does_not_matter() -> None:
    node = PaymentNode()
    node.receipt, node.logs = a_receipt(PAID, a_transfer(5)), [a_transfer(5), PAID]
    assert len((await confirmed(node)).transfers) == 2


Change = Callable[[PaymentNode], None]


def put(name: str, **changes: Any) -> Change:
    def changed(node: PaymentNode) -> None:
        setattr(node, name, copy.deepcopy(getattr(node, name)) | changes)

    return changed


def change_answer(name: str, answer: Any) -> Change:
    return lambda node: setattr(node, name, answer)


LIES: dict[str, Change] = {
    "another receipt": put("receipt", transactionHash=ELSE),
    "a receipt of another block": put("receipt", blockHash=ELSE),
    "a removed log": change_answer("receipt", a_receipt(a_transfer(4, removed=True))),
    "a log of another transaction": change_answer("receipt", a_receipt(a_transfer(4, transactionHash=ELSE))),
    "a log of another block": change_answer("receipt", a_receipt(a_transfer(4, blockHash=ELSE))),
    "another block at its number": put("block", hash=ELSE),
    "a block of another number": put("block", number="0x8"),
    "its block without it": put("block", transactions=[ELSE, PARENT]),
    "its block with it elsewhere": put("block", transactions=[TX, ELSE]),
    "its block with fewer": put("block", transactions=[ELSE]),
    "a bloom without its logs": put("block", logsBloom=bloom(a_log(0))),
    "a final block that is none any more": put("final_by_number", hash=ELSE),
    "a final block of another number": put("final_by_number", number="0xc"),
    "a final block beyond all numbers": put("final", number=hex(2**63)),
    "logs with another amount": change_answer("logs", [a_transfer(4, raw=6)]),
    "logs with another recipient": change_answer("logs", [a_transfer(4, recipient=TOKEN)]),
    "logs without it": change_answer("logs", []),
    "logs with one more": change_answer("logs", [PAID, a_transfer(6)]),
    "logs at another place": change_answer("logs", [a_transfer(5)]),
    "logs twice": change_answer("logs", [PAID, PAID]),
    "logs that are removed": change_answer("logs", [a_transfer(4, removed=True)]),
    "logs of another block": change_answer("logs", [a_transfer(4, blockHash=ELSE)]),
    "logs of another transaction": change_answer("logs", [a_transfer(4, transactionHash=ELSE)]),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_what_contradicts_itself_is_no_payment(lie: Change) -> None:
    node = PaymentNode()
    lie(node)
    with pytest.raises(NodeLied):
        await confirmed(node)


REFUSED = RpcError(-32005, "limit exceeded")
UNKNOWN: dict[str, Change] = {
    "another chain": change_answer("chain", "0x1"),
    "no chain": change_answer("chain", REFUSED),
    "no finality": change_answer("final", REFUSED),
    "no final block": change_answer("final", None),
    "no final block by its number": change_answer("final_by_number", None),
    "no block": change_answer("block", None),
    "no receipt": change_answer("receipt", REFUSED),
    "no receipt of what is in a block": change_answer("receipt", None),
    "no transaction": change_answer("tx", REFUSED),
    "no logs": change_answer("logs", REFUSED),
    "logs that are none": change_answer("logs", {"a": 1}),
    "a finality that is no block": change_answer("final", "0xb"),
    "a number that is none": put("final", number="b"),
    "a block with odd hashes": put("block", transactions=[TX, "0x12"]),
    "a log with odd data": change_answer("logs", [PAID | {"data": "0x0"}]),
    "a log with odd topics": change_answer("logs", [PAID | {"topics": [TRANSFER_TOPIC, "0x12"]}]),
    "a log with an odd address": change_answer("logs", [PAID | {"address": "0x 0" + TOKEN[4:]}]),
}


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN)
async def test_what_could_not_be_found_out_is_a_fault_of_the_node(unknown: Change) -> None:
    node = PaymentNode()
    unknown(node)
    with pytest.raises(NodeFault):
        await confirmed(node)


async def test_the_chain_may_turn_out_to_be_another_one_after_the_receipt() -> None:
    node = PaymentNode()
    found = await find(node)
    assert isinstance(found, MinedPayment)
    node.chain = "0x1"
    with pytest.raises(NodeFault):
        await payments.confirm(node, found, Address(TOKEN), Address(ALICE), CHAIN, Meter())


async def test_answers_put_together_from_several_nodes_are_asked_for_again() -> None:
    node = PaymentNode()
    node.sent_more = [1]
    assert (await confirmed(node)).is_final()
    assert len(node.asked) == 4
    node.sent_more = [1, 2]
    with pytest.raises(NodeFault, match="several nodes"):
        await confirmed(node)


async def test_only_the_wallets_own_transfers_have_to_agree() -> None:
    node = PaymentNode()
    found = await find(node)
    assert isinstance(found, MinedPayment)
    # Logs of the same block, and of the same wallet, in other transactions.
    node.logs = [a_transfer(2, transactionHash=ELSE), PAID, a_transfer(9, transactionHash=PARENT)]
    await payments.confirm(node, found, Address(TOKEN), Address(ALICE), CHAIN, Meter())
    # Logs of the same transaction: another sender's, another token's, and no transfer.
    node.logs = [a_log(3), PAID, OTHERS, a_transfer(6, address=ELSE[:42])]
    await payments.confirm(node, found, Address(TOKEN), Address(ALICE), CHAIN, Meter())
