"""A transaction and its receipt are believed only where they, and the block, say the same."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from roundtrip.chain.blocks.spans import NodeLied
from roundtrip.chain.rpc.client import NULL, Meter, RpcCall, RpcError
from roundtrip.chain.wallet.transactions import read_block, read_change, read_reason, read_transaction
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, TxHash
from support.one_batch import OneBatchNode
from unit.chain.told_transactions import (
    ALICE,
    BLOCK,
    BOB,
    CHAIN,
    ELSE,
    MINER,
    PARENT,
    TX,
    Json,
    a_log,
    a_receipt,
    a_tx,
    bloom,
)


def a_block(**more: Any) -> Json:
    inside = [
        {"hash": ELSE, "from": ALICE, "type": "0x6a"},
        {"hash": TX, "from": ALICE, "type": "0x2"},
        {"hash": PARENT, "from": BOB, "type": "0x2"},
    ]
    answer = {"number": "0x9", "hash": BLOCK, "parentHash": PARENT, "timestamp": "0x64", "miner": MINER}
    return answer | {"transactions": inside} | more


class MethodNode(OneBatchNode):
    """A node with one answer to each method, or one after another."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[RpcCall] = []

    async def batch(self, calls: Sequence[RpcCall], *_: Any, **__: Any) -> list[msgspec.Raw | RpcError]:
        self.asked += calls
        return [self._answer(call) for call in calls]

    def _answer(self, call: RpcCall) -> msgspec.Raw | RpcError:
        answer = self.answers[call.method.removeprefix("eth_")]
        one = answer.pop(0) if isinstance(answer, list) else answer
        if isinstance(one, RpcError):
            return one
        return NULL if one is None else msgspec.Raw(msgspec.json.encode(one))


def node(tx: Any, receipt: Any, chain: int = CHAIN) -> MethodNode:
    return MethodNode(chainId=hex(chain), getTransactionByHash=tx, getTransactionReceipt=receipt)


async def read(asked: MethodNode) -> Any:
    return await read_transaction(asked, TxHash(TX), CHAIN, Meter())


async def test_it_is_read() -> None:
    sent, mined = await read(node(a_tx(), a_receipt(a_log(4), a_log(5))))
    assert (sent.sender, sent.to, sent.value_wei, sent.data, sent.block) == (
        ALICE, BOB, 5, b"\x12\x34", (9, BLOCK, 1),
    )  # fmt: skip
    assert (mined.succeeded, mined.fee_wei(), mined.created) == (True, 2 * 0x5208, None)
    assert [index for index, _ in mined.logs] == [4, 5]
    around = read_block(msgspec.Raw(msgspec.json.encode(a_block())), sent)
    assert (around.ref.number, around.ref.timestamp_s, around.parent_hash) == (9, 100, PARENT)
    assert (around.others, around.by_sender, around.miner) == (1, 0, MINER), "the chain's own do not count"


async def test_what_nobody_knows_is_none_and_what_is_in_no_block_has_no_receipt() -> None:
    assert await read(node(None, None)) is None
    nowhere = a_tx(blockHash=None, blockNumber=None, transactionIndex=None)
    sent, mined = await read(node(nowhere, None))
    assert (sent.block, mined) == (None, None)


async def test_a_block_made_while_it_answers_is_the_receipts() -> None:
    nowhere = a_tx(blockHash=None, blockNumber=None, transactionIndex=None)
    sent, mined = await read(node(nowhere, a_receipt()))
    assert (sent.block, mined.succeeded) == ((9, BLOCK, 1), True)


async def test_answers_that_do_not_fit_are_asked_for_once_more() -> None:
    asked = node([a_tx(blockHash=ELSE), a_tx()], [a_receipt(), a_receipt()])
    assert (await read(asked))[0].block == (9, BLOCK, 1)
    assert len(asked.asked) == 6


