"""The command ``holders``: it needs an index, and without one only says how to get an answer."""

import argparse
import sys

from .judging import EXIT_CODES

_MISSING = """Showing who holds a token needs an index; this command has only a node. From logs alone a buy
looks like a gift: the index knows the token's launch, its pools and their prices.

Start a service with one:   ROUNDTRIP_NETWORK=robinhood roundtrip serve
and beside it:              ROUNDTRIP_NETWORK=robinhood roundtrip sync
Then ask it:                curl http://127.0.0.1:8463/v1/holders/{address}
"""


def run_holders(given: argparse.Namespace) -> int:
    """Prints what it takes; returns the exit code of "unknown"."""
    print(_MISSING.format(address=given.address), file=sys.stderr)
    return EXIT_CODES["unknown"]
