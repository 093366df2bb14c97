"""What is asked about one wallet."""

from .base import Bad, Good

GOOD: Good = {}

BAD: Bad = {}
