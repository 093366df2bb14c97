"""One file a venue, pure: how to find it, buy on it, sell on it. Found by listing VENUES."""

from . import amm_v3
from .base import VenueFile

VENUES: tuple[VenueFile, ...] = (amm_v3,)
"""Every venue a token is looked for on, best guess of where most trade first."""
