"""What accounts say of wallets and tokens."""

from .base import HERE, Bad, Good
from .wallets import BAD_ADDRESSES

GOOD: Good = {
    "wallet_names": {"all": lambda built: {}},
    "proven_calls": {
        "all": lambda built: {},
        "a token": lambda built: {"address": built.tokens["plain"]},
        "a stranger": lambda built: {"address": HERE},
        "capitals": lambda built: {"address": "0x" + built.tokens["plain"][2:].upper()},
    },
}
BAD: Bad = {
    "wallet_names": [({"x": 1}, "bad_input"), ({"address": HERE}, "bad_input")],
    "proven_calls": [(arguments, "bad_address") for arguments in BAD_ADDRESSES if arguments.get("address")],
}
