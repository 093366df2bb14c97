"""Shows an account its alerts."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import INBOX_S
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.accounts_database import accounts
from roundtrip.services.support.alert_rows import RETRACTED, AlertRow, rows
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import Nothing
from roundtrip.services.support.strangers_text import AnswerText
from roundtrip.services.support.token_states import TokenState, read_states
from roundtrip.store.watch import alerts as store

MAX_ROWS = 500
_QUOTED = 3
"""Rows that the text quotes; every row has its own sentence."""


class Inbox(msgspec.Struct, frozen=True, rename="camel"):
    """The alerts of the last seven days, the newest first."""

    text: AnswerText
    total: Annotated[int, says("Alerts in all, listed or not.")]
    at_least: Annotated[bool, says("true: there are more than total.")]
    rows: Annotated[list[AlertRow], says("The newest 500, the newest first.")]


class InboxFeed(Inbox, frozen=True, rename="camel", kw_only=True):
    """The inbox with its tokens as they stand now, for its page."""

    tokens: list[TokenState]


async def inbox_feed(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[InboxFeed]:
    """The account's inbox, and the state of each token in it. Raises ServiceFull."""
    found = (await inbox(ctx, params, account)).answer
    tokens = {Address(row.token) for row in found.rows if row.token is not None}
    async with accounts(ctx) as connection:
        states = await read_states(connection, tokens, ctx.now_s())
    return UseCaseAnswer(InboxFeed(**msgspec.structs.asdict(found), tokens=list(states.values())))


async def inbox(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[Inbox]:
    """The account's alerts of the last seven days. Raises ServiceFull."""
    since = datetime.fromtimestamp(ctx.now_s(), UTC) - timedelta(seconds=INBOX_S)
    async with accounts(ctx) as connection:
        alerts, total = await store.newest(connection, account.id, since, MAX_ROWS)
    shown = rows(alerts, ctx.outward.public_url)
    at_least, total = total > store.MAX_COUNTED, min(total, store.MAX_COUNTED)
    return UseCaseAnswer(Inbox(_text(shown, total, at_least), total, at_least, shown))


def _text(shown: list[AlertRow], total: int, at_least: bool) -> str:
    if not shown:
        return "You got no alert within the last seven days."
    at_least_text = "At least " if at_least else ""
    sentences = [f"{at_least_text}{format_count(total, 'alert')} within the last seven days."]
    if total > len(shown):
        sentences.append(f"The rows hold the newest {len(shown)}.")
    retracted = sum(row.verb == RETRACTED for row in shown)
    if retracted:
        sentences.append(f"{format_count(retracted, 'row')} retracted by a reorg.")
    return "\n".join([" ".join([*sentences, "The newest:"]), *(row.text for row in shown[:_QUOTED])])
