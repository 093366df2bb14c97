"""Cases of what the key's wallet holds, which is asked without a key here: what a key's owner is told has
tests of its own."""

from .base import Bad, Good

GOOD: Good = {"my_bag": {}}

BAD: Bad = {"my_bag": [({}, "key_needed"), ({"x": 1}, "key_needed")]}
