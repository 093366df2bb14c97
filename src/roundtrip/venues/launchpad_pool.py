"""The v4 pool that a graduated curve becomes: the launchpad's hook takes its fee and the creator's tax."""

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.base.venue import Quote, Venue, VenueKind
from roundtrip.domain.check.evidence import LaunchRecord

from . import amm_v4
from .amm_v4 import (
    SWAPS,
    fact_calls,
    plan_buy,
    plan_output,
    plan_pay_out,
    plan_pull,
    plan_sell,
    plan_sweep,
    read_facts,
    spender,
)
from .base import Contracts, Log, VenueListing, quote_name

__all__ = [
    "KIND",
    "SWAPS",
    "candidates",
    "decode_listings",
    "fact_calls",
    "listings",
    "plan_buy",
    "plan_output",
    "plan_pay_out",
    "plan_pull",
    "plan_sell",
    "plan_sweep",
    "read_facts",
    "rebuild",
    "spender",
]  # fmt: skip

KIND: VenueKind = "launchpad_pool"

USUAL_FEE_PIPS, USUAL_TICK_SPACING = 0, 200
"""Of every launch so far; the factory's record tells where one differs."""


def pool(
    token: Address, quote_address: Address, fee_pips: int, spacing: int, contracts: Contracts
) -> Venue | None:
    """The pool of one launch. None where the network has no launchpad."""
    if contracts.launchpad_hook is None:
        return None
    name: Quote = quote_name(quote_address, contracts)
    return amm_v4.pool(KIND, token, name, quote_address, fee_pips, spacing, contracts.launchpad_hook)


def candidates(token: Address, contracts: Contracts) -> tuple[Venue, ...]:
    """The usual key against eth, weth and usdg."""
    quotes = (ZERO_ADDRESS, contracts.weth, contracts.usdg)
    found = (pool(token, quote, USUAL_FEE_PIPS, USUAL_TICK_SPACING, contracts) for quote in quotes)
    return tuple(venue for venue in found if venue is not None)


def rebuild(venue: Venue, token: Address, launch: LaunchRecord | None, contracts: Contracts) -> Venue | None:
    """The pool whose id its key gives, with the launchpad's hook."""
    return pool(token, venue.quote_address, venue.fee_pips, venue.tick_spacing, contracts)


def listings(contracts: Contracts) -> tuple[tuple[Address, str], ...]:
    """The pool manager's Initialize, where there is a launchpad."""
    return () if contracts.launchpad_hook is None else amm_v4.listings(contracts)


def decode_listings(log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
    """The pools whose hook is the launchpad's."""
    found = amm_v4.keys_in(KIND, log, contracts)
    return tuple(one for one in found if one.venue.hook == contracts.launchpad_hook)
