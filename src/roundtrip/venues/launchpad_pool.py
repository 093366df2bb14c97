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
    plan_second_sell,
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
    "plan_second_sell",
    "plan_sell",
    "plan_sweep",
    "read_facts",
    "rebuild",
    "spender",
]  # fmt: skip

KIND: VenueKind = "launchpad_pool"

USUAL_FEE_PIPS, USUAL_TICK_SPACING = 0, 200
"""The values of every launch so far; the factory's record shows where a launch differs."""


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
    pools = (pool(token, quote, USUAL_FEE_PIPS, USUAL_TICK_SPACING, contracts) for quote in quotes)
    return tuple(venue for venue in pools if venue is not None)


def rebuild(venue: Venue, token: Address, launch: LaunchRecord | None, contracts: Contracts) -> Venue | None:
    """The pool with the id computed from its key and the launchpad's hook."""
    return pool(token, venue.quote_address, venue.fee_pips, venue.tick_spacing, contracts)


def listings(contracts: Contracts) -> tuple[tuple[Address, str], ...]:
    """The pool manager's Initialize, where there is a launchpad."""
    return () if contracts.launchpad_hook is None else amm_v4.listings(contracts)


def decode_listings(log: Log, contracts: Contracts) -> tuple[VenueListing, ...]:
    """The pools with the launchpad's hook."""
    listed = amm_v4.decode_initialize(KIND, log, contracts)
    return tuple(listing for listing in listed if listing.venue.hook == contracts.launchpad_hook)
