"""Which transactions of a block are sells that may have failed."""

from roundtrip.domain.base.types import Address, TxHash
from roundtrip.sync.failed_sells import FailedCall, list_failed_sells
from roundtrip.sync.ledger import decode_blocks
from roundtrip.venues import amm_v3, launchpad_curve
from roundtrip.venues.decode import Decoder
from support.told_blocks import Chain, Sent, sent, v3_at, v3_swap
from unit.sync.telling import ALICE, BOB, CURVE, LOW
from unit.venues.logs import NETWORK

SWAP = amm_v3.encode_exact_input_single(LOW, NETWORK.weth, 3000, ALICE, 5)
CURVE_SELL = launchpad_curve.plan_sell(
    launchpad_curve.curve(NETWORK.weth, CURVE, NETWORK), LOW, NETWORK, 5, ALICE
)[-1].data
ROUTER = NETWORK.swap_router02
HAPPENED = v3_swap(v3_at(LOW, NETWORK.weth), 5, -5)


def listed(*transactions: Sent) -> list[FailedCall]:
    block = Chain().block(*transactions)
    hashes = [TxHash(tx.hash) for tx in block.transactions]
    found = list_failed_sells(decode_blocks([block], Decoder(NETWORK)), NETWORK.all_addresses())
    assert {call.tx_hash for call in found} <= set(hashes)
    return found


def test_a_sell_without_an_event_is_listed_with_its_sender() -> None:
    (call,) = listed(sent(HAPPENED), sent(sender=ALICE, to=ROUTER, input=SWAP))
    assert (call.sold, call.sender) == (LOW, ALICE)


def test_a_sell_with_an_event_went_through() -> None:
    assert listed(sent(HAPPENED, sender=ALICE, to=ROUTER, input=SWAP)) == []


def test_of_a_curve_s_sell_the_curve_is_listed_whatever_it_may_be() -> None:
    (call,) = listed(sent(sender=BOB, to=CURVE, input=CURVE_SELL))
    assert (call.sold, call.sender) == (CURVE, BOB)


def test_other_calls_are_not_listed() -> None:
    unknown = Address("0x" + "99" * 20)
    assert (
        listed(
            sent(to=unknown, input=SWAP),
            sent(to=ROUTER, input=SWAP[:20]),
            sent(to=ROUTER, input=SWAP[:9] + "zz" + SWAP[11:]),
            sent(to=ROUTER, input=SWAP + "zz"),
            sent(to=None, input=SWAP),
            sent(to=ROUTER),
        )
        == []
    )
