"""The command ``holders``: it needs an index, and without one only says how to get an answer."""

import sys

from .judging import EXIT_CODES, ArgumentReader

_MISSING = """Showing who holds a token needs an index; this command has only a node. From logs alone a buy
looks like a gift: the index knows the token's launch, its pools and their prices.

Start a service with one:   ROUNDTRIP_NETWORK=robinhood roundtrip serve
and beside it:              ROUNDTRIP_NETWORK=robinhood roundtrip sync
Then ask it:                curl http://127.0.0.1:8463/v1/holders/{address}
"""


def read_holders() -> ArgumentReader:
    """The command's arguments."""
    reader = ArgumentReader("roundtrip holders", description="Says what it takes to see who holds a token.")
    reader.add_argument("address", metavar="ADDRESS", help="the token's address")
    return reader


def run_holders(arguments: list[str]) -> int:
    """Prints what it takes; returns the exit code of "unknown"."""
    given = read_holders().parse_args(arguments)
    print(_MISSING.format(address=given.address), file=sys.stderr)
    return EXIT_CODES["unknown"]
