"""The answer of a wallet's page: its history, and what the page shows beside it."""

from datetime import datetime
from typing import NamedTuple

import msgspec

from roundtrip.domain.base.types import Address
from roundtrip.domain.holders.launch_window import WINDOW_BLOCKS
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import eth, reading, when
from roundtrip.services.support.wallet_params import WalletParams
from roundtrip.store.community import public_names
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import wallets
from roundtrip.store.wallets.wallets import MAX_LAUNCHES_LOOKED_AT, BoardPlace, ProfitDay

from .history import read_history
from .history_answer import WalletHistory


class RealisedDay(msgspec.Struct, frozen=True, rename="camel"):
    """The positions that were closed on one day (UTC)."""

    day: datetime
    closed: int
    profit_eth: float


class BoardRank(msgspec.Struct, frozen=True):
    """The wallet's place on a winners board."""

    span: str
    rank: int


class WalletPage(msgspec.Struct, frozen=True, rename="camel"):
    """``days``: those with closings, the oldest first. ``board``: the nearest winners board; null: on none.
    ``sniped``: launches of others that it bought in their first three seconds, of its ``sniped_of`` newest
    tokens. ``funder_scam_marks``: people who mark its funder as a scam."""

    history: WalletHistory
    days: list[RealisedDay]
    board: BoardRank | None
    sniped: int
    sniped_of: int
    funder_scam_marks: int


class _Beside(NamedTuple):
    days: list[ProfitDay]
    board: BoardPlace | None
    sniped: int


async def wallet_page(ctx: Context, params: WalletParams) -> UseCaseAnswer[WalletPage]:
    """Raises as ``wallet_history``."""
    answered, beside = await read_history(ctx, params, _read_beside)
    history, board = answered.answer, beside.board
    funders = [] if history.funder is None else [Address(history.funder.address)]
    async with reading(ctx) as (connection, _):
        scams = await public_names.scams(connection, funders)
    page = WalletPage(
        history=history,
        days=[RealisedDay(when(day.at_s), day.closed, eth(day.profit_wei)) for day in beside.days],
        board=None if board is None else BoardRank(board.span, board.rank),
        sniped=beside.sniped,
        sniped_of=min(history.record.tokens, MAX_LAUNCHES_LOOKED_AT),
        funder_scam_marks=sum(scams.values()),
    )
    return UseCaseAnswer(page, answered.ttl_ms)


async def _read_beside(connection: Connection, wallet_id: int) -> _Beside:
    return _Beside(
        await wallets.profit_days(connection, wallet_id),
        await wallets.nearest_board(connection, wallet_id),
        await wallets.count_sniped(connection, wallet_id, WINDOW_BLOCKS),
    )
