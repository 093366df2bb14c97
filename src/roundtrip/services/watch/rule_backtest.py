"""``test_rule``: what a rule would have told within the last seven days."""

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
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.alert_text import draft_alert
from roundtrip.domain.watch.alerts import INBOX_S, Alert
from roundtrip.domain.watch.rule_index import AlertSource
from roundtrip.domain.watch.rules import Happening, Rule, Watch
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import reading, when
from roundtrip.services.watch.alert_rows import rows
from roundtrip.services.watch.rule_parser import parse
from roundtrip.services.watch.rules import unseen_text, wallet_of, when_it_tells
from roundtrip.services.watch.schema import MOST_HITS_SHOWN, HitRow, RuleParams, RuleTested
from roundtrip.store.index.addresses import ids_of
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.index.tokens import labels
from roundtrip.store.index.vitals import followed_from_s
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import happenings, watches
from roundtrip.store.watch.happenings import IndexedBlock, ReplayResult

LONGEST_S = 8.0
"""It is to take two seconds of 24 million trades."""


async def replay_rule(ctx: Context, params: RuleParams, account: Account) -> UseCaseAnswer[RuleTested]:
    """How often it would have hit, and the last hits. Raises CallerFault (bad_input), ServiceFull."""
    tested, _ = await tested_and_times(ctx, params, account)
    return UseCaseAnswer(tested)


async def tested_and_times(
    ctx: Context, params: RuleParams, account: Account
) -> tuple[RuleTested, Sequence[int]]:
    """The same, and when each hit that was counted was, seconds since 1970, the newest first."""
    rule = parse(params.rule)
    with ctx.replays.hold_slot(account.id):
        return await _test_rule(ctx, rule, account)


async def _test_rule(ctx: Context, rule: Rule, account: Account) -> tuple[RuleTested, Sequence[int]]:
    async with reading(ctx) as (connection, stands):
        wallet = await wallet_of(connection, rule)
        notes = [await unseen_text(connection, rule)]
        follows = frozenset(one.wallet for one in await watches.follows_of(connection, account.id))
        if rule.who.kind == "follow" and not follows:
            notes.append("You follow no wallet yet.")
        to = IndexedBlock(stands.block.number, stands.block.timestamp_s)
        after_s = await _after_s(connection, stands)
        if after_s > to.at_s - INBOX_S:
            notes.append(f"The chain is followed since {when(after_s):%Y-%m-%d %H:%M} UTC only.")
        async with _in_time(connection):
            watch = Watch(rule, _wallets(rule, wallet, follows))
            found = await happenings.replay_rule(connection, ctx.contracts, watch, after_s, to)
            last = await _rows(connection, rule, found.last[:MOST_HITS_SHOWN], account)
    tested = RuleTested(
        text=" ".join(filter(None, [_text(rule, wallet, found, last), *notes])),
        rule=rule.text(),
        wallet=wallet,
        hits=found.hits,
        at_least=found.at_least,
        last=last,
        from_time=when(after_s),
        to_time=when(to.at_s),
        block=to.number,
    )
    return tested, found.at_s


async def _after_s(connection: Connection, stands: Cursor) -> int:
    """Since when it is replayed: seven days, or as long as the chain is followed."""
    after_s = stands.block.timestamp_s - INBOX_S
    return max(after_s, await followed_from_s(connection, stands)) if stands.start_number else after_s


@asynccontextmanager
async def _in_time(connection: Connection) -> AsyncIterator[None]:
    """All that it asks takes so long and no longer, also where nobody waits for it any more."""
    await connection.execute("SELECT set_config('statement_timeout', $1, true)", str(int(LONGEST_S * 1000)))
    try:
        async with asyncio.timeout(LONGEST_S):
            yield
    except (TimeoutError, asyncpg.QueryCanceledError) as error:
        raise ServiceFull(
            "busy",
            "Seven days of that take too long to read just now. Ask again later, or narrow the rule by a "
            "wallet, a token or a larger amount.",
            30,
        ) from error


async def _rows(
    connection: Connection, rule: Rule, hits: Sequence[Happening], account: Account
) -> list[HitRow]:
    """As they would have been told."""
    ids = await ids_of(connection, {one.token for one in hits})
    symbols = {label.address: label.symbol for label in (await labels(connection, ids.values())).values()}
    source = AlertSource("rule", 0, account.id, rule.text(), 0)
    alerts = [Alert(0, draft_alert(source, hit), symbol=symbols.get(hit.token)) for hit in hits]
    shown = HitRow.__struct_fields__
    return [HitRow(**{name: getattr(row, name) for name in shown}) for row in rows(alerts)]


def _wallets(rule: Rule, wallet: Address | None, follows: Set[Address]) -> Set[Address] | None:
    """Who may have done it; None: anybody."""
    if rule.who.kind == "follow":
        return follows
    return None if wallet is None else frozenset({wallet})


def _text(rule: Rule, wallet: Address | None, found: ReplayResult, last: list[HitRow]) -> str:
    asked = f"A rule that tells when {when_it_tells(rule, wallet)}"
    if not found.hits:
        return f"{asked} would have told nothing within the last seven days."
    times = "once" if found.hits == 1 else f"{found.hits:,} times"
    least = "at least " if found.at_least else ""
    newest = f" The last: {last[0].text}" if last else ""
    return f"{asked} would have hit {least}{times} within the last seven days.{newest} No rule was set."


STEPS_S = (300, 3600, 21_600)
MOST_BARS = 48


class RuleBar(msgspec.Struct, frozen=True):
    """``hits`` from ``at`` on, for one step."""

    at: datetime
    hits: int


class RuleDrawn(RuleTested, frozen=True, rename="camel", kw_only=True):
    """What a rule would have told, and when."""

    step_s: int
    bars: Annotated[
        list[RuleBar],
        msgspec.Meta(description="The oldest first, empty steps too; where atLeast, the uncounted left out."),
    ]


async def draw_rule(ctx: Context, params: RuleParams, account: Account) -> UseCaseAnswer[RuleDrawn]:
    """As ``test_rule``, with the hits by time. Raises CallerFault (bad_input), ServiceFull."""
    tested, hits_s = await tested_and_times(ctx, params, account)
    from_s, to_s = int(tested.from_time.timestamp()), int(tested.to_time.timestamp())
    step_s = step_of(to_s - from_s)
    if tested.at_least:
        # Of the step in which counting ended not all were counted.
        from_s = hits_s[-1] // step_s * step_s + step_s
    bars = bars_of(hits_s, from_s, to_s, step_s)
    return UseCaseAnswer(RuleDrawn(**msgspec.structs.asdict(tested), step_s=step_s, bars=bars))


def step_of(span_s: int) -> int:
    """The finest step, in seconds, by which ``span_s`` is no more than MOST_BARS."""
    return next((step_s for step_s in STEPS_S if span_s <= step_s * MOST_BARS), STEPS_S[-1])


def bars_of(hits_s: Sequence[int], from_s: int, to_s: int, step_s: int) -> list[RuleBar]:
    """Hits by steps of the clock, from the one that has ``from_s`` to the one that has ``to_s``."""
    counted = Counter(at_s // step_s for at_s in hits_s)
    steps = range(from_s // step_s, to_s // step_s + 1)
    return [RuleBar(when(step * step_s), counted[step]) for step in steps]