LIES: dict[str, tuple[Any, Any]] = {
    "another transaction": (a_tx(hash=ELSE), a_receipt()),
    "of another chain": (a_tx(chainId="0x1"), a_receipt()),
    "a block and no place": (a_tx(transactionIndex=None), a_receipt()),
    "no transaction but a receipt": (None, a_receipt()),
    "another's receipt": (a_tx(), a_receipt(transactionHash=ELSE)),
    "another block's receipt": (a_tx(), a_receipt(blockHash=ELSE)),
    "another number": (a_tx(), a_receipt(blockNumber="0x8")),
    "another place": (a_tx(), a_receipt(transactionIndex="0x0")),
    "another sender": (a_tx(), a_receipt(**{"from": BOB})),
    "another target": (a_tx(), a_receipt(to=ALICE)),
    "more gas than it had": (a_tx(), a_receipt(gasUsed="0x5209")),
    "a status of two": (a_tx(), a_receipt(status="0x2")),
    "logs of what failed": (a_tx(), a_receipt(a_log(4), status="0x0")),
    "a log left out": (a_tx(), a_receipt(a_log(4), logsBloom=bloom(a_log(4), a_log(5, address=BOB)))),
    "a log made up": (a_tx(), a_receipt(a_log(4), logsBloom=bloom())),
    "a log of another": (a_tx(), a_receipt(a_log(4, transactionHash=ELSE))),
    "a log of another block": (a_tx(), a_receipt(a_log(4, blockHash=ELSE))),
    "a removed log": (a_tx(), a_receipt(a_log(4, removed=True))),
    "a price that cannot be": (a_tx(), a_receipt(effectiveGasPrice=hex(2**96))),
    "a block that cannot be": (a_tx(blockNumber=hex(2**63)), a_receipt(blockNumber=hex(2**63))),
    "a gap": (a_tx(), a_receipt(a_log(4), a_log(6))),
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_told_from_an_answer(lie: str) -> None:
    with pytest.raises(NodeLied):
        await read(node(*LIES[lie]))


@pytest.mark.parametrize(
    ("tx", "receipt"),
    [
        (RpcError(0), a_receipt()),
        (a_tx(), RpcError(-32000)),
        (a_tx(), None),
        (RpcError(0), None),
        (a_tx(value=5), a_receipt()),
        (a_tx(), a_receipt(logs=7)),
        (a_tx(), {key: value for key, value in a_receipt().items() if key != "effectiveGasPrice"}),
        (a_tx(), a_receipt(logs=[a_log(4, topics=["0x1"])])),
    ],
)
async def test_what_cannot_be_read_is_no_account(tx: Any, receipt: Any) -> None:
    """No answer to a transaction is not the answer that there is none."""
    with pytest.raises(NodeFault):
        await read(node(tx, receipt))


async def test_another_chain_is_a_fault() -> None:
    with pytest.raises(NodeFault):
        await read(node(a_tx(), a_receipt(), chain=1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"hash": ELSE},
        {"number": "0x8"},
        {"transactions": []},
        {"transactions": [{"hash": ELSE, "from": BOB}] * 2},
        {"timestamp": "0x80000000"},
    ],
)
async def test_a_block_that_does_not_have_it_is_a_lie(wrong: Json) -> None:
    sent, _ = await read(node(a_tx(), a_receipt()))
    with pytest.raises(NodeLied):
        read_block(msgspec.Raw(msgspec.json.encode(a_block(**wrong))), sent)


async def test_a_state_that_is_gone_tells_no_change() -> None:
    sent, _ = await read(node(a_tx(), a_receipt()))
    around = read_block(msgspec.Raw(msgspec.json.encode(a_block())), sent)
    both = MethodNode(getBalance=["0x9", "0x4"])
    assert await read_change(both, Address(ALICE), 9, around, Meter()) == -5
    assert [call.params[1] for call in both.asked] == [{"blockHash": PARENT}, {"blockHash": BLOCK}]
    gone = MethodNode(getBalance=["0x9", RpcError(-32000, "missing trie node")])
    assert await read_change(gone, Address(ALICE), 0, around, Meter()) is None


@pytest.mark.parametrize(("before", "after"), [(8, 4), (0, 0), (2**128, 4), (9, 2**128)])
async def test_a_balance_that_cannot_be_tells_no_change(before: int, after: int) -> None:
    """Before the block its sender had what it sent and the fee, at least: 9."""
    sent, _ = await read(node(a_tx(), a_receipt()))
    around = read_block(msgspec.Raw(msgspec.json.encode(a_block())), sent)
    asked = MethodNode(getBalance=[hex(before), hex(after)])
    assert await read_change(asked, Address(ALICE), 9, around, Meter()) is None


ERROR = "0x08c379a0" + "20".rjust(64, "0") + "3".rjust(64, "0") + b"no!".hex().ljust(64, "0")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (RpcError(3, "execution reverted: no!", msgspec.Raw(f'"{ERROR}"'.encode())), "no!"),
        (RpcError(3, "execution reverted"), ""),
        (RpcError(3, "execution reverted", msgspec.Raw(b'"0x"')), ""),
        (RpcError(-32000, "missing trie node"), None),
        (RpcError(-32603, "EVM error OutOfGas"), "out of gas"),
        (RpcError(-32000, "out of gas"), "out of gas"),
        (RpcError(-32603, "EVM error InvalidFEOpcode"), None),
        (RpcError(3, "execution reverted: out of gas"), ""),
        ("0x", None),
    ],
)
async def test_why_it_failed_is_found_by_running_it_again(answer: Any, reason: str | None) -> None:
    sent, _ = await read(node(a_tx(), a_receipt(status="0x0")))
    around = read_block(msgspec.Raw(msgspec.json.encode(a_block())), sent)
    asked = MethodNode(call=answer)
    assert await read_reason(asked, sent, around, Meter()) == reason
    ((call, block),) = [one.params for one in asked.asked]
    assert block == {"blockHash": PARENT}
    assert call == {"from": ALICE, "to": BOB, "data": "0x1234", "value": "0x5", "gas": "0x5208"}
