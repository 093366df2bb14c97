"""Eth that a wallet's calls send beside a swap."""

from dataclasses import replace

from roundtrip.domain.trade.judge import CallResult
from roundtrip.services.trade.wallet_run import sent_elsewhere_wei
from roundtrip.venues.base import Call
from unit.domain.trades import ran
from unit.venues.network import address

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
