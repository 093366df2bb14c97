"""Cases of channels, which are asked without a key here: what a key's owner is told has tests of its own."""

from .base import Bad, Good

GOOD: Good = {"list_channels": {}, "set_webhook": {}, "remove_channel": {}}

BAD: Bad = {
    "list_channels": [({}, "key_needed"), ({"x": 1}, "key_needed")],
    "set_webhook": [({"url": "https://receiver.example/alerts"}, "key_needed"), ({}, "key_needed")],
    "remove_channel": [({"id": 1}, "key_needed"), ({"id": 0}, "key_needed")],
}
