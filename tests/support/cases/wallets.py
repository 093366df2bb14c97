"""What is asked about one wallet."""

from collections.abc import Callable

from roundtrip_development.devnet.actors import LAUNCHERS, SERIAL, SNIPERS
from roundtrip_development.devnet.trading import actor_address
from roundtrip_development.devnet.world import Built

from .base import HERE, NOBODY, Arguments, Bad, Good


def wallet_of(name: str) -> Callable[[Built], Arguments]:
    return lambda built: {"address": actor_address(name)}


WALLETS: dict[str, Callable[[Built], Arguments]] = {
    "a sniper": wallet_of(SNIPERS[0]),
    "a launcher": wallet_of(LAUNCHERS[0]),
    "a serial launcher": wallet_of(SERIAL),
    "a contract": lambda built: {"address": built.contracts["weth"]},
    "a token": lambda built: {"address": built.tokens["plain"]},
    "a stranger": lambda built: {"address": NOBODY},
    "capitals": lambda built: {"address": "0x" + actor_address(SNIPERS[0])[2:].upper()},
}
BAD_ADDRESSES: list[Arguments] = [
    {},
    {"address": "0x12"},
    {"address": "0x" + "g" * 40},
    {"address": "0x" + "1" * 41},
    {"address": "0X" + "1" * 40},
    {"address": "0x" + "1" * 40 + "\n"},
    {"address": "\u0661" * 40},
    {"address": 5},
    {"address": None},
    {"address": [HERE]},
]
STRANGER: Arguments = {"address": HERE, "x": 1}
"""An unknown argument, which is bad_input everywhere."""

GOOD: Good = {"wallet_history": WALLETS, "linked_wallets": WALLETS}

BAD: Bad = {
    name: [*((arguments, "bad_address") for arguments in BAD_ADDRESSES), (STRANGER, "bad_input")]
    for name in ("wallet_history", "linked_wallets")
}
