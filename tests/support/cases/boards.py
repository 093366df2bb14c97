"""What moves, who wins, what is odd."""

from .base import Bad, Good

_NAMES = ("moving_now", "graduating_soon", "winners", "signals", "chain_vitals")

GOOD: Good = {name: {"all": lambda built: {}} for name in _NAMES}

BAD: Bad = {name: [({"x": 1}, "bad_input"), ({"address": "0x" + "1" * 40}, "bad_input")] for name in _NAMES}
