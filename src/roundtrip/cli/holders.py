"""The command ``holders``: it needs an index, and without one only says how to get an answer."""

import argparse
import sys

from .judging import EXIT_CODES

_MISSING = """Only the service can show who holds a token: it keeps an index of launches, pools and prices.
This command has only a node, and from a node's logs a buy looks like a gift.

Start a service with one:   ROUNDTRIP_NETWORK=robinhood roundtrip serve
and beside it:              ROUNDTRIP_NETWORK=robinhood roundtrip sync
Then ask it:                curl http://127.0.0.1:8463/v1/holders/{address}
"""


def run_holders(given: argparse.Namespace) -> int:
    """Prints what it takes; returns the exit code of "unknown"."""
    print(_MISSING.format(address=given.address), file=sys.stderr)
    return EXIT_CODES["unknown"]
