"""Reads the events of the stream: those since the last turn, once for all readers; or those since one
reader's last event. The event stream's parameters and events."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple, Protocol, get_args

import msgspec

from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base.errors import CallerFault, ServiceFull
from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.domain.liquidity.unlocks import Removal
from roundtrip.domain.verdicts.stream_position import IdTracker, StreamPosition, parse_position
from roundtrip.domain.watch.rules import Happening
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.alert_rows import AlertRow, RemovalRow, describe_removal, present_removal
from roundtrip.services.support.alert_rows import rows as alert_rows
from roundtrip.services.support.answer_fields import CodeText, LevelText, Sentence, read_address, says
from roundtrip.services.support.index_reader import looking, when
from roundtrip.store.accounts import accounts as account_store
from roundtrip.store.liquidity.positions import read_removals_between
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.rows import Connection
from roundtrip.store.verdicts import news as news_store
from roundtrip.store.verdicts.news import CheckNews
from roundtrip.store.watch import alerts as alerts_store
from roundtrip.store.watch.happening_rows import ALL, FactSpan, HappeningReader
from roundtrip.store.watch.happening_trades import graduations, launches

MAX_TOKENS = 50
Kind = Literal["verdict", "launch", "graduation", "removal", "alert"]
Notice = Literal["reorg", "gap", "cut"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class StreamParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which events, and from where on."""

    tokens: Annotated[
        str,
        says(
            f"Addresses of 1 to {MAX_TOKENS} tokens, separated by commas: only their verdicts, "
            "launches, graduations and removals. Left out: of all tokens. Alerts are always all of yours."
        ),
    ] = ""
    events: Annotated[
        str, says(f"Kinds of events, separated by commas: {', '.join(KINDS)}. Left out: all of them.")
    ] = ""
    last_event_id: Annotated[
        str,
        says(
            "The id of the last event that you have: the stream resumes after it, up to an hour "
            "later. The header Last-Event-ID, which browsers send, comes first. Left out: from now on."
        ),
    ] = ""

    def wanted_tokens(self) -> frozenset[Address] | None:
        """The tokens; None: all. Raises CallerFault (bad_input, bad_address)."""
        if not self.tokens:
            return None
        addresses = self.tokens.split(",", MAX_TOKENS)
        if len(addresses) > MAX_TOKENS:
            raise CallerFault("bad_input", f"tokens may name at most {MAX_TOKENS} addresses.")
        return frozenset(read_address(address, "Each of tokens") for address in addresses)

    def wanted_kinds(self) -> frozenset[Kind]:
        """The kinds of events. Raises CallerFault (bad_input)."""
        if not self.events:
            return frozenset(KINDS)
        names = self.events.split(",", len(KINDS))
        kinds = frozenset(kind for kind in KINDS if kind in names)
        if not kinds.issuperset(names):
            raise CallerFault(
                "bad_input", f"events must be some of {', '.join(KINDS)}, such as verdict,launch."
            )
        return kinds

    def resumes_after(self) -> StreamPosition | None:
        """The position of the last event; None: from now on. Raises CallerFault (bad_input)."""
        try:
            return parse_position(self.last_event_id) if self.last_event_id else None
        except ValueError:
            raise CallerFault(
                "bad_input",
                "Last-Event-ID is no id of an event of this stream. Leave it out to start from now on.",
            ) from None


class VerdictState(msgspec.Struct, frozen=True, rename="camel"):
    """A verdict without its text."""

    code: Annotated[CodeText, says("The verdict's code.")]
    level: Annotated[LevelText, says("The verdict's level.")]
    round_trip_loss_bps: Annotated[
        int | None, says("Loss of the round trip, in hundredths of a percent. null: not measured.")
    ]


class StreamEvent(msgspec.Struct, frozen=True):
    """The data of one event. What does not apply to its kind is null."""

    kind: Annotated[
        Kind | Notice,
        says(
            "verdict: a check found another verdict than the one before, or is the token's "
            "first; launch, graduation: of a launchpad's token; removal: a wallet took much active liquidity "
            "out of a pool of the token; alert: one of yours; reorg: launches, graduations, removals and "
            "alerts above its block were taken back; gap: events are missing; cut: the stream ends here."
        ),
    ]
    text: Sentence
    at: Annotated[datetime, says("When it happened.")]
    token: Annotated[str | None, says("The token's address. null: no token.")] = None
    block: Annotated[int | None, says("Its block. null: of no block.")] = None
    wallet: Annotated[
        str | None,
        says("The token's deployer; of a removal, who made it. null: none of launch, graduation, removal."),
    ] = None
    verdict: Annotated[VerdictState | None, says("The new verdict. null: not about a verdict.")] = None
    before: Annotated[
        VerdictState | None,
        says("The verdict before. null: not about a verdict, or the token's first check."),
    ] = None
    alert: Annotated[AlertRow | None, says("The alert, as in the inbox. null: none.")] = None
    removal: Annotated[RemovalRow | None, says("The removal. null: not about a removal.")] = None


