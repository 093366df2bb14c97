"""A check whose crowd is drawn without a node, and venues after the buy round, for tests."""

from dataclasses import replace
from typing import Any, cast

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.rpc.dialect import ANVIL
from roundtrip.chain.simulate.crowd_outcomes import CrowdBuys, MemberBuys
from roundtrip.chain.simulate.crowd_plans import CrowdTrader
from roundtrip.chain.simulate.legs import VenuePlace
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import ZERO_ADDRESS
from roundtrip.domain.base.venue import PoolFacts
from roundtrip.domain.check.buy_math import outputs_of_buys
from roundtrip.domain.check.evidence import AnyLaunch, CompletedBuy, CrowdWallet, EnvironmentBuy, RefusedCall
from roundtrip.services.engine.crowd import draw_crowd
from roundtrip.services.engine.session import CheckSession, VenueTrial
from roundtrip.services.runtime.check_context import CheckContext
from roundtrip.venues import launchpad_curve
from unit.chain.samples import ENVIRONMENT, PINNED
from unit.chain.trades import SETTING, TOKEN, WETH
from unit.domain.launches import CURVE_ADDRESS
from unit.venues.network import CONTRACTS, address

SEED = b"\x5e" * 32
HEAD = ChainHead(PINNED, 100, address(0xC0), "0x" + "cd" * 32, SETTING.market, 0.0, ANVIL)
CURVE = VenuePlace(launchpad_curve.curve(ZERO_ADDRESS, CURVE_ADDRESS, CONTRACTS), launchpad_curve)
MAIN_WEI = POLICY.probe_wei
BUY_GAS = 150_000
DEEP = PoolFacts(True, 2**96, 10**24, 10**24)
"""A pool for any crowd."""


def session() -> CheckSession:
    """Its node is never asked."""
    nothing = cast(Any, None)
    means = CheckContext(4663, CONTRACTS, nothing, POLICY, nothing)
    return CheckSession(means, HEAD, TOKEN, SETTING, (ENVIRONMENT,), Meter(), crowd_seed=SEED)


def drawn(place: VenuePlace = WETH, seed: bytes = SEED, head: ChainHead = HEAD) -> tuple[CrowdWallet, ...]:
    """The wallets that trade among others."""
    return draw_crowd(seed, place, head, POLICY)[:-1]


def trader(wallet: CrowdWallet, place: VenuePlace = WETH) -> CrowdTrader:
    return CrowdTrader(place, SETTING, ENVIRONMENT, wallet, "m0")


def spent(wallet: CrowdWallet, place: VenuePlace = WETH) -> int:
    """What a wallet's buys cost in the venue's quote."""
    actual = trader(wallet, place)
    return actual.spent_raw(wallet.size_wei) + actual.spent_raw(wallet.again_wei)


def bought(received_raw: int, gas: int = BUY_GAS, *later_raw: int) -> CompletedBuy:
    return CompletedBuy(MAIN_WEI, received_raw, MAIN_WEI, gas, later_raw)


def bought_on(
    place: VenuePlace = WETH,
    facts: PoolFacts = DEEP,
    launch: AnyLaunch | None = None,
    arrived_bps: int = 10_000,
    gas: int = BUY_GAS,
) -> VenueTrial:
    """A venue whose main buy is as its formula says, of which so much arrived."""
    paid_raw = trader(drawn(place)[0], place).spent_raw(MAIN_WEI)
    (given_raw,) = outputs_of_buys(place.venue, facts, launch, TOKEN, [paid_raw]) or [0]
    received_raw = given_raw * arrived_bps // 10_000
    main = CompletedBuy(paid_raw, received_raw, paid_raw, gas)
    return VenueTrial(place, facts, (EnvironmentBuy("probe", 0, main),), None, given_raw, drawn(place))


def measured(trial: VenueTrial, **refused: RefusedCall) -> VenueTrial:
    """The crowd's buys were measured: each brought a token a wei, but for those that ``m<number>`` names."""
    buys = tuple(
        refused.get(f"m{number}", MemberBuys(wallet.size_wei, wallet.size_wei, BUY_GAS))
        for number, wallet in enumerate(trial.crowd_wallets)
    )
    return replace(trial, crowd=CrowdBuys(trial.crowd_wallets, buys))
