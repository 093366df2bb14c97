"""The bag: the wallet's holdings, those with warnings first."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from roundtrip.api.operations.catalog import find_operation
from roundtrip.console.support.account_page import AccountForm, Room, Values
from roundtrip.console.support.page_operations import own_operation
from roundtrip.console.support.page_request import Visit
from roundtrip.console.support.render import draw_curve
from roundtrip.domain.check.venue_code import Level
from roundtrip.domain.verdicts.risks import WORST_FIRST, warn_of_holding
from roundtrip.services.portfolio.bag import BagRow, MyBag
from roundtrip.services.portfolio.bag_page import BagPast, bag_past
from roundtrip.services.support.index_reader import Nothing

BAG = find_operation("my_bag", Nothing, MyBag)
PAST = own_operation(bag_past, counts="never")


def list_warnings(row: BagRow) -> list[tuple[Level, str]]:
    """A holding's warnings, worst first: level and sentence."""
    changes = row.changes
    at_buy, newest, deployer = changes.then, changes.now, changes.deployer
    return warn_of_holding(
        row.sells,
        None if newest is None else (newest.level, newest.code),
        (None if at_buy is None else at_buy.fees_bps, None if newest is None else newest.fees_bps),
        0 if deployer is None else deployer.sold_bps,
        changes.liquidity_left_bps or 0,
    )


def sum_past(holdings: Sequence[BagRow], past: BagPast) -> list[tuple[datetime, Decimal | None]]:
    """What all holdings that can be sold now were worth, at each time; None: that of one is not known.
    Empty: none can be sold, or the past of none is known."""
    sold = {row.token.address for row in holdings if row.sells == "yes"}
    series = [token.values for token in past.tokens if token.address in sold]
    if not series:
        return []
    sums = (
        None if None in values else sum(map(Decimal, values), Decimal(0))
        for values in zip(*series, strict=True)
    )
    return list(zip(past.times, sums, strict=True))


async def _read(visit: Visit) -> Values:
    bag, past = await visit.ask(BAG), await visit.ask(PAST)
    warned_rows = [(row, list_warnings(row)) for row in bag.holdings]
    warned = sorted(
        ((row, warnings) for row, warnings in warned_rows if warnings),
        key=lambda entry: WORST_FIRST.index(entry[1][0][0]),
    )
    values = sum_past(bag.holdings, past)
    known = [(at, value) for at, value in values if value is not None]
    return {
        "bag": bag,
        "past": past,
        "warned": warned,
        "guards": {guard.address: guard for guard in past.guards},
        "values": values,
        "curve": draw_curve(known),
        "ends": (known[0][0].isoformat(), known[-1][0].isoformat()) if known else None,
        "left_out": len(bag.holdings) - sum(row.sells == "yes" for row in bag.holdings),
    }


ROOM = Room(
    "bag", "Portfolio", "See what the tokens in your wallet are worth, and which of them went bad.", _read
)
ACTS: tuple[AccountForm, ...] = ()
