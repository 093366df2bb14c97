"""What moves, who wins, what is odd."""

from .base import Bad, Good

GOOD: Good = {
    "graduating_soon": {"all": lambda built: {}},
    "signals": {"all": lambda built: {}},
}

BAD: Bad = {
    "graduating_soon": [({"x": 1}, "bad_input")],
    "signals": [({"x": 1}, "bad_input")],
}
