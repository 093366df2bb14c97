"""What moves, who wins, what is odd."""

from .base import Bad, Good

GOOD: Good = {}

BAD: Bad = {}
