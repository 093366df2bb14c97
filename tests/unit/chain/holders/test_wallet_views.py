"""Reads of wallets: the calls, and their answers, also those that cannot be read."""

import msgspec
import pytest

from roundtrip.chain.holders.wallet_views import WalletToken, code_calls, read_codes, read_views, view_calls
from roundtrip.chain.rpc.client import RpcError
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from unit.venues.logs import NETWORK
from unit.venues.network import address

CHAIN_ID = 4663
WALLET, ONE, OTHER = address(0xA1), address(0x70CE), address(0x70CF)
PINNED = BlockRef(7, "0x" + "07" * 32, 70)
REVERTED = RpcError(3, "execution reverted")


def encode_raw(value: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def word(value: int) -> msgspec.Raw:
    return encode_raw(f"0x{value:064x}")


CHAIN = encode_raw(hex(CHAIN_ID))


def test_everything_is_asked_at_one_block_and_no_more_than_is_needed() -> None:
    calls = view_calls(WALLET, [ONE, OTHER], {OTHER}, NETWORK, PINNED, 300_000)
    assert [call.method for call in calls[:3]] == ["eth_chainId", "eth_getCode", "eth_getBalance"]
    asked = [call.params for call in calls[3:]]
    assert [params[0]["to"] for params in asked] == [NETWORK.weth, NETWORK.usdg, ONE, OTHER, OTHER, OTHER]  # type: ignore[index]
    assert {params[0]["gas"] for params in asked} == {hex(300_000)}  # type: ignore[index]
    assert all(call.params[-1] == {"blockHash": PINNED.hash} for call in calls[1:])


def test_answers_are_read_in_the_order_of_the_calls() -> None:
    answers = [
        CHAIN,
        encode_raw("0x"),
        encode_raw("0x5"),
        word(6),
        word(7),
        word(8),
        word(9),
        word(18),
        word(1000),
    ]
    views = read_views(answers, [ONE, OTHER], {OTHER}, CHAIN_ID)
    assert (views.is_contract, views.eth_wei, views.weth_wei, views.usdg_raw) == (False, 5, 6, 7)
    assert views.tokens == {ONE: WalletToken(8, None, None), OTHER: WalletToken(9, 18, 1000)}


@pytest.mark.parametrize(
    "unreadable",
    [REVERTED, RpcError(), encode_raw("0x"), encode_raw("0x12"), encode_raw("five"), msgspec.Raw(b"7")],
)
def test_what_cannot_be_read_is_none_and_not_zero(unreadable: msgspec.Raw | RpcError) -> None:
    answers = [CHAIN, REVERTED, REVERTED, *[unreadable] * 5]
    views = read_views(answers, [ONE], {ONE}, CHAIN_ID)
    assert (views.is_contract, views.eth_wei, views.weth_wei, views.usdg_raw) == (None, None, None, None)
    assert views.tokens == {ONE: WalletToken(None, None, None)}


def test_impossible_decimals_count_as_unknown() -> None:
    answers = [CHAIN, encode_raw("0x"), encode_raw("0x5"), word(6), word(7), word(8), word(256), word(1)]
    assert read_views(answers, [ONE], {ONE}, CHAIN_ID).tokens[ONE] == WalletToken(8, None, 1)


@pytest.mark.parametrize(
    ("code", "expected"),
    [("0x", False), ("0x6001", True), ("0xef0100" + "ab" * 20, False), ("0xef01", True), ("nothing", None)],
)
def test_an_account_that_runs_anothers_code_is_a_wallet(code: str, expected: bool | None) -> None:
    assert read_codes([CHAIN, encode_raw(code)], [ONE], CHAIN_ID) == {ONE: expected}


def test_a_node_of_another_chain_is_not_read() -> None:
    asked: list[Address] = [ONE]
    assert len(code_calls(asked, PINNED)) == 2
    with pytest.raises(NodeFault):
        read_codes([encode_raw("0x1"), encode_raw("0x")], asked, CHAIN_ID)
    with pytest.raises(NodeFault):
        read_views(
            [encode_raw("0x1"), encode_raw("0x"), encode_raw("0x5"), word(6), word(7)], [], set(), CHAIN_ID
        )
