"""Shows an account its own state."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.accounts.keys import MAX_LIVE
from roundtrip.domain.base.figures import format_count
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import (
    AheadOfChance,
    AnswerText,
    Designation,
    FlagLevel,
    IsAgent,
    says,
)
from roundtrip.services.support.index_reader import Nothing, accounts, allowance_of
from roundtrip.store.accounts import accounts as accounts_store
from roundtrip.store.accounts import credits as credits_store
from roundtrip.store.community import flags as flags_store

from .issue_key import Limits, present_limits


class KeyListed(msgspec.Struct, frozen=True, rename="camel"):
    """A live key, without its secret part."""

    start: Annotated[str, says("The key's first eight characters.")]
    label: Annotated[str, says("The label its owner gave it; empty: none.")]
    made_at: Annotated[datetime, says("When the key was made.")]


class MyMite(msgspec.Struct, frozen=True, rename="camel"):
    """The account of the key that the request was made with."""

    text: AnswerText
    designation: Designation
    wallet: Annotated[str, says("The account's wallet.")]
    agent: IsAgent
    agent_name: Annotated[str | None, says("The agent's name. null: it has none.")]
    level: FlagLevel
    accuracy: Annotated[
        float | None, says("proved divided by decided, 0 to 1. null: none of its flags is decided.")
    ]
    proved: Annotated[int, says("Flags of the account on tokens that proved right.")]
    decided: Annotated[int, says("Flags of the account that proved right or wrong.")]
    base_rate: Annotated[
        float | None,
        says(
            "The same share for tokens drawn at random, one for each flag. null: none of "
            "its flags is decided."
        ),
    ]
    ahead_of_chance: AheadOfChance
    limits: Annotated[Limits, says("How often the account may call.")]
    used_today: Annotated[int, says("Calls of all its keys today (UTC) that count against the day.")]
    remaining_today: Annotated[int, says("Calls left today before the day's limit.")]
    credits: Annotated[int, says("Paid calls that are left, for use after the day's limit.")]
    made_at: Annotated[datetime, says("When the account was made, by its first key or sign-in.")]
    live_keys: Annotated[int, says(f"Its live keys, at most {MAX_LIVE}.")]
    keys: Annotated[list[KeyListed], says("Its live keys, the oldest first.")]


async def my_mite(ctx: Context, params: Nothing, account: Account) -> UseCaseAnswer[MyMite]:
    """The account with its keys, limits, calls and flags. Raises ServiceFull."""
    now_s = ctx.now_s()
    today = datetime.fromtimestamp(now_s, UTC).date()
    async with accounts(ctx) as connection:
        record = await accounts_store.read_account(connection, account.id)
        used = await accounts_store.calls_on(connection, account.id, today)
        live = await accounts_store.live_keys(connection, account.id)
        score = (await flags_store.scores(connection, [account.id]))[account.id]
        credits = await credits_store.balance(connection, account.id, int(now_s * 1000))
    allowance = await allowance_of(ctx, account.wallet)
    answer = MyMite(
        text="",
        designation=account.designation,
        wallet=account.wallet,
        agent=account.is_agent,
        agent_name=account.agent_name,
        level=score.level,
        accuracy=score.accuracy,
        proved=score.proved,
        decided=score.decided,
        base_rate=score.base_rate,
        ahead_of_chance=score.is_ahead,
        limits=present_limits(allowance),
        used_today=used,
        remaining_today=max(0, allowance.per_day - used),
        credits=credits,
        made_at=record.made_at,
        live_keys=len(live),
        keys=[KeyListed(key.start, key.label, key.made_at) for key in live],
    )
    return UseCaseAnswer(msgspec.structs.replace(answer, text=_text(answer)))


def _text(answer: MyMite) -> str:
    noun = "the agent account" if answer.agent else "the account"
    name = f' "{answer.agent_name}"' if answer.agent and answer.agent_name else ""
    paid = f" You also have {format_count(answer.credits, 'paid call')}." if answer.credits else ""
    return (
        f"You are {answer.designation}{name}: {noun} of {answer.wallet}, level {answer.level}. "
        f"{_flags_text(answer)} Your limits are {answer.limits.per_minute:,} calls a minute and "
        f"{answer.limits.per_day:,} a day; {answer.remaining_today:,} are left today.{paid} You have "
        f"{format_count(answer.live_keys, 'live key')} of at most {MAX_LIVE}."
    )


def _flags_text(answer: MyMite) -> str:
    if not answer.decided:
        return "None of your flags is decided yet."
    text = f"{answer.proved:,} of your {format_count(answer.decided, 'decided flag')} proved right"
    if answer.base_rate is None:
        return f"{text}."
    comparison = "" if answer.ahead_of_chance else ", so you are not ahead of chance"
    return f"{text}; for random tokens the share is {answer.base_rate:.0%}{comparison}."
