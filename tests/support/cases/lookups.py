"""What is asked about anything: a transaction, a word."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from roundtrip_development.devnet.world import Built

from .base import HERE, LONG, NOBODY, Arguments, Bad, Good


@cache
def _hashes(state: Path) -> list[str]:
    """Of every transaction of the built chain, in order."""
    return [one["info"]["transaction_hash"] for one in json.loads(state.read_text())["transactions"]]


def transaction(number: int, key: str = "hash") -> Callable[[Built], Arguments]:
    return lambda built: {key: _hashes(built.state)[number]}


def token(story: str) -> Callable[[Built], Arguments]:
    return lambda built: {"query": built.tokens[story]}


def word(query: str) -> Callable[[Built], Arguments]:
    return lambda built: {"query": query}


GOOD: Good = {
    "explain_transaction": {
        "the first": transaction(0),
        "one of many": transaction(500),
        "the last": transaction(-1),
        "capitals": lambda built: {"hash": "0x" + _hashes(built.state)[7][2:].upper()},
    },
    "look_up": {
        "a token": token("plain"),
        "a launch": token("curve"),
        "a graduated one": token("graduated"),
        "a strange name": token("strange_name"),
        "a contract": lambda built: {"query": built.contracts["universalRouter"]},
        "a wallet": lambda built: {"query": built.accounts[0]},
        "nobody": word(NOBODY),
        "a transaction": transaction(500, "query"),
        "nothing of that hash": word(LONG),
        "a symbol": word("arc"),
        "no symbol": word('nobody"s'),
        "half an address": word(HERE[:-1]),
        "a long link": lambda built: {"query": f"scan.example/token/{built.tokens['plain']}?{'x' * 86}"},
    },
}

BAD: Bad = {
    "explain_transaction": [
        ({}, "bad_input"),
        ({"hash": "0x12"}, "bad_input"),
        ({"hash": HERE}, "bad_input"),
        ({"hash": LONG + "1"}, "bad_input"),
        ({"hash": LONG + "\n"}, "bad_input"),
        ({"hash": "0X" + LONG[2:]}, "bad_input"),
        ({"hash": 5}, "bad_input"),
        ({"hash": LONG, "deep": "1"}, "bad_input"),
        ({"hash": LONG}, "not_found"),
    ],
    "look_up": [
        ({}, "bad_input"),
        ({"query": ""}, "bad_input"),
        ({"query": None}, "bad_input"),
        ({"query": "\u200b\u2066 \t\u3164"}, "bad_input"),
        ({"query": "x" * 81}, "bad_input"),
        ({"query": "x", "kind": "token"}, "bad_input"),
    ],
}