class StreamPlan(msgspec.Struct, frozen=True):
    """What a stream sends, and to whom."""

    account_id: Annotated[int, says("Id of the account.")]
    tokens: Annotated[list[str] | None, says("The tokens. null: all.")]
    kinds: Annotated[list[Kind], says("The kinds of events.")]
    after: Annotated[str | None, says("The last event's id. null: from now on.")]


async def plan_stream(ctx: Context, params: StreamParams, account: Account) -> UseCaseAnswer[StreamPlan]:
    """What a stream is to send, by its parameters. Raises CallerFault (bad_input, bad_address)."""
    tokens, after = params.wanted_tokens(), params.resumes_after()
    return UseCaseAnswer(
        StreamPlan(
            account.id,
            None if tokens is None else sorted(tokens),
            sorted(params.wanted_kinds()),
            None if after is None else str(after),
        )
    )


MAX_CHECKS_A_TURN, MAX_ALERTS_A_TURN, MAX_BLOCKS_A_TURN = 100, 200, 100
"""What one call of ``read`` (a turn) reads at most."""
RESUMES_S = 3600
"""How old the last event may be after which a stream resumes."""
MAX_RESUMED = 1000
"""Events of each kind that a stream repeats at most."""
_ALL_BLOCKS = 10**9


class NewsEvent(NamedTuple):
    """One event. ``account_id``: whose it is; None: everybody's. ``data``: encoded JSON."""

    position: StreamPosition
    kind: Kind | Notice
    token: Address | None
    account_id: int | None
    data: bytes


@dataclass(slots=True)
class NewsCursor:
    """How far events were read for everybody."""

    position: StreamPosition
    checks: IdTracker
    alerts: IdTracker


class NewsSource(Protocol):
    """Where the hub reads events. Its methods raise ServiceFull."""

    async def dead_keys(self, hashes: Collection[bytes]) -> set[bytes]:
        """Which of these hashes are of no live key."""

    async def begin(self) -> NewsCursor:
        """A cursor at the newest rows."""

    async def read(self, cursor: NewsCursor, accounts: Collection[int]) -> tuple[list[NewsEvent], bool]:
        """The next events, and the alerts of these accounts; moves the cursor on. True: there are no more of
        them now."""

    async def resume(self, plan: StreamPlan, after: StreamPosition, to: StreamPosition) -> list[NewsEvent]:
        """What one stream missed between two positions; with a gap event where something is left out."""


