"""What moves, who wins, what is odd."""

from .base import Bad, Good

GOOD: Good = {
    "winners": {"all": lambda built: {}},
}

BAD: Bad = {
    "winners": [({"x": 1}, "bad_input")],
}
