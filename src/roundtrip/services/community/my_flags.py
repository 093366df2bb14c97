"""Lists an account's flags, waiting and settled."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.community.flag_calls import MAX_A_DAY, MAX_OPEN, Kind, State
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import TokenNamed, eth, present_token, when
from roundtrip.store.community import flags as store
from roundtrip.store.community.flags import OwnFlag
from roundtrip.store.index.tokens import Label

from .proven_flags import ProvenParams

SHOWN = 50


class FlagKept(msgspec.Struct, frozen=True, rename="camel"):
    """A flag of the account."""

    id: int
    token: TokenNamed
    kind: Kind
    state: Annotated[
        State,
        says(
            "open: it waits; seen: it came true and has to stay so for a while; proved; failed: "
            "its week ended; void: its result could not be found out near its end; it counts for nothing."
        ),
    ]
    flagged_at: Annotated[datetime, says("By the chain's clock.")]
    ends_at: Annotated[datetime, says("By the chain's clock.")]
    settled_at: Annotated[datetime | None, says("null: it waits.")]
    tx: Annotated[str | None, says("The largest transaction of what proved it.")]
    by: Annotated[str | None, says("What proved it: price, liquidity or deployer.")]
    paid_eth: Annotated[float | None, says("What a sell paid, where the price proved it.")]


class OwnFlags(msgspec.Struct, frozen=True, rename="camel"):
    """The account's flags, of one token or of all."""

    waiting: Annotated[list[FlagKept], says("The latest first.")]
    settled: Annotated[list[FlagKept], says(f"The last settled first, {SHOWN} at most.")]
    open_now: Annotated[int, says("Flags on any token that wait.")]
    made_today: Annotated[int, says("Made in this day of UTC.")]
    most_open: int
    most_a_day: int


async def own_flags(ctx: Context, params: ProvenParams, account: Account) -> UseCaseAnswer[OwnFlags]:
    """The account's flags on one token, or on all. Raises CallerFault (bad_address), ServiceFull."""
    token, now = params.token(), datetime.fromtimestamp(ctx.now_s(), UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    async with accounts(ctx) as connection:
        waiting = await store.list_own_waiting(connection, account.id)
        settled = await store.list_own_settled(connection, account.id, token, SHOWN)
        made_today = await store.made_since(connection, account.id, day)
    return UseCaseAnswer(
        OwnFlags(
            waiting=[_present_flag(flag) for flag in waiting if token is None or flag.token == token],
            settled=[_present_flag(flag) for flag in settled],
            open_now=len(waiting),
            made_today=made_today,
            most_open=MAX_OPEN,
            most_a_day=MAX_A_DAY,
        )
    )


def _present_flag(flag: OwnFlag) -> FlagKept:
    return FlagKept(
        id=flag.id,
        token=present_token(Label(flag.token, flag.symbol, flag.name, None, None)),
        kind=flag.kind,
        state=flag.state,
        flagged_at=when(flag.at_s),
        ends_at=when(flag.ends_s),
        settled_at=None if flag.settled_s is None else when(flag.settled_s),
        tx=flag.tx_hash,
        by=flag.by,
        paid_eth=None if flag.wei is None else eth(flag.wei),
    )
