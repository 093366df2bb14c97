"""What moves, who wins, what is odd."""

from .base import Bad, Good

GOOD: Good = {
    "moving_now": {"all": lambda built: {}},
    "chain_vitals": {"all": lambda built: {}},
}

BAD: Bad = {
    "moving_now": [({"x": 1}, "bad_input"), ({"address": "0x" + "1" * 40}, "bad_input")],
    "chain_vitals": [({"x": 1}, "bad_input")],
}
