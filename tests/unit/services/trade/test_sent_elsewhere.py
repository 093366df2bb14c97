"""What leaves a wallet beside a swap, and how it is described."""

from dataclasses import replace

from roundtrip.domain.trade.judge import BalanceChange, CallResult
from roundtrip.services.trade.simulate import _describe_given
from roundtrip.services.trade.wallet_run import sent_elsewhere_wei
from roundtrip.venues.base import Call
from unit.domain.trades import ran
from unit.venues.network import CONTRACTS, address

DONE = CallResult(True, 50_000, None)
SWAP, TIP = Call(address(0x99), "0x12", 10), Call(address(0x98), "0x", 2)


def sent(calls: tuple[Call, ...], *changes: int) -> int:
    return sent_elsewhere_wei(calls, replace(ran(*[DONE] * len(calls)), eth_changes_wei=changes))


def test_only_plain_eth_beside_a_swap_is_sent_elsewhere() -> None:
    assert sent((SWAP,), -10) == 0
    assert sent((SWAP, TIP), -10, -2) == sent((TIP, SWAP), -2, -10) == 2
    # What a call sends and gets back is not sent.
    assert sent((SWAP, TIP), -10, 0) == 0
    # A sale may take plain eth.
    assert sent((TIP,), -2) == 0


def test_an_item_is_no_token_and_a_cut_amount_is_about_so_much() -> None:
    asset = address(0x97)

    def given(raw: int, decimals: int | None, is_collection: bool) -> str:
        collections = (asset,) if is_collection else ()
        result = replace(ran(), metadata={asset: (decimals, None)}, collections=collections)
        return _describe_given(BalanceChange(asset, -raw, raw, ()), result, CONTRACTS)

    assert given(1, None, True) == f"1 item of the collection {asset}"
    assert given(2, 0, True) == f"2 items of the collection {asset}"
    assert given(1, None, False) == f"1 base units of the token {asset}"
    assert given(396_691_992, 2, False) == f"about 3,966,000 of the token {asset}"
    # An ERC-20 token that reports an item.
    assert given(10**18, 18, True) == f"1 of the token {asset}"
