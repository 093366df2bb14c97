"""One pure module per venue: how to find it, buy on it, sell on it. Listing it here registers it."""

from collections.abc import Mapping
from types import MappingProxyType

from roundtrip.domain.base.venue import VenueKind

from . import amm_v3, amm_v4, entry_point, erc20, launchpad, launchpad_curve, launchpad_pool, launchpad_v1
from .base import DecodingFile, LaunchpadFile, ListingFile, SwapReader, VenueFile

VENUES: tuple[VenueFile, ...] = (amm_v3, amm_v4, launchpad_curve, launchpad_pool)
"""Every venue a token is looked for on."""

LISTINGS: tuple[ListingFile, ...] = (*VENUES, launchpad_v1)
"""Every module with logs that announce new venues."""

DECODERS: tuple[DecodingFile, ...] = (
    amm_v3, amm_v4, launchpad_curve, launchpad, launchpad_v1, erc20, entry_point,
)  # fmt: skip
"""Every module with logs that become events. ``decode.Decoder`` looks a log up in all of them."""

LAUNCHPADS: tuple[LaunchpadFile, ...] = (launchpad, launchpad_v1)
"""Every launchpad that is asked whether it launched a token. The first that did wins."""

BY_KIND: MappingProxyType[VenueKind, VenueFile] = MappingProxyType({file.KIND: file for file in VENUES})

SWAPS: MappingProxyType[VenueKind, Mapping[str, SwapReader]] = MappingProxyType(
    {file.KIND: file.SWAPS for file in VENUES}
)
"""Readers of trade logs, by the kind of venue and the log's first topic."""
