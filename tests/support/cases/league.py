"""Cases of the league; of its tag without a key here: what a key's owner is told has tests of its own."""

from .base import Bad, Good

GOOD: Good = {
    "league": {
        "all, left out": lambda built: {},
        "all": lambda built: {"who": "all"},
        "agents": lambda built: {"who": "agents"},
        "people": lambda built: {"who": "people"},
    },
    "mark_as_agent": {},
}

BAD: Bad = {
    "league": [
        ({"who": "everybody"}, "bad_input"),
        ({"who": ""}, "bad_input"),
        ({"who": 1}, "bad_input"),
        ({"x": 1}, "bad_input"),
    ],
    "mark_as_agent": [
        ({}, "key_needed"),
        ({"name": "Bot 7"}, "key_needed"),
        ({"name": "x" * 25, "off": 1}, "key_needed"),
        ({"x": 1}, "key_needed"),
    ],
}
