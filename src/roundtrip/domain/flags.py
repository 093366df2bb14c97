"""Worth knowing, but not what decided the verdict: one function a flag."""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from .evidence import Evidence, Missing
from .policy import Policy
from .price import quote_in_wei
from .readings import VenueReading
from .types import BURN_ADDRESSES
from .venue_code import parts, takes_sells
from .verdict import Judgement


@dataclass(frozen=True, slots=True)
class Judged:
    """What a flag may look at."""

    evidence: Evidence
    judgement: Judgement
    policy: Policy

    def others(self) -> tuple[VenueReading, ...]:
        """The venues that trade the token beside the one that was chosen."""
        best = self.judgement.best
        return tuple(r for i, r in enumerate(self.judgement.readings) if i != best and r.status == "bought")


def owner_active(seen: Judged) -> bool:
    """An owner or proxy admin exists and is neither zero nor a burn address."""
    facts = seen.evidence.facts
    return any(isinstance(a, str) and a not in BURN_ADDRESSES for a in (facts.owner, facts.proxy_admin))


def toll_pool(seen: Judged) -> bool:
    """Another venue of the token keeps a toll for itself."""
    return any(reading.keep_bps >= seen.policy.toll_warn_bps for reading in seen.others())


def thin_pool(seen: Judged) -> bool:
    """Another venue of the token is thin."""
    return any(
        takes_sells(reading, seen.policy)
        and parts(reading, seen.policy).worst_bps >= seen.policy.warn_loss_bps
        and parts(reading, seen.policy).largest() == "thin_pool"
        for reading in seen.others()
    )


def no_liquidity(seen: Judged) -> bool:
    """The best venue's quote side is worth less than the policy's floor."""
    best = seen.judgement.best
    if best is None:
        return False
    venue = seen.evidence.venues[best]
    if isinstance(venue.facts, Missing):
        return False
    worth_wei = quote_in_wei(venue.facts.quote_reserve_raw, venue.venue.quote, seen.evidence.market)
    return worth_wei is not None and worth_wei < seen.policy.thin_quote_wei


FLAGS: MappingProxyType[str, Callable[[Judged], bool]] = MappingProxyType(
    {
        "owner_active": owner_active,
        "toll_pool": toll_pool,
        "thin_pool": thin_pool,
        "no_liquidity": no_liquidity,
    }
)
"""Every flag, in the order they are answered in."""


def raised(seen: Judged) -> tuple[str, ...]:
    """The flags that hold for what was seen."""
    return tuple(name for name, holds in FLAGS.items() if holds(seen))
