"""``test_rule``: the alerts that a rule would have raised within the last seven days."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence, Set
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated

import asyncpg
import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alerts import INBOX_S, Alert, draft_alert
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Happening, Rule, Watch
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.alert_rows import rows
from roundtrip.services.support.answer_fields import says
from roundtrip.services.support.index_reader import reading, when
from roundtrip.services.watch.rule_parser import parse
from roundtrip.services.watch.rules import (
    MAX_HITS_SHOWN,
    HitRow,
    RuleParams,
    RuleTested,
    describe_rule,
    unseen_text,
    wallet_of,
)
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import ids_of, labels
from roundtrip.store.index.vitals import followed_from_s
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import happenings, watches
from roundtrip.store.watch.happenings import IndexedBlock, ReplayResult

LONGEST_S = 8.0
"""The timeout of a replay. The target is two seconds for 24 million trades."""


async def replay_rule(ctx: Context, params: RuleParams, account: Account) -> UseCaseAnswer[RuleTested]:
    """The number of hits, and the last ones. Raises CallerFault (bad_input), ServiceFull."""
    tested, _ = await _replay_with_times(ctx, params, account)
    return UseCaseAnswer(tested)


async def _replay_with_times(
    ctx: Context, params: RuleParams, account: Account
) -> tuple[RuleTested, Sequence[int]]:
    """The result, and the times of the counted hits, in seconds since 1970, the newest first."""
    rule = parse(params.rule)
    with ctx.replays.hold_slot(account.id):
        return await _replay(ctx, rule, account)


async def _replay(ctx: Context, rule: Rule, account: Account) -> tuple[RuleTested, Sequence[int]]:
    async with reading(ctx) as (connection, indexed):
        wallet = await wallet_of(connection, rule)
        notes = [await unseen_text(connection, rule)]
        follows = frozenset(follow.wallet for follow in await watches.follows_of(connection, account.id))
        if rule.who.kind == "follow" and not follows:
            notes.append("You follow no wallet yet, so this rule cannot hit: follow_wallet adds one.")
        to = IndexedBlock(indexed.block.number, indexed.block.timestamp_s)
        after_s = await _start_s(connection, indexed)
        if after_s > to.at_s - INBOX_S:
            notes.append(
                f"The index begins at {when(after_s):%Y-%m-%d %H:%M} UTC: earlier hits are not counted."
            )
        async with _limit_time(connection):
            watch = Watch(rule, _wallets(rule, wallet, follows))
            replay = await happenings.replay_rule(connection, ctx.contracts, watch, after_s, to)
            last = await _hit_rows(connection, rule, replay.last[:MAX_HITS_SHOWN], account)
    tested = RuleTested(
        text=" ".join(filter(None, [_text(rule, wallet, replay, last), *notes])),
        rule=rule.text(),
        wallet=wallet,
        hits=replay.hits,
        at_least=replay.at_least,
        last=last,
        from_time=when(after_s),
        to_time=when(to.at_s),
        block=to.number,
    )
    return tested, replay.at_s


async def _start_s(connection: Connection, indexed: Cursor) -> int:
    """The start of the replay: seven days ago, or the start of the index if that is later."""
    start_s = indexed.block.timestamp_s - INBOX_S
    return max(start_s, await followed_from_s(connection, indexed)) if indexed.start_number else start_s


@asynccontextmanager
async def _limit_time(connection: Connection) -> AsyncIterator[None]:
    """Limits the time of all statements in the block, in the database too, so that an abandoned query ends.
    Raises ServiceFull."""
    await connection.execute("SELECT set_config('statement_timeout', $1, true)", str(int(LONGEST_S * 1000)))
    try:
        async with asyncio.timeout(LONGEST_S):
            yield
    except (TimeoutError, asyncpg.QueryCanceledError) as error:
        raise ServiceFull(
            "busy",
            "Replaying seven days of this rule takes too long now. Retry in 30 s, or narrow the rule to a "
            "wallet, a token or a larger amount.",
            30,
        ) from error


async def _hit_rows(
    connection: Connection, rule: Rule, hits: Sequence[Happening], account: Account
) -> list[HitRow]:
    """The rows of alerts that these hits would have raised."""
    ids = await ids_of(connection, {hit.token for hit in hits})
    symbols = {label.address: label.symbol for label in (await labels(connection, ids.values())).values()}
    source = AlertSource("rule", 0, account.id, rule.text(), 0)
    alerts = [Alert(0, draft_alert(source, hit), symbol=symbols.get(hit.token)) for hit in hits]
    fields = HitRow.__struct_fields__
    return [HitRow(**{name: getattr(row, name) for name in fields}) for row in rows(alerts)]


def _wallets(rule: Rule, wallet: Address | None, follows: Set[Address]) -> Set[Address] | None:
    """The wallets that the rule is about; None: any wallet."""
    if rule.who.kind == "follow":
        return follows
    return None if wallet is None else frozenset({wallet})


def _text(rule: Rule, wallet: Address | None, replay: ReplayResult, last: list[HitRow]) -> str:
    condition = f"It hits when {describe_rule(rule, wallet)}."
    span = "within the last seven days"
    if not replay.hits:
        return f"This rule would not have hit {span}. {condition} No rule was set."
    times = format_count(replay.hits, "time")
    bound = "at least " if replay.at_least else ""
    newest = f" The last hit: {last[0].text}" if last else ""
    return f"This rule would have hit {bound}{times} {span}. {condition}{newest} No rule was set."


STEPS_S = (300, 3600, 21_600)
MAX_BARS = 48
"""The most bars of a chart; ``STEPS_S``: the seconds that one bar may stand for."""


class RuleBar(msgspec.Struct, frozen=True):
    """``hits`` from ``at`` on, for one step."""

    at: datetime
    hits: int


class RuleDrawn(RuleTested, frozen=True, rename="camel", kw_only=True):
    """The result of a replay, with a chart of the hits."""

    step_s: int
    bars: Annotated[
        list[RuleBar], says("The oldest first, empty steps too; where atLeast, the uncounted left out.")
    ]


async def draw_rule(ctx: Context, params: RuleParams, account: Account) -> UseCaseAnswer[RuleDrawn]:
    """The result of ``test_rule``, with a chart of the hits. Raises CallerFault (bad_input), ServiceFull."""
    tested, hits_s = await _replay_with_times(ctx, params, account)
    from_s, to_s = int(tested.from_time.timestamp()), int(tested.to_time.timestamp())
    step_s = step_of(to_s - from_s)
    if tested.at_least:
        # The step in which counting ended is incomplete: leave it out.
        from_s = hits_s[-1] // step_s * step_s + step_s
    bars = bars_of(hits_s, from_s, to_s, step_s)
    return UseCaseAnswer(RuleDrawn(**msgspec.structs.asdict(tested), step_s=step_s, bars=bars))


def step_of(span_s: int) -> int:
    """The smallest step, in seconds, that divides ``span_s`` into at most MAX_BARS bars."""
    return next((step_s for step_s in STEPS_S if span_s <= step_s * MAX_BARS), STEPS_S[-1])


def bars_of(hits_s: Sequence[int], from_s: int, to_s: int, step_s: int) -> list[RuleBar]:
    """Hits by steps that are aligned to the clock, from the step of ``from_s`` to the step of ``to_s``."""
    counts = Counter(at_s // step_s for at_s in hits_s)
    steps = range(from_s // step_s, to_s // step_s + 1)
    return [RuleBar(when(step * step_s), counts[step]) for step in steps]
