"""How a token's holders grew, and how much the ten biggest held, hour by hour over a week."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import BPS
from roundtrip.domain.holders.book import HolderBook
from roundtrip.services.holder_record.findings import HolderRecord
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import when

from .present import common_fields, count_growth
from .schema import Bps, Growth, OfHolders
from .text import status_text

_HOUR_S = 3600
_WEEK_HOURS = 7 * 24
_SPANS = (("an hour", "hour"), ("a day", "day"), ("a week", "week"))


class GrowthPoint(msgspec.Struct, frozen=True, rename="camel"):
    """The holders at the end of an hour, by the token's transfers. The last point is of the answer's
    block."""

    time: Annotated[datetime, says("The time that the point is of.")]
    holders: Annotated[int, says("Wallets that held some.")]
    top10_bps: Annotated[
        Bps | None,
        says(
            "Share of the ten biggest wallets in what existed then, in hundredths of a percent. "
            "null: not known, or nothing existed."
        ),
    ] = msgspec.field(name="top10Bps")


class HolderGrowth(OfHolders, frozen=True, rename="camel"):
    """How the number of holders and the share of the biggest ones changed."""

    holders: Annotated[int | None, says("Wallets that hold some now. null: not every transfer was read.")]
    growth: Annotated[
        Growth | None,
        says(
            "Change of the number of holders. null: transfers are missing, or the token's "
            "balances differ from them."
        ),
    ]
    points: Annotated[
        list[GrowthPoint],
        says(
            "The last seven days, the oldest first, from the token's first transfer on. Empty "
            "where growth is null."
        ),
    ]


def present_growth(record: HolderRecord) -> HolderGrowth:
    """Builds the answer."""
    growth, inputs = count_growth(record), record.full_inputs
    if growth is None or inputs is None:
        sentences = [*status_text(record), "How the number of holders changed is not known."]
        return HolderGrowth(**common_fields(record, sentences), holders=None, growth=None, points=[])
    holders = inputs.book.holders()
    sentences = [*status_text(record), f"{format_count(holders, 'wallet holds', 'wallets hold')} the token."]
    sentences += [
        f"That is {change:+,} against {span} ago."
        for span, name in _SPANS
        if (change := getattr(growth, name)) is not None
    ]
    points = list_points(inputs.book, record.block.timestamp_s)
    return HolderGrowth(**common_fields(record, sentences), holders=holders, growth=growth, points=points)


def list_points(book: HolderBook, now_s: int) -> list[GrowthPoint]:
    """A point for the end of each hour of the last seven days since the first transfer, and one for now."""
    newest = now_s // _HOUR_S
    ends_s = [(hour + 1) * _HOUR_S for hour in range(newest - _WEEK_HOURS, newest)]
    points = []
    # Each point's time, and the last second that counts.
    for at_s, last_s in [*((end_s, end_s - 1) for end_s in ends_s), (now_s, now_s)]:
        holders, share = book.holders_at(last_s), book.top_share_at(last_s)
        if holders is None:
            continue
        top_bps = None
        if share is not None and share.existing_raw > 0:
            top_bps = share.top_raw * BPS // share.existing_raw
        points.append(GrowthPoint(when(at_s), holders, top_bps))
    return points