@dataclass(frozen=True, slots=True)
class DatabaseNews:
    """Reads events from the database."""

    ctx: Context

    async def dead_keys(self, hashes: Collection[bytes]) -> set[bytes]:
        """Which of these hashes are of no live key. Raises ServiceFull (busy)."""
        try:
            async with self.ctx.pool.acquire() as connection:
                return await account_store.dead_hashes(connection, hashes)
        except DATABASE_FAULTS as fault:
            raise ServiceFull("busy", "The database is unavailable. Retry in 5 seconds.", 5) from fault

    async def begin(self) -> NewsCursor:
        """A cursor at the newest rows. Raises ServiceFull (busy)."""
        async with looking(self.ctx) as (connection, index):
            ids = await news_store.newest_ids(connection)
        block, block_s = (0, 0) if index is None else (index.block.number, index.block.timestamp_s)
        at_s = int(self.ctx.now_s())
        position = StreamPosition(ids.evidence, block, _LAST_LOG, block_s, ids.rewound, ids.alert, at_s)
        return NewsCursor(position, IdTracker(ids.evidence), IdTracker(ids.alert))

    async def read(self, cursor: NewsCursor, accounts: Collection[int]) -> tuple[list[NewsEvent], bool]:
        """As ``NewsSource.read``. Raises ServiceFull (busy), and then leaves the cursor."""
        now_s = self.ctx.now_s()
        async with looking(self.ctx) as (connection, index):
            checks = await news_store.checks_after(
                connection, cursor.checks.last, list(cursor.checks.waited_for()), MAX_CHECKS_A_TURN
            )
            alerts = await news_store.alerts_after(
                connection, cursor.alerts.last, list(cursor.alerts.waited_for()), MAX_ALERTS_A_TURN
            )
            to = None if index is None else (index.block.number, index.block.timestamp_s)
            position = replace(cursor.position, at_s=int(now_s))
            if to is not None and position.block_s == 0:
                # There was no index when the stream began: what it has read since is history.
                position = replace(position, block=to[0], log=_LAST_LOG, block_s=to[1])
            chain, position = await self._read_chain(connection, position, to, MAX_BLOCKS_A_TURN)
            wanted = {alert_id: account_id for alert_id, account_id in alerts if account_id in accounts}
            shown = await _show_alerts(connection, wanted, self.ctx)
        events = list(chain)
        for check in checks:
            cursor.checks.note(check.id, now_s)
            position = replace(position, evidence=cursor.checks.sent())
            if check.is_change():
                events.append(_check_event(check, position))
        for alert_id, account_id in alerts:
            cursor.alerts.note(alert_id, now_s)
            position = replace(position, alert=cursor.alerts.sent())
            if alert_id in shown:
                events.append(NewsEvent(position, "alert", None, account_id, shown[alert_id]))
        cursor.checks.forget_late(now_s)
        cursor.alerts.forget_late(now_s)
        cursor.position = replace(position, evidence=cursor.checks.sent(), alert=cursor.alerts.sent())
        is_full = len(checks) >= MAX_CHECKS_A_TURN or len(alerts) >= MAX_ALERTS_A_TURN
        return events, not is_full and (to is None or position.block >= to[0])

    async def resume(self, plan: StreamPlan, after: StreamPosition, to: StreamPosition) -> list[NewsEvent]:
        """What one stream missed between two positions; with a gap event where something is left out. Raises
        ServiceFull (busy)."""
        if (gap := _find_gap(after, to)) is not None:
            return [notice("gap", gap, to)]
        tokens = None if plan.tokens is None else [Address(token) for token in plan.tokens]
        position = replace(after, at_s=to.at_s)
        async with looking(self.ctx) as (connection, _):
            checks = await news_store.changes_between(
                connection,
                after.evidence,
                to.evidence,
                tokens,
                when(to.at_s - 2 * RESUMES_S),
                MAX_RESUMED + 1,
            )
            missed = await news_store.alerts_between(
                connection, after.alert, to.alert, plan.account_id, MAX_RESUMED + 1
            )
            chain, position = await self._read_chain(
                connection, position, (to.block, to.block_s), _ALL_BLOCKS
            )
            shown = await _show_alerts(connection, dict(missed[:MAX_RESUMED]), self.ctx)
        events = chain[-MAX_RESUMED:]
        for check in checks[:MAX_RESUMED]:
            position = replace(position, evidence=max(position.evidence, check.id))
            events.append(_check_event(check, position))
        for alert_id, account_id in missed[:MAX_RESUMED]:
            position = replace(position, alert=max(position.alert, alert_id))
            if alert_id in shown:
                events.append(NewsEvent(position, "alert", None, account_id, shown[alert_id]))
        if max(len(checks), len(missed), len(chain)) > MAX_RESUMED:
            text = f"More than {MAX_RESUMED:,} events of a kind were missed; the others are left out."
            events.append(notice("gap", text, to))
        return events

    async def _read_chain(
        self, connection: Connection, position: StreamPosition, to: tuple[int, int] | None, most_blocks: int
    ) -> tuple[list[NewsEvent], StreamPosition]:
        """Reorgs, launches, graduations and removals after the position, and the position after them."""
        events = []
        for reorg in await news_store.reorgs_after(connection, position.rewound):
            position = replace(position, rewound=reorg.id)
            if reorg.to_number < position.block:
                position = replace(position, block=reorg.to_number, log=_LAST_LOG, block_s=reorg.to_s)
            text = f"Blocks above {reorg.to_number} left the chain: what happened in them was taken back."
            data = StreamEvent("reorg", text, when(reorg.to_s), block=reorg.to_number)
            events.append(NewsEvent(position, "reorg", None, None, msgspec.json.encode(data)))
        if to is None or (to[0], _LAST_LOG) <= (position.block, position.log):
            return events, position
        number, at_s = to
        last = min(number, position.block + most_blocks)
        reader = await HappeningReader.of(connection, self.ctx.contracts)
        # From the position's own block on: it may have been read only in part.
        span = FactSpan(position.block_s, at_s, position.block - 1, last)
        pages = await launches(reader, span, ALL), await graduations(reader, span, ALL)
        found: list[Happening | Removal] = [happening for page in pages for happening in page.happenings]
        removals = await read_removals_between(connection, *span[:4])
        # Where money trades for money, no token loses its liquidity.
        money = {ZERO_ADDRESS, self.ctx.contracts.weth, self.ctx.contracts.usdg}
        found += [removal for removal in removals if removal.token not in money]
        for happening in sorted(found, key=lambda one: (one.spot.block_number, one.spot.log_index)):
            spot = happening.spot
            if (spot.block_number, spot.log_index) <= (position.block, position.log):
                continue
            position = replace(position, block=spot.block_number, log=spot.log_index, block_s=spot.at_s)
            if isinstance(happening, Removal):
                events.append(_removal_event(happening, position))
            else:
                events.append(_chain_event(happening, position))
        block_s = at_s if last == number else position.block_s
        return events, replace(position, block=last, log=_LAST_LOG, block_s=block_s)


