"""The calendar of unlocks: when locked liquidity of tokens that an account watches can be withdrawn."""

from datetime import datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.liquidity.unlocks import CALENDAR_S, ComingUnlock, describe_unlock
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing, looking, when
from roundtrip.store.index.tokens import id_of
from roundtrip.store.liquidity.positions import read_coming_of
from roundtrip.store.watch.bag_changes import list_held

MAX_UNLOCKS = 200
MAX_HELD = 200
"""The newest tokens of the wallet that are looked at."""


class UnlockRow(msgspec.Struct, frozen=True, rename="camel"):
    """Locked liquidity that a holder can withdraw from one moment on."""

    token: Annotated[str, says("The token.")]
    holder: Annotated[str, says("Who can withdraw it then.")]
    at: Annotated[datetime, says("From when on.")]
    share_bps: Annotated[
        int | None, says("Share of the active liquidity, in hundredths of a percent. null: not known.")
    ]
    positions: Annotated[int, says("The number of locked positions.")]
    text: Annotated[str, says("The same in a sentence.")]


class UnlockCalendar(msgspec.Struct, frozen=True, rename="camel"):
    """The unlocks of the next 30 days, of tokens that the account watches."""

    text: Annotated[str, says("The answer in plain sentences.")]
    unlocks: Annotated[list[UnlockRow], says(f"The first {MAX_UNLOCKS}, the earliest first.")]
    is_whole: Annotated[bool, says("false: there are more than those.")]


async def list_unlocks(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[UnlockCalendar]:
    """The coming unlocks of tokens that the account's wallet holds, that its rules name, or that a wallet
    launched that it follows; as the last reading of each token found them. Raises ServiceFull."""
    now_s = int(ctx.now_s())
    async with looking(ctx) as (connection, _):
        wallet_id = await id_of(connection, account.wallet)
        held = [] if wallet_id is None else await list_held(connection, wallet_id, MAX_HELD)
        token_ids = [token.token_id for token in held]
        to_s, limit = now_s + CALENDAR_S, MAX_UNLOCKS + 1
        coming = await read_coming_of(connection, account.id, token_ids, now_s, to_s, limit)
    rows = [_present_unlock(unlock, now_s) for unlock in coming[:MAX_UNLOCKS]]
    return UseCaseAnswer(UnlockCalendar(_text(rows), rows, len(coming) <= MAX_UNLOCKS))


def _present_unlock(unlock: ComingUnlock, now_s: int) -> UnlockRow:
    return UnlockRow(
        token=unlock.token,
        holder=unlock.holder,
        at=when(unlock.at_s),
        share_bps=unlock.share_bps,
        positions=unlock.positions,
        text=describe_unlock(unlock, now_s),
    )


def _text(rows: list[UnlockRow]) -> str:
    if not rows:
        return "We know of no unlock within 30 days of a token that you hold or watch. There may be others."
    count = format_count(len(rows), "unlock")
    return f"{count} within 30 days of tokens that you hold or watch. The next: {rows[0].text}"
