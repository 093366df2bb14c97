"""Every sample token that has a market, each with the places where it trades: what techniques are tried on.

The tokens of the local chain (stories, launches), and the zoo of tests/truth, which is put on it here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from roundtrip.config.networks import contracts_from
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Venue
from roundtrip.venues import amm_v3, amm_v4, launchpad_curve, launchpad_pool
from roundtrip.venues.abi import word
from roundtrip.venues.base import Contracts, quote_name
from roundtrip_development.devnet.deploy import ETH_PRICE_USDG
from roundtrip_development.devnet.hook_tokens import HOOKED
from roundtrip_development.devnet.launch_samples import LAUNCHES, SHARE_PRICE_USDG, LaunchStory
from roundtrip_development.devnet.launchpad_v1 import FIRST, POOL_FEE_PIPS
from roundtrip_development.devnet.stories import STORIES, PoolPlan
from roundtrip_development.devnet.sync_rpc import SyncRpc
from roundtrip_development.devnet.world import Built
from truth.animals import ANIMALS, BY_MANNER, Animal, put

PROBE_WEI = 10**17
LEFT_OUT = {
    "loops_on_balance": "no wallet can read its balance",
    "curve_all_but_full": "any buy sells it out, and then no wallet can sell until it has graduated",
}
_SMALLER_WEI = {"curve_nearly_full": 10**16}
"""Where a tenth of an eth would sell the curve out."""


@dataclass(frozen=True, slots=True)
class Case:
    """One token. ``wei``: what a buy of it is worth. ``for_some``: it refuses only some wallets, or some
    manners of trading, so that what one wallet meets is not the truth. ``holder``: a wallet that bought it
    before; None: no wallet can buy it."""

    name: str
    token: Address
    venues: tuple[Venue, ...]
    wei: int = PROBE_WEI
    for_some: bool = False
    holder: Address | None = None

    def amount_raw(self, venue: Venue, contracts: Contracts) -> int:
        """What a buy spends of the place's money."""
        return amount_raw(venue.quote_address, self.wei, contracts)


def amount_raw(quote: Address, wei: int, contracts: Contracts) -> int:
    """So much eth's worth of a money."""
    if quote in (ZERO_ADDRESS, contracts.weth):
        return wei
    usdg_raw = wei * ETH_PRICE_USDG // 10**12
    # The only other money of the local chain is the share.
    return usdg_raw if quote == contracts.usdg else usdg_raw * 10**12 // SHARE_PRICE_USDG


def cases(rpc: SyncRpc, built: Built, say: Callable[[str], None]) -> list[Case]:
    """All of them; the zoo's animals are deployed."""
    found = list(sample_cases(rpc, built).values())
    for animal in (*ANIMALS, *BY_MANNER):
        say(f"deploying {animal.named()}")
        found.append(animal_case(rpc, built, animal))
    return found


def animal_case(rpc: SyncRpc, built: Built, animal: Animal) -> Case:
    """An animal, deployed now."""
    contracts, token = contracts_from(built.contracts), Address(put(rpc, built.contracts, animal))
    places = tuple(_place(plan, token, built, contracts) for plan in animal.pools)
    return Case(animal.named(), token, places, for_some=animal in BY_MANNER)


def sample_cases(rpc: SyncRpc, built: Built) -> dict[str, Case]:
    """Those of the local chain by their keys."""
    contracts = contracts_from(built.contracts)
    return {case.name: case for case in (*_stories(built, contracts), *_launches(rpc, built, contracts))}


def _stories(built: Built, contracts: Contracts) -> list[Case]:
    found = []
    for story in (*STORIES, *HOOKED):
        if not story.pools or story.key in LEFT_OUT:
            continue
        token = Address(built.tokens[story.key])
        found.append(
            Case(story.key, token, tuple(_place(one, token, built, contracts) for one in story.pools))
        )
    for first in FIRST:
        token = Address(built.tokens[first.key])
        found.append(Case(first.key, token, (amm_v3.pool(token, contracts.weth, POOL_FEE_PIPS, contracts),)))
    return found


def _launches(rpc: SyncRpc, built: Built, contracts: Contracts) -> list[Case]:
    """Those that trade: on a curve that is not sold out, or in the pool it became."""
    found = []
    for story in LAUNCHES:
        sold_out = story.phase == "curve" and story.left_raw == 0
        if story.phase not in ("curve", "pooled") or sold_out or story.key in LEFT_OUT:
            continue
        token = Address(built.tokens[story.key])
        venue = _launched_at(rpc, story, token, contracts)
        found.append(Case(story.key, token, (venue,), _SMALLER_WEI.get(story.key, PROBE_WEI)))
    return found


def _launched_at(rpc: SyncRpc, story: LaunchStory, token: Address, contracts: Contracts) -> Venue:
    quote = {"eth": ZERO_ADDRESS, "usdg": contracts.usdg}.get(story.quote)
    asked = {
        "fromBlock": "0x0",
        "address": contracts.launchpad_factory,
        "topics": [launchpad_curve.TOKEN_LAUNCHED, "0x" + word(token)],
    }
    (log,) = rpc.call("eth_getLogs", asked)
    quote = Address("0x" + log["data"][26:66]) if quote is None else quote
    if story.phase == "curve":
        return launchpad_curve.curve(quote, Address("0x" + log["topics"][2][26:]), contracts)
    fee, spacing = launchpad_pool.USUAL_FEE_PIPS, launchpad_pool.USUAL_TICK_SPACING
    venue = launchpad_pool.pool(token, quote, fee, spacing, contracts)
    assert venue is not None
    return venue


def _place(plan: PoolPlan, token: Address, built: Built, contracts: Contracts) -> Venue:
    named = {"eth": ZERO_ADDRESS, "weth": contracts.weth, "usdg": contracts.usdg}
    quote = named[plan.quote]
    if plan.version == 3:
        return amm_v3.pool(token, quote, plan.fee_pips, contracts)
    spacing = plan.tick_spacing or dict(amm_v4.FEES_AND_SPACINGS).get(plan.fee_pips, 60)
    hook = Address(built.hooks[f"{plan.hook}_{plan.quote}"]) if plan.hook else None
    fee = plan.key_fee()
    return amm_v4.pool("amm_v4", token, quote_name(quote, contracts), quote, fee, spacing, hook)
