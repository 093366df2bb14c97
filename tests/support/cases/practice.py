"""Cases of practice, which are asked without a key here: what a key's owner is told has tests of its own."""

from .base import HERE, Arguments, Bad, Good

ASKED: dict[str, list[Arguments]] = {
    "practice_account": [{}, {"x": 1}],
    "practice_buy": [{"token": HERE, "eth": "0.1"}, {"token": HERE}, {"token": HERE, "eth": 0.1}, {}],
    "practice_sell": [{"token": HERE}, {"token": HERE, "percent": 0}, {"token": "0x12"}, {}],
    "practice_trades": [{}, {"x": 1}],
}
"""Whoever shows no key is told that, and nothing of what else is wrong."""

GOOD: Good = {name: {} for name in ASKED}

BAD: Bad = {name: [(arguments, "key_needed") for arguments in cases] for name, cases in ASKED.items()}
