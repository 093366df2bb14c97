"""Cases of accounts, which are asked without a key here: what a key's owner is told has tests of its own."""

from .base import Bad, Good

GOOD: Good = {"my_mite": {}}

BAD: Bad = {"my_mite": [({}, "key_needed"), ({"x": 1}, "key_needed")]}