_LAST_LOG = 10**9
"""After every log of a block."""


def notice(kind: Notice, text: str, position: StreamPosition) -> NewsEvent:
    """An event about the stream itself."""
    data = StreamEvent(kind, text, when(position.at_s))
    return NewsEvent(position, kind, None, None, msgspec.json.encode(data))


def _find_gap(after: StreamPosition, to: StreamPosition) -> str | None:
    """Why a stream cannot resume; None: it can."""
    # The position comes from the reader: both of its times must be recent.
    is_old = after.block_s < to.block_s - RESUMES_S - _AHEAD_S
    if after.at_s < to.at_s - RESUMES_S or is_old:
        return "More than an hour has passed since the last event: what happened in between is not repeated."
    ahead = (after.evidence > to.evidence, after.alert > to.alert, after.rewound > to.rewound)
    if any(ahead) and after.at_s < to.at_s - _AHEAD_S:
        return "The last event is not known here: what happened since is not repeated."
    return None


_AHEAD_S = 10
"""Another process may be ahead of this one by so much."""


def _check_event(check: CheckNews, position: StreamPosition) -> NewsEvent:
    before, text = None, f"The first check of {check.token} found {check.code} ({check.level})."
    if check.code_before is not None and check.level_before is not None:
        before = VerdictState(check.code_before, check.level_before, check.loss_before_bps)
        went = f"from {before.code} ({before.level}) to {check.code} ({check.level})"
        text = f"The verdict of {check.token} went {went}."
    verdict = VerdictState(check.code, check.level, check.loss_bps)
    at = check.checked_at.astimezone(UTC)
    data = StreamEvent(
        "verdict", text, at, token=check.token, block=check.block_number, verdict=verdict, before=before
    )
    return NewsEvent(position, "verdict", check.token, None, msgspec.json.encode(data))


def _chain_event(happening: Happening, position: StreamPosition) -> NewsEvent:
    kind: Kind = "launch" if happening.verb == "launching" else "graduation"
    what = f"was launched by {happening.wallet}" if kind == "launch" else "graduated from its curve to a pool"
    data = StreamEvent(
        kind,
        f"{happening.token} {what}.",
        when(happening.spot.at_s),
        token=happening.token,
        block=happening.spot.block_number,
        wallet=happening.wallet,
    )
    return NewsEvent(position, kind, happening.token, None, msgspec.json.encode(data))


def _removal_event(removal: Removal, position: StreamPosition) -> NewsEvent:
    spot = removal.spot
    data = StreamEvent(
        "removal",
        describe_removal(removal),
        when(spot.at_s),
        token=removal.token,
        block=spot.block_number,
        wallet=removal.wallet,
        removal=present_removal(removal),
    )
    return NewsEvent(position, "removal", removal.token, None, msgspec.json.encode(data))


async def _show_alerts(connection: Connection, wanted: dict[int, int], ctx: Context) -> dict[int, bytes]:
    """The encoded events of alerts that are still kept, by the alert's id."""
    if not wanted:
        return {}
    kept = await alerts_store.alerts(connection, wanted.keys())
    return {
        row.id: msgspec.json.encode(
            StreamEvent("alert", row.text, _utc(row.ts), token=row.token, block=row.block, alert=row)
        )
        for row in alert_rows(kept, ctx.outward.public_url)
    }


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC)
