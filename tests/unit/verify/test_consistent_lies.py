"""Answers that fit their steps to the byte, and are wrong all the same."""

import json
from dataclasses import replace

import pytest
from eth_abi.abi import encode

from roundtrip_verify import verify
from unit.verify.samples import (
    CURVE,
    KEY,
    NETWORK,
    WALLET,
    ZERO,
    Json,
    TradeCase,
    body,
    call,
    first,
    keccak,
    key,
)

BUY_MIN = first("amm_v3", "buy", "usdg").min_raw
LIES = {
    "the router accepts less than is promised": (
        TradeCase("amm_v3", "buy", "usdg", router_min=BUY_MIN - 1),
        TradeCase("amm_v4", "buy", "eth", router_min=1),
        TradeCase("launchpad_curve", "buy", "eth", router_min=0),
        TradeCase("launchpad_curve", "sell", "eth", router_min=0),
    ),
    "a sell whose minimum is another": (
        TradeCase("amm_v3", "sell", "usdg", router_min=10**9),
        TradeCase("amm_v3", "sell", "weth", router_min=1, second=True),
    ),
    "amounts that mean everything": (
        TradeCase("launchpad_curve", "sell", "eth", paid=2**256 - 1),
        TradeCase("amm_v3", "sell", "usdg", paid=2**255),
        TradeCase("amm_v3", "sell", "usdg", paid=2**160 - 1, second=True),
        TradeCase("amm_v4", "sell", "eth", paid=2**160 - 1),
        TradeCase("amm_v4", "sell", "weth", paid=2**128),
    ),
    "amounts that mean nothing, or all that lies there": (
        TradeCase("launchpad_curve", "buy", "eth", paid=0),
        TradeCase("amm_v3", "buy", "weth", paid=0),
        TradeCase("amm_v4", "buy", "eth", paid=0),
    ),
    "a minimum that nothing can meet": (TradeCase("amm_v3", "buy", "usdg", router_min=2**255),),
    "tokens that are none": (
        TradeCase("amm_v3", "sell", "usdg", token=NETWORK.permit2),
        TradeCase("amm_v4", "buy", "usdg", token=NETWORK.universal_router),
        TradeCase("amm_v4", "buy", "weth", token=WALLET),
        TradeCase("amm_v4", "buy", "usdg", token=ZERO),
    ),
    "tokens that are the money": (
        TradeCase("amm_v3", "buy", "usdg", token=NETWORK.usdg),
        TradeCase("amm_v4", "buy", "eth", token=NETWORK.weth),
    ),
    "fees of more than all": (
        TradeCase("amm_v3", "buy", "weth", fee=1_000_001),
        TradeCase("amm_v3", "buy", "weth", fee=0x800000),
        TradeCase("amm_v3", "sell", "usdg", fee=1_000_001, second=True),
        TradeCase("amm_v4", "sell", "eth", fee=1_000_001),
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_that_fits_its_steps_is_caught(lie: str) -> None:
    for case in LIES[lie]:
        report = verify(body(case), NETWORK)
        assert not report.ok, case
        # The calldata is what the claims make of it: the claims themselves are found wrong.
        assert not any("must be 0x" in text for text in report.findings), report.findings


def elsewhere(answer: Json, old: str, new: str) -> Json:
    """The answer with one address, or id, replaced wherever it stands."""
    return dict(json.loads(json.dumps(answer).replace(old[2:], new[2:])))


@pytest.mark.parametrize(
    "place", ["weth", "usdg", "permit2", "swap_router02", "the token", "the wallet", "zero"]
)
def test_a_curve_is_none_of_the_known_contracts(place: str) -> None:
    case = first("launchpad_curve", "sell", "usdg")
    other = {"the token": case.token, "the wallet": WALLET, "zero": ZERO}.get(place) or getattr(
        NETWORK, place
    )
    assert any(
        "not a curve" in text for text in verify(elsewhere(body(case), CURVE, other), NETWORK).findings
    )


@pytest.mark.parametrize("wallet", [NETWORK.permit2, NETWORK.usdg, "0x" + "2".rjust(40, "0")])
def test_a_wallet_is_none_of_the_known_contracts(wallet: str) -> None:
    answer = elsewhere(body(first("amm_v3", "sell", "weth")), WALLET, wallet)
    assert any("not a wallet" in text for text in verify(answer, NETWORK).findings)


@pytest.mark.parametrize("field", ["fee", "spacing", "hook"])
def test_a_key_with_more_than_its_fields_hold_is_no_pool(field: str) -> None:
    """The hash of the words as they stand is claimed, but a router would read them as another pool."""
    case = first("amm_v4", "buy", "eth")
    clean = encode([KEY], [key(case)])
    at = {"fee": 64, "spacing": 96, "hook": 128}[field]
    dirty = clean[:at] + b"\x01" + clean[at + 1 :]
    answer = elsewhere(body(case), "0x" + clean.hex(), "0x" + dirty.hex())
    answer["venue"]["at"] = "0x" + keccak(dirty).hex()
    assert verify(answer, NETWORK).findings == (
        "step 1: the pool has a fee, tick spacing or hook that no pool can have",
    )


def test_a_v3_fee_of_more_than_its_field_holds_is_no_pool() -> None:
    case = first("amm_v3", "buy", "weth")
    fee, dirty = (encode(["uint256"], [value]).hex() for value in (case.fee, case.fee + 2**24))
    low, high = sorted((case.token, case.money_address))
    salt = keccak(encode(["address", "address"], [low, high]) + bytes.fromhex(dirty))
    code = bytes.fromhex("e34f199b19b2b4f47f68442619d555527d244f78a3297ea89325f843f87b8b54")
    answer = elsewhere(body(case), "0x" + fee, "0x" + dirty)
    answer["venue"]["at"] = (
        "0x" + keccak(b"\xff" + bytes.fromhex(NETWORK.v3_factory[2:]) + salt + code)[12:].hex()
    )
    assert len(verify(answer, NETWORK).findings) == 1


def test_eth_that_goes_along_is_part_of_the_step() -> None:
    for case in (
        first("amm_v3", "buy", "usdg"),
        first("amm_v4", "sell", "weth"),
        first("amm_v3", "buy", "weth"),
    ):
        answer = body(case)
        step = answer["steps"][-1]
        step["value"] = str(int(step["value"]) + 1)
        assert any(" wei, but must send" in text for text in verify(answer, NETWORK).findings)


@pytest.mark.parametrize("quote", ["weth", "usdg"])
def test_the_two_routes_of_a_v3_sell_are_not_mixed(quote: str) -> None:
    """An approval for one router and a swap through the other: something stays allowed."""
    usual, second = (TradeCase("amm_v3", "sell", quote, second=second) for second in (False, True))
    for swap, approved in ((usual, second), (second, usual)):
        mixed = {**body(swap), "steps": [*body(approved)["steps"][:-1], body(swap)["steps"][-1]]}
        mixed["steps"][-1]["n"] = len(mixed["steps"])
        assert any("the spender is" in text for text in verify(mixed, NETWORK).findings)
        # The calldata of one router, sent to the other.
        answer = body(swap)
        answer["steps"][-1]["to"] = body(approved)["steps"][-1]["to"]
        assert not verify(answer, NETWORK).ok


@pytest.mark.parametrize("quote", ["weth", "usdg"])
def test_a_v3_buy_has_no_second_route(quote: str) -> None:
    """The swap is right to the byte, but only sells go by it."""
    case = replace(first("amm_v3", "buy", quote), second=True)
    findings = verify(body(case), NETWORK).findings
    assert any(
        f"must be 0x{call('multicall(uint256,bytes[])', 0, [])[:4].hex()}" in text for text in findings
    )


def test_an_approval_of_nft_kind_is_nothing_that_a_trade_needs() -> None:
    answer = body(first("amm_v3", "sell", "usdg"))
    data = call("setApprovalForAll(address,bool)", NETWORK.swap_router02, True)
    answer["steps"][0]["data"] = "0x" + data.hex()
    assert any("not part of this trade" in text for text in verify(answer, NETWORK).findings)
