"""marks"""

from .base import Bad, Good

GOOD: Good = {}
BAD: Bad = {}
