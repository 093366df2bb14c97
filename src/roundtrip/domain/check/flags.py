"""Worth knowing, but not what decided the verdict: one function a flag."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BURN_ADDRESSES
from roundtrip.domain.base.venue import Venue

from .evidence import Curve, Evidence, LaunchRecord, Missing
from .price import quote_in_wei
from .venue_code import parts, pool_fee_of, takes_sells
from .venue_reading import VenueReading
from .verdict import Judgement, shown_index


@dataclass(frozen=True, slots=True)
class JudgedCheck:
    """What a flag may look at."""

    evidence: Evidence
    judgement: Judgement
    policy: Policy

    def shown_venue(self) -> Venue | None:
        """The venue that the answer shows: the one that decided, else the first that is there."""
        index = shown_index(self.judgement)
        return None if index is None else self.evidence.venues[index].venue

    def others(self) -> tuple[VenueReading, ...]:
        """The venues that trade the token beside the one that was chosen."""
        best = self.judgement.best
        return tuple(r for i, r in enumerate(self.judgement.readings) if i != best and r.status == "bought")


def owner_active(checked: JudgedCheck) -> bool:
    """An owner or proxy admin exists and is neither zero nor a burn address."""
    facts = checked.evidence.facts
    return any(isinstance(a, str) and a not in BURN_ADDRESSES for a in (facts.owner, facts.proxy_admin))


def toll_pool(checked: JudgedCheck) -> bool:
    """Another venue of the token keeps a toll for itself."""
    return any(pool_fee_of(reading) >= checked.policy.toll_warn_bps for reading in checked.others())


def thin_pool(checked: JudgedCheck) -> bool:
    """Another venue of the token is thin."""
    return any(
        takes_sells(reading, checked.policy)
        and parts(reading, checked.policy).worst_bps >= checked.policy.warn_loss_bps
        and parts(reading, checked.policy).largest() == "thin_pool"
        for reading in checked.others()
    )


def no_liquidity(checked: JudgedCheck) -> bool:
    """The best venue's quote side is worth less than the policy's floor."""
    best = checked.judgement.best
    if best is None:
        return False
    venue = checked.evidence.venues[best]
    if isinstance(venue.facts, Missing):
        return False
    worth_wei = quote_in_wei(venue.facts.quote_reserve_raw, venue.venue.quote, checked.evidence.market)
    return worth_wei is not None and worth_wei < checked.policy.thin_quote_wei


def hook(checked: JudgedCheck) -> bool:
    """The venue is a v4 pool with a hook in its swaps that is not the launchpad's."""
    venue = checked.shown_venue()
    return venue is not None and venue.hook_in_swaps()


def dynamic_fee(checked: JudgedCheck) -> bool:
    """The venue's fee is set swap by swap."""
    venue = checked.shown_venue()
    return venue is not None and venue.dynamic_fee()


def high_creator_tax(checked: JudgedCheck) -> bool:
    """The launch's creator takes a large share of every trade."""
    launch = checked.evidence.launch
    return isinstance(launch, LaunchRecord) and launch.creator_tax_bps >= checked.policy.high_creator_tax_bps


def serial_deployer(checked: JudgedCheck) -> bool:
    """Its deployer has launched many, and few of them graduated."""
    known, policy = checked.evidence.deployer, checked.policy
    if known is None:
        return False
    few = known.graduated * policy.serial_graduated_divisor < known.launches
    return known.launches >= policy.serial_launches and few


def deployer_sold(checked: JudgedCheck) -> bool:
    """Its deployer sold half or more of what it got."""
    known = checked.evidence.deployer
    return known is not None and known.got_raw > 0 and 2 * known.sold_raw >= known.got_raw


def snipe_tax_active(checked: JudgedCheck) -> bool:
    """A fresh wallet that bought in the pinned block would pay the curve's tax of the first seconds."""
    launch = checked.evidence.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) else None
    return isinstance(state, Curve) and not state.closed and state.snipe_bps > 0


def curve_closed(checked: JudgedCheck) -> bool:
    """A launch between the close of its curve and the opening of its pool, or called off."""
    launch = checked.evidence.launch
    return isinstance(launch, LaunchRecord) and launch.is_between_venues()


FLAGS: MappingProxyType[str, Callable[[JudgedCheck], bool]] = MappingProxyType(
    {
        "owner_active": owner_active,
        "hook": hook,
        "dynamic_fee": dynamic_fee,
        "toll_pool": toll_pool,
        "thin_pool": thin_pool,
        "high_creator_tax": high_creator_tax,
        "serial_deployer": serial_deployer,
        "deployer_sold": deployer_sold,
        "snipe_tax_active": snipe_tax_active,
        "curve_closed": curve_closed,
        "no_liquidity": no_liquidity,
    }
)
"""Every flag, in the order they are answered in."""


def raised_flags(checked: JudgedCheck) -> tuple[str, ...]:
    """The flags that hold for what was seen."""
    return tuple(name for name, holds in FLAGS.items() if holds(checked))
