"""Cases of what an account watches, which are asked without a key here: what a key's owner is told has tests
of its own."""

from .base import HERE, Arguments, Bad, Good

ASKED: dict[str, list[Arguments]] = {
    "inbox": [{}, {"x": 1}],
    "follow_wallet": [{"address": HERE, "name": "Whale1"}, {"address": "0x12"}, {}],
    "unfollow_wallet": [{"address": HERE}, {"address": None}],
    "list_rules": [{}, {"x": 1}],
    "create_rule": [{"rule": "any buying over 1 eth"}, {"rule": "nonsense"}, {"rule": 5}],
    "test_rule": [{"rule": "any buying over 1 eth"}, {"rule": "x" * 300}],
    "delete_rule": [{"id": 1}, {"id": 0}, {}],
}
"""Whoever shows no key is told that, and nothing of what else is wrong."""

GOOD: Good = {name: {} for name in ASKED}

BAD: Bad = {name: [(arguments, "key_needed") for arguments in cases] for name, cases in ASKED.items()}
