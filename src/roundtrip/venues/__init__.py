"""One file a venue, pure: how to find it, buy on it, sell on it. Found by listing VENUES."""

from types import MappingProxyType

from roundtrip.domain.evidence import VenueKind

from . import amm_v3, amm_v4, launchpad_curve, launchpad_pool
from .base import VenueFile

VENUES: tuple[VenueFile, ...] = (amm_v3, amm_v4, launchpad_curve, launchpad_pool)
"""Every venue a token is looked for on."""

BY_KIND: MappingProxyType[VenueKind, VenueFile] = MappingProxyType({file.KIND: file for file in VENUES})
