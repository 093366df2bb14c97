"""One file a venue, pure: how to find it, buy on it, sell on it. Found by listing VENUES."""

from . import amm_v3, amm_v4
from .base import VenueFile

VENUES: tuple[VenueFile, ...] = (amm_v3, amm_v4)
"""Every venue a token is looked for on, best guess of where most trade first."""
