"""When a token's code came onto scripted chains, and by whom; and where that cannot be found out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from eth_utils.crypto import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.holders.first_block import (
    NoArchive,
    TokenCreation,
    contract_address,
    find_creation,
    find_first_block,
)
from roundtrip.chain.rpc.client import NO_ANSWER, Meter, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.venues.entry_point import ENTRY_POINTS
from support.one_batch import OneBatchNode
from unit.chain.samples import raw
from unit.venues import logs
from unit.venues.network import address

TOKEN, BUSY, OTHER, BUNDLER, ACCOUNT = (address(0xA0 + number) for number in range(5))
ENTRY_POINT = min(ENTRY_POINTS)
PRUNED = RpcError(-32000, "missing trie node 01ab (path )")
Answer = msgspec.Raw | RpcError


def word(number: int) -> str:
    return f"0x{number:064x}"


def tx(number: int, sender: str, to: str | None, nonce: int, type_: str = "0x2") -> dict[str, Any]:
    return {
        "hash": word(number), "from": sender, "to": to, "value": "0x0", "nonce": hex(nonce), "input": "0x",
        "type": type_,
    }  # fmt: skip


@dataclass
class CreationNode(OneBatchNode):
    """A chain of ``blocks``, in each of which a busy sender does something; the token's code is there from
    ``made`` on. ``said``: answers otherwise. ``kept``: states before that block are gone; None: all are
    there. ``honest`` False: it answers zeros for what is gone, and says nothing."""

    blocks: int
    made: int | None
    kept: int = 0
    honest: bool = True
    busy: bool = True
    answer_of: Callable[[RpcCall], Answer | None] = lambda call: None
    trips: list[list[RpcCall]] = field(default_factory=list)

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Answer]:
        self.trips.append(list(calls))
        return [self.answer_of(call) or self._answer(call) for call in calls]

    def ref(self, number: int) -> BlockRef:
        return BlockRef(number, word(0xB10C0000 + number), 9000 + number // 10)

    def _answer(self, call: RpcCall) -> Answer:
        if call.method == "eth_getBlockByNumber":
            number = int(str(call.params[0]), 16)
            ref = self.ref(number)
            own = [tx(number, BUSY, OTHER, number)] if self.busy else []
            found = {"number": hex(number), "hash": ref.hash, "timestamp": hex(ref.timestamp_s)}
            return raw(
                found | {"parentHash": self.ref(number - 1).hash if number else word(0), "transactions": own}
            )
        number = int(str(call.params[1]), 16)
        if number < self.kept and self.honest:
            return PRUNED
        there = number >= self.kept
        if call.method == "eth_getCode":
            return raw("0x6001" if there and self.made is not None and number >= self.made else "0x")
        if call.params[0] == BUSY and there:
            return raw(hex(number + 1))
        return raw("0x0")


# --- when ------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2000), st.data())
async def test_the_first_block_with_code_is_found_anywhere(high: int, data: st.DataObject) -> None:
    made = data.draw(st.integers(0, high))
    node = CreationNode(high + 1, made)
    assert await find_first_block(node, TOKEN, node.ref(high)) == node.ref(made)
    assert len(node.trips) <= 3 + 2


async def test_a_chain_of_a_hundred_million_blocks_takes_nine_trips() -> None:
    node = CreationNode(10**8, 61_234_567)
    found = await find_first_block(node, TOKEN, node.ref(10**8))
    assert found is not None
    assert found.number == 61_234_567
    assert len(node.trips) <= 9


async def test_where_there_is_no_code_nothing_is_found() -> None:
    node = CreationNode(1001, None)
    assert await find_first_block(node, TOKEN, node.ref(1000)) is None


async def test_a_node_that_knows_the_newest_block_and_no_older_one_is_no_archive() -> None:
    """In these words a node says so that keeps few blocks, and one that has not got so far."""
    unknown = RpcError(-32602, "BlockOutOfRangeError: block height is 1000 but requested was 5")
    node = CreationNode(1001, 600, answer_of=lambda call: unknown if call.params[1] == hex(562) else None)
    with pytest.raises(NoArchive):
        await find_first_block(node, TOKEN, node.ref(1000))
    node = CreationNode(1001, 600, answer_of=lambda call: unknown if call.method == "eth_getCode" else None)
    assert await find_first_block(node, TOKEN, node.ref(1000)) is None


@pytest.mark.parametrize("kept", [601, 700, 1000])
async def test_a_node_that_says_that_it_has_no_state_is_no_archive(kept: int) -> None:
    node = CreationNode(1001, 600, kept)
    with pytest.raises(NoArchive):
        await find_first_block(node, TOKEN, node.ref(1000))


@pytest.mark.parametrize("kept", [601, 700, 1000])
async def test_a_node_whose_zeros_end_somewhere_is_found_out(kept: int) -> None:
    """Its first block with code is just the first one that it kept."""
    node = CreationNode(1001, 600, kept, honest=False)
    with pytest.raises(NoArchive):
        await find_first_block(node, TOKEN, node.ref(1000))


async def test_where_nobody_is_around_it_is_not_known() -> None:
    node = CreationNode(1001, 600, busy=False)
    assert await find_first_block(node, TOKEN, node.ref(1000)) is None


@pytest.mark.parametrize(
    "answer",
    [RpcError(-32603, "crashed"), NO_ANSWER, raw(7), raw("0xzz"), raw(None)],
    ids=["error", "none", "number", "no hex", "null"],
)
@pytest.mark.parametrize("method", ["eth_getCode", "eth_getBlockByNumber", "eth_getTransactionCount"])
async def test_an_answer_that_is_none_is_not_known(method: str, answer: Answer) -> None:
    node = CreationNode(1001, 600, answer_of=lambda call: answer if call.method == method else None)
    assert await find_first_block(node, TOKEN, node.ref(1000)) is None


async def test_code_that_comes_and_goes_is_not_known() -> None:
    node = CreationNode(1001, 600)
    node.answer_of = lambda call: (
        raw("0x") if call.method == "eth_getCode" and 900 < int(str(call.params[1]), 16) < 999 else None
    )
    assert await find_first_block(node, TOKEN, node.ref(1000)) is None


async def test_another_chain_than_was_pinned_is_not_known() -> None:
    node = CreationNode(1001, 600)
    assert await find_first_block(node, TOKEN, BlockRef(1000, word(7), 9100)) is None


async def test_a_second_answer_that_differs_is_not_known() -> None:
    """What decided is asked for once more."""
    for number, code in ((600, "0x"), (599, "0x60")):
        asked: list[int] = []

        def answer_of(
            call: RpcCall, number: int = number, code: str = code, asked: list[int] = asked
        ) -> Answer | None:
            if call.method != "eth_getCode" or call.params[1] != hex(number):
                return None
            asked.append(number)
            return raw(code) if len(asked) > 1 else None

        node = CreationNode(1001, 600, answer_of=answer_of)
        assert await find_first_block(node, TOKEN, node.ref(1000)) is None
        assert len(asked) == 2


# --- by whom ---------------------------------------------------------------------------------------

AT = BlockRef(60, word(0xB10C), 9006)
LAUNCH = TxHash(word(2))


@dataclass
class Made60(OneBatchNode):
    """The block, with transactions and what they logged."""

    transactions: list[dict[str, Any]]
    logged: dict[str, list[Any]] = field(default_factory=dict)
    twist: Callable[[str, Any], Any] = lambda method, answer: answer
    asked: list[str] = field(default_factory=list)

    async def batch(self, calls: Sequence[RpcCall], *more: Any, **others: Any) -> list[Answer]:
        found = []
        for call in calls:
            self.asked.append(call.method)
            answer = self.twist(call.method, self._answer(call))
            found.append(answer if isinstance(answer, RpcError) else raw(answer))
        return found

    def _answer(self, call: RpcCall) -> Any:
        if call.method == "eth_getBlockByNumber":
            return {"number": hex(AT.number), "hash": AT.hash, "transactions": self.transactions}
        if call.method == "eth_getLogs":
            (wanted,) = call.params
            assert wanted["blockHash"] == AT.hash  # type: ignore[index]
            return [
                log
                for tx_hash in self.logged
                for log in self._logs(tx_hash)
                if log["address"] == wanted["address"]  # type: ignore[index]
            ]
        assert call.method == "eth_getTransactionReceipt"
        tx_hash = str(call.params[0])
        return {"blockHash": AT.hash, "transactionHash": tx_hash, "logs": self._logs(tx_hash)}

    def _logs(self, tx_hash: str) -> list[dict[str, object]]:
        place = {"blockNumber": hex(AT.number), "blockHash": AT.hash, "transactionHash": tx_hash}
        place |= {"transactionIndex": "0x0", "logIndex": "0x0"}
        return [
            {"address": log.address, "topics": list(log.topics), "data": "0x" + log.data.hex(), **place}
            for log in self.logged[tx_hash]
        ]


MINT = logs.TRANSFER.log(TOKEN, address(0), OTHER, 5)
ELSEWHERE = logs.TRANSFER.log(OTHER, address(0), OTHER, 5)
EXECUTING = logs.EXECUTING.log(ENTRY_POINT)


def operated(account: Address) -> Any:
    return logs.OPERATION.log(ENTRY_POINT, b"\1" * 32, account, address(0), 1, True, 1, 1)


LAUNCHING = [tx(1, BUSY, OTHER, 1), tx(2, BUNDLER, ENTRY_POINT, 5)]


def test_addresses_of_contracts_are_those_of_the_yellow_paper() -> None:
    """The first deployments of a well-known key, as every local node has them."""
    sender = Address("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
    assert contract_address(sender, 0) == "0x5fbdb2315678afecb367f032d93f642f64180aa3"
    assert contract_address(sender, 1) == "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512"


@given(st.integers(0, 2**64 - 2))
def test_any_nonce_is_written_as_rlp_writes_it(nonce: int) -> None:
    """Written another way: length by length."""
    digits = f"{nonce:x}"
    digits = "" if nonce == 0 else digits.rjust(len(digits) + len(digits) % 2, "0")
    number = digits if 0 < nonce < 128 else f"{128 + len(digits) // 2:02x}{digits}"
    body = "94" + BUSY[2:] + number
    expected = keccak(bytes.fromhex(f"{192 + len(body) // 2:02x}{body}"))[12:].hex()
    assert contract_address(BUSY, nonce) == "0x" + expected


async def test_who_sent_the_contract_itself_deployed_it() -> None:
    token = contract_address(BUNDLER, 7)
    node = Made60([tx(1, BUSY, None, 7), tx(2, BUNDLER, None, 6), tx(3, BUNDLER, None, 7)])
    assert await find_creation(node, token, AT) == TokenCreation(BUNDLER, TxHash(word(3)), "deployment")
    assert node.asked == ["eth_getBlockByNumber"]


async def test_who_called_somebody_deployed_nothing_nor_who_did_in_another_block() -> None:
    token = contract_address(BUNDLER, 7)
    assert await is_unknown(Made60([tx(3, BUNDLER, OTHER, 7)]), token, AT)
    node = Made60([tx(3, BUNDLER, None, 7)])
    assert await is_unknown(node, token, BlockRef(AT.number, word(5), AT.timestamp_s))


@pytest.mark.parametrize("first_tx", [LAUNCH, None])
async def test_else_who_sent_its_first_log_launched_it(first_tx: TxHash | None) -> None:
    node = Made60(LAUNCHING, {word(1): [ELSEWHERE], word(2): [ELSEWHERE, MINT]})
    assert await find_creation(node, TOKEN, AT, first_tx) == TokenCreation(BUNDLER, LAUNCH, "launch_tx")


async def test_of_an_operation_the_account_launched_it() -> None:
    logged = [EXECUTING, ELSEWHERE, operated(OTHER), MINT, operated(ACCOUNT), MINT]
    node = Made60(LAUNCHING, {word(2): logged})
    assert await find_creation(node, TOKEN, AT) == TokenCreation(ACCOUNT, LAUNCH, "launch_tx")
    node = Made60(LAUNCHING, {word(2): [MINT, *logged]})
    assert await find_creation(node, TOKEN, AT) == TokenCreation(BUNDLER, LAUNCH, "launch_tx")


async def test_who_is_not_told_is_not_known() -> None:
    assert await is_unknown(Made60(LAUNCHING), TOKEN, AT)
    assert await is_unknown(Made60(LAUNCHING, {word(2): [ELSEWHERE]}), TOKEN, AT, LAUNCH)
    assert await is_unknown(Made60(LAUNCHING, {word(3): [MINT]}), TOKEN, AT)
    assert await is_unknown(Made60(LAUNCHING, {word(2): [MINT]}), TOKEN, AT, TxHash(word(9)))


async def is_unknown(node: Any, token: Address, first: BlockRef, first_tx: TxHash | None = None) -> bool:
    """Whether nobody is named, be it that nothing tells or that the node does not."""
    try:
        return await find_creation(node, token, first, first_tx) is None
    except NodeFault:
        return True


@pytest.mark.parametrize("method", ["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionReceipt"])
async def test_what_the_node_did_not_say_is_no_answer(method: str) -> None:
    """Else a token that was asked of in a bad moment would have no deployer for ever."""
    node = Made60(LAUNCHING, {word(2): [MINT]})
    node.twist = lambda asked, answer: RpcError(-32000, "crashed") if asked == method else answer
    with pytest.raises(NodeFault):
        await find_creation(node, TOKEN, AT)


async def test_of_what_it_says_in_another_form_more_asking_would_not_help() -> None:
    node = Made60(LAUNCHING, {word(2): [MINT]})
    node.twist = lambda asked, answer: 7 if asked == "eth_getBlockByNumber" else answer
    assert await find_creation(node, TOKEN, AT) is None


@pytest.mark.parametrize("method", ["eth_getBlockByNumber", "eth_getLogs", "eth_getTransactionReceipt"])
@pytest.mark.parametrize(
    "otherwise",
    [
        lambda answer: RpcError(-32000, "crashed"),
        lambda answer: None,
        lambda answer: 7,
        lambda answer: (
            [one | {"blockHash": word(5)} for one in answer]
            if isinstance(answer, list)
            else answer | {"hash": word(5), "blockHash": word(5)}
        ),
        lambda answer: (
            [one | {"address": OTHER} for one in answer]
            if isinstance(answer, list)
            else answer | {"number": "0x7", "transactionHash": word(5)}
        ),
    ],
    ids=["error", "null", "number", "another block", "another thing"],
)
async def test_what_is_not_what_was_asked_for_is_not_known(
    method: str, otherwise: Callable[[Any], Any]
) -> None:
    node = Made60(LAUNCHING, {word(2): [MINT]})
    node.twist = lambda asked, answer: otherwise(answer) if asked == method else answer
    assert await is_unknown(node, TOKEN, AT)


async def test_a_spent_budget_is_told() -> None:
    class Spent:
        async def batch(self, *asked: Any, **more: Any) -> list[Answer]:
            raise ServiceFull("budget_spent", "no more")

        async def batches(self, *asked: Any) -> Any:
            raise ServiceFull("budget_spent", "no more")

    with pytest.raises(ServiceFull):
        await find_first_block(Spent(), TOKEN, AT)
    with pytest.raises(ServiceFull):
        await find_creation(Spent(), TOKEN, AT)
