"""What a page draws of a practice account: what its sells took, added up as time went on."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.services.accounts.database import accounts
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import Nothing
from roundtrip.store.practice import practice as store

from .schema import Eth, eth_of

MOST = 200


class ProfitPoint(msgspec.Struct, frozen=True):
    """``total``: what all sells and write-offs up to this one took, losses off."""

    at: datetime
    profit: Eth
    total: Eth


class PracticeHistory(msgspec.Struct, frozen=True, rename="camel"):
    """Profit that was taken, by time."""

    text: str
    points: Annotated[list[ProfitPoint], msgspec.Meta(description=f"The newest {MOST}, the oldest first.")]
    is_all: bool


async def practice_history(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[PracticeHistory]:
    """Raises ServiceFull."""
    async with accounts(ctx) as connection:
        closings = await store.closings(connection, account.id, MOST + 1)
    shown = closings[:MOST]
    points = [ProfitPoint(one.at, eth_of(one.profit_wei), eth_of(one.total_wei)) for one in reversed(shown)]
    return UseCaseAnswer(PracticeHistory(_text(points), points, len(shown) == len(closings)))


def _text(points: list[ProfitPoint]) -> str:
    if not points:
        return "Nothing was sold yet."
    total = points[-1].total
    took = f"lost {total[1:]}" if total.startswith("-") else f"took {total}"
    return f"All sells and write-offs together {took} practice eth."
