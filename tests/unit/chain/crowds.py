"""Wallets of a crowd that tests of this folder plan, and hand-made results of them."""

from dataclasses import replace

import msgspec

from roundtrip.chain.simulate.balance_slots import BalanceSlot
from roundtrip.chain.simulate.crowd_plans import Attempt, CrowdTrader, Member, crowd_sell_plan, isolated_plan
from roundtrip.chain.simulate.legs import Setting, VenuePlace, size_raw
from roundtrip.chain.simulate.request import Plan, StepResult
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check.evidence import CompletedBuy, CrowdWallet
from roundtrip.venues.base import Log
from unit.chain.samples import ENVIRONMENT
from unit.chain.trades import BOUGHT, SETTING, TOKEN, WETH, was_bought
from unit.venues.logs import V3_SWAP, V4_SWAP
from unit.venues.network import CONTRACTS, address

BUY_GAS, SELL_GAS = 300_000, 400_000
HELD = 10**20


def wallet(number: int = 0, **changes: object) -> CrowdWallet:
    """The main wallet in all but its address, unless otherwise stated."""
    plain = CrowdWallet(
        address(0xC00 + number), 5 + number, 10**17, 0, 5 * 10**16, 0, 0, 0, False, 13, BPS, "usual"
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def member(number: int = 0, held_raw: int = HELD, **changes: object) -> Member:
    return Member(number, wallet(number, **changes), held_raw, BUY_GAS, SELL_GAS)


def trader(place: VenuePlace = WETH, number: int = 0, **changes: object) -> CrowdTrader:
    return CrowdTrader(place, SETTING, ENVIRONMENT, wallet(number, **changes), f"m{number}")


def crowd(
    *members: Member, place: VenuePlace = WETH, setting: Setting = SETTING, known: CompletedBuy | None = None
) -> Plan:
    """The simulation of these wallets, after the main buy."""
    amount = size_raw("probe", place, setting, ENVIRONMENT)
    assert isinstance(amount, int)
    return crowd_sell_plan(place, setting, ENVIRONMENT, "probe", amount, known or was_bought(), members)


def alone(
    of: CrowdWallet,
    *attempts: Attempt,
    place: VenuePlace = WETH,
    setting: Setting = SETTING,
    others: tuple[Member, ...] = (),
    sell: bool = False,
) -> Plan:
    """A wallet that is tried alone, or with others."""
    asked = attempts or (Attempt(13, BOUGHT),)
    seller = Member(-1, of, BOUGHT, 3_000_000, 3_000_000)
    return isolated_plan(place, setting, ENVIRONMENT, seller, asked, others, sell)


MONEY = address(0xABCDE)
SLOT = BalanceSlot(MONEY, "solidity", 3)

# --- results ----------------------------------------------------------------------------------------


def traded(place: VenuePlace, token_raw: int, quote_raw: int, gas: int, buys: bool = True) -> StepResult:
    """A call whose logs have a swap of this venue."""
    return StepResult(True, gas, b"", False, logs_of(swap_log(place, token_raw, quote_raw, buys)))


def swap_log(place: VenuePlace, token_raw: int, quote_raw: int, buys: bool = True, fee_pips: int = 0) -> Log:
    """The pool's own event. It pays out the token in a buy."""
    venue = place.venue
    token, quote = (-token_raw, quote_raw) if buys else (token_raw, -quote_raw)
    pair = (token, quote) if venue.quote_address > TOKEN else (quote, token)
    if venue.pool is not None:
        return V3_SWAP.log(venue.pool, address(0xAA), address(0xBB), *pair, 2**96, 10**18, 0)
    assert venue.pool_id is not None
    amount0, amount1 = (-raw for raw in pair)
    return V4_SWAP.log(
        CONTRACTS.v4_pool_manager,
        bytes.fromhex(venue.pool_id[2:]),
        address(0xAA),
        amount0,
        amount1,
        2**96,
        1,
        0,
        fee_pips,
    )


def logs_of(*logs: Log) -> bytes:
    """Logs as a node's JSON."""
    return msgspec.json.encode(
        [{"address": log.address, "topics": log.topics, "data": "0x" + log.data.hex()} for log in logs]
    )
