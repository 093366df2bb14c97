"""Reads of a token's holders and of what ties them; whatever cannot be read is None."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.holders import views as holder_views
from roundtrip.chain.holders.views import (
    CALLS_A_BATCH,
    MAX_BLOCKS,
    FirstFunding,
    FunderPayment,
    Views,
    fetch_views,
    find_entry_point_txs,
    find_funding_txs,
    had_before,
    view_calls,
)
from roundtrip.chain.rpc.client import NO_ANSWER, Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address, BlockRef, TxHash
from roundtrip.venues.entry_point import ENTRY_POINTS
from unit.chain.samples import raw
from unit.venues import logs
from unit.venues.network import address

CHAIN_ID = 4663
TOKEN, A, B, C = address(0x70CE), address(0xA1), address(0xA2), address(0xA3)
D, RICH = address(0xA4), address(0x41C4)
PINNED = BlockRef(7, "0x" + "07" * 32, 70)
GAS = 300_000
Reply = Callable[[RpcCall], Any]


@dataclass
class ViewsNode:
    """Answers each call as ``reply`` does: JSON, an RpcError, or an exception for the whole batch."""

    reply: Reply
    groups: list[list[RpcCall]] = field(default_factory=list)

    async def batch(self, calls: Sequence[RpcCall], *more: Any, **others: Any) -> Any:
        raise AssertionError("all at once")

    async def batches(self, groups: Sequence[Sequence[RpcCall]], meter: Meter) -> Any:
        results: list[Any] = []
        for group in groups:
            self.groups.append(list(group))
            answers = [self.reply(call) for call in group]
            fault = next((answer for answer in answers if isinstance(answer, Exception)), None)
            if fault is not None and not isinstance(fault, NodeFault):
                raise fault
            results.append(fault or [text if isinstance(text, RpcError) else raw(text) for text in answers])
        return results


def word(value: int) -> str:
    return f"0x{value:064x}"


SUPPLY = word(1000)


def answer_views(
    balances: dict[Address, Any], supply: Any = SUPPLY, codes: dict[Address, Any] | None = None
) -> Reply:
    def reply(call: RpcCall) -> Any:
        if call.method == "eth_chainId":
            return hex(CHAIN_ID)
        if call.method == "eth_getCode":
            return (codes or {}).get(Address(str(call.params[0])), "0x")
        asked: Any = call.params[0]
        if asked["data"] == "0x18160ddd":
            return supply
        return balances[Address("0x" + asked["data"][-40:])]

    return reply


async def seen(node: ViewsNode, wallets: Sequence[Address], unknown: Sequence[Address] = ()) -> Views:
    return await fetch_views(node, TOKEN, wallets, unknown, PINNED, GAS, CHAIN_ID, Meter())


# --- what is read ---------------------------------------------------------------------------------


async def test_balances_codes_and_supply_are_read() -> None:
    node = ViewsNode(answer_views({A: word(5), B: word(0)}, codes={B: "0x6001", C: "0xef0100" + "ab" * 20}))
    views = await seen(node, [B, A, A], [A, B, C])
    assert views == Views(1000, {A: 5, B: 0}, {A: False, B: True, C: False})
    assert [call.method for group in node.groups for call in group].count("eth_chainId") == 1


async def test_everything_is_pinned_and_no_call_may_use_more_gas_than_that() -> None:
    for call in [each for group in view_calls(TOKEN, [A], [B], PINNED, GAS) for each in group][1:]:
        assert call.params[1] == {"blockHash": PINNED.hash}
        if call.method == "eth_call":
            assert call.params[0]["gas"] == hex(GAS)  # type: ignore[index]
            assert call.params[0]["to"] == TOKEN  # type: ignore[index]


@given(st.integers(0, 350), st.integers(0, 350))
async def test_however_many_are_asked_for_each_gets_its_own(wallets: int, unknown: int) -> None:
    holders = [address(0x1000 + number) for number in range(wallets)]
    strangers = [address(0x9000 + number) for number in range(unknown)]
    codes = dict.fromkeys(strangers[::3], "0x60")
    node = ViewsNode(answer_views({wallet: word(int(wallet, 16)) for wallet in holders}, codes=codes))
    views = await seen(node, holders, strangers)
    assert views.balances == {wallet: int(wallet, 16) for wallet in holders}
    assert views.contracts == {wallet: wallet in codes for wallet in strangers}
    assert max(map(len, node.groups)) <= CALLS_A_BATCH


@pytest.mark.parametrize(
    "unreadable",
    [
        RpcError(3, "execution reverted"),
        RpcError(-32000, "out of gas"),
        NO_ANSWER,
        "0x",
        "0x12",
        "five",
        7,
        None,
        [],
    ],
)
async def test_what_cannot_be_read_is_not_nothing_and_harms_nobody_else(unreadable: Any) -> None:
    node = ViewsNode(answer_views({A: unreadable, B: word(6)}, codes={A: unreadable}))
    assert await seen(node, [A, B], [B]) == Views(1000, {A: None, B: 6}, {B: False})
    assert (await seen(ViewsNode(answer_views({B: word(6)}, unreadable)), [B])).supply_raw is None


async def test_a_token_that_answers_with_too_much_hides_no_codes_nor_other_batches() -> None:
    many = [address(0x1000 + number) for number in range(150)]
    text = answer_views({wallet: word(1) for wallet in many[1:]} | {many[0]: NodeAnswerTooLarge("too large")})
    views = await seen(ViewsNode(text), many, [A])
    assert views.contracts == {A: False}
    assert views.supply_raw is None
    # The supply is the first call of the first batch of balances.
    assert [views.balances[wallet] for wallet in many] == [None] * (CALLS_A_BATCH - 1) + [1] * 51


@pytest.mark.parametrize("chain", ["0x1", RpcError(-32000, "no"), NodeFault("gone")])
async def test_a_node_of_another_chain_is_not_read(chain: Any) -> None:
    text = answer_views({A: word(5)})
    with pytest.raises(NodeFault):
        await seen(ViewsNode(lambda call: chain if call.method == "eth_chainId" else text(call)), [A])


async def test_a_spent_budget_is_raised() -> None:
    with pytest.raises(ServiceFull):
        await seen(ViewsNode(lambda call: ServiceFull("budget_spent", "no more")), [A])


# --- what ties them --------------------------------------------------------------------------------

ENTRY_POINT = max(ENTRY_POINTS)
MOVE = logs.TRANSFER.log(TOKEN, A, B, 5)
OPERATED = logs.OPERATION.log(ENTRY_POINT, b"\1" * 32, A, address(0), 1, True, 1, 1)
SAYS_SO_TOO = logs.OPERATION.log(TOKEN, b"\1" * 32, A, address(0), 1, True, 1, 1)


def receipts(logged: dict[str, Any]) -> Reply:
    def reply(call: RpcCall) -> Any:
        own = logged[str(call.params[0])]
        if not isinstance(own, list):
            return own
        written = [{"address": o.address, "topics": list(o.topics), "data": "0x" + o.data.hex()} for o in own]
        return {"blockHash": word(1), "transactionHash": call.params[0], "logs": written}

    return reply


def hashes(count: int) -> list[TxHash]:
    return [TxHash(word(number)) for number in range(count)]


async def test_transactions_of_operations_are_known_by_an_entry_points_own_log() -> None:
    first, second, third, fourth, fifth = hashes(5)
    other = {"blockHash": word(1), "transactionHash": word(99), "logs": []}
    text = receipts(
        {
            first: [MOVE, OPERATED],
            second: [MOVE, SAYS_SO_TOO],
            third: [],
            fourth: RpcError(message="none"),
            fifth: other,
        }
    )
    operated = await find_entry_point_txs(ViewsNode(text), hashes(5), Meter())
    assert operated == {first: True, second: False, third: False, fourth: None, fifth: None}


async def test_receipts_of_a_batch_that_fails_are_not_known_and_the_others_are() -> None:
    every = hashes(2 * holder_views.RECEIPTS_A_BATCH)
    logged: dict[str, Any] = {tx_hash: [] for tx_hash in every}
    logged[every[3]] = NodeFault("gone")
    operated = await find_entry_point_txs(ViewsNode(receipts(logged)), every, Meter())
    assert [operated[tx_hash] for tx_hash in every] == [None] * 20 + [False] * 20
    assert await find_entry_point_txs(ViewsNode(receipts({})), [], Meter()) == {}


def sent(number: int, sender: Address, to: Address | None, **more: str) -> dict[str, Any]:
    plain = {"hash": word(number), "value": "0x5", "nonce": "0x0", "input": "0x", "type": "0x2"}
    return {**plain, "from": sender, "to": to, **more}


async def test_the_plain_transfer_that_funded_a_wallet_is_found() -> None:
    blocks = {
        5: [
            sent(1, A, C),
            sent(2, A, B, input="0x60"),
            sent(3, A, B, value="0x0"),
            sent(4, A, B),
            sent(5, A, B),
        ],
        6: [sent(6, A, None), sent(7, B, C, type="0x64")],
    }

    def reply(call: RpcCall) -> Any:
        number = int(str(call.params[0]), 16)
        if number not in blocks:
            return None
        return {"number": hex(number), "hash": word(number), "transactions": blocks[number]}

    wanted = [FirstFunding(A, B, 5), FirstFunding(A, C, 5), FirstFunding(B, TOKEN, 5)]
    assert await find_funding_txs(ViewsNode(reply), wanted, Meter()) == {
        B: FunderPayment(TxHash(word(4)), 10),
        C: FunderPayment(TxHash(word(1)), 5),
        TOKEN: None,
    }
    assert await find_funding_txs(
        ViewsNode(reply), [FirstFunding(B, C, 6), FirstFunding(A, B, 7)], Meter()
    ) == {C: None, B: None}
    assert await find_funding_txs(ViewsNode(reply), [], Meter()) == {}


@pytest.mark.parametrize("fault", [NodeFault("gone"), RpcError(-32000, "no"), 7, {"number": "0x1"}])
async def test_a_block_that_is_not_given_is_not_known(fault: Any) -> None:
    assert await find_funding_txs(ViewsNode(lambda call: fault), [FirstFunding(A, B, 5)], Meter()) == {
        B: None
    }


async def test_who_had_something_before() -> None:
    have: dict[tuple[Address, int], tuple[int, int]] = {
        (A, 4): (0, 7), (B, 8): (1, 0), (C, 9): (0, 0), (D, 0): (0, 0),
        **{(RICH, number): (0, 1) for number in (4, 8, 9)}, (RICH, 0): (0, 0),
    }  # fmt: skip

    def reply(call: RpcCall) -> Any:
        wallet, number = Address(str(call.params[0])), int(str(call.params[1]), 16)
        if (wallet, number) not in have:
            return RpcError(-32000, "missing trie node")
        nonce, balance = have[wallet, number]
        return hex(nonce if call.method == "eth_getTransactionCount" else balance)

    asked = [(A, 5), (B, 9), (C, 10), (D, 0), (TOKEN, 3)]
    had_something = await had_before(ViewsNode(reply), asked, RICH, Meter())
    # D: at a block where even the rich wallet has nothing, the node may have dropped the state.
    assert had_something == {A: True, B: True, C: False, D: None, TOKEN: None}
    assert await had_before(ViewsNode(lambda call: NodeFault("gone")), [(A, 5)], RICH, Meter()) == {A: None}


async def test_no_more_than_so_many_blocks_are_read() -> None:
    def reply(call: RpcCall) -> Any:
        number = int(str(call.params[0]), 16)
        return {"number": hex(number), "hash": word(number), "transactions": [sent(1, A, address(number))]}

    node = ViewsNode(reply)
    wanted = [FirstFunding(A, address(number), number) for number in range(1, MAX_BLOCKS + 6)]
    payments = await find_funding_txs(node, wanted, Meter())
    assert [payments[funding.wallet] is None for funding in wanted] == [False] * MAX_BLOCKS + [True] * 5
    assert sum(map(len, node.groups)) == MAX_BLOCKS
