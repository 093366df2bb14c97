"""What a transaction that somebody reported comes to, held against the verdicts that spoke of its time: at
once, and again where it came too early."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.wallet.transactions import block_call, read_block, read_transaction
from roundtrip.domain.base.errors import CallerFault, NodeFault
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.scorecard.scorecard import HOUR_S, SETTLED_S, FailedSell, RealTrade, score_claim
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import reading
from roundtrip.services.valuation.holdings import worth
from roundtrip.store.index.cursor import Cursor
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard import verdict_reports as reports
from roundtrip.store.scorecard.scorecard import ScoredVerdict
from roundtrip.store.server.rows import Connection

from . import failed_sells
from .failed_sells import FailedTransaction, SellValuation, failed_sell
from .real_trades import Token, by_receipt
from .settlement import ScorecardCase, as_scored, case_of, read

MOST_VERDICTS = 12
"""So many verdicts of before a transaction, the newest, are held against it."""
MOST_AGAIN = 5
"""So many reports are weighed again in one run."""
AGAIN_S = (15, 45, 240, 600, 3600, 86_400)
"""How long a report that came too early waits, each time."""
_UNKNOWN = (
    "The chain knows no such transaction: it was never sent here, was dropped, or is so new that it has not "
    "come round yet. Nothing was kept."
)
_NO_VERDICT = "No verdict on this token is kept that spoke of the time of that transaction."
TOO_NEW = (
    "It is too new: what is younger than ten minutes may still be undone, or is not in the index yet. It is "
    "weighed again by itself, a few times within a day, so you need not send it again. What it proves then "
    "is listed on the scorecard."
)
NEVER_CAME = (
    "It was weighed again for a day, and is still in no block, or in none that the index has, or could not "
    "be read."
)
_AGREES = (
    "It does not speak against what was said: it was of another size, of another time, of a wallet that "
    "is not known as a plain one, or it bears the verdict out."
)


@dataclass(frozen=True, slots=True)
class ReviewedReport:
    """What a transaction comes to: verdicts that it proves wrong, or why it proves none. ``spoken_of``: the
    newest verdict of its time. ``too_early``: nobody can tell yet."""

    wrong: Sequence[ScoredVerdict] = ()
    why_open: str = _AGREES
    spoken_of: int | None = None
    too_early: bool = False

    def evidence_id(self) -> int | None:
        """Of which verdict it is."""
        return self.wrong[0].id if self.wrong else self.spoken_of


_EARLY = ReviewedReport(why_open=TOO_NEW, too_early=True)


def again_at(now: datetime, tries: int) -> datetime | None:
    """When a report that came too early, and was weighed again so often, is weighed again; None: no more."""
    return now + timedelta(seconds=AGAIN_S[tries]) if tries < len(AGAIN_S) else None


# --- again -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReviewedAgain:
    """A report that was weighed again, and what it comes to now. ``next_at``: when once more."""

    report: reports.WaitingReport
    weighed: ReviewedReport
    next_at: datetime | None

    async def put(self, connection: Connection, now: datetime) -> None:
        """Writes it, and marks what it proves wrong."""
        weighed = self.weighed
        why_open = None if weighed.wrong else weighed.why_open
        if await reports.weighed_again(
            connection, self.report, why_open, weighed.evidence_id(), self.next_at
        ):
            for one in weighed.wrong:
                await store.settle_by(connection, one, now)


async def weigh_again(ctx: Context, values: SellValuation = worth) -> list[ReviewedAgain]:
    """Weighs reports again that came too early, some of those whose time has come; nothing is written. Where
    the node does not tell of one it waits on. Raises ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with ctx.pool.acquire() as connection:
        waiting = await reports.due(connection, now, MOST_AGAIN)
    found, meter = [], Meter()
    for one in waiting:
        try:
            weighed = await weigh_report(ctx, one.token, one.tx_hash, values, meter)
        except (NodeFault, CallerFault):
            # It did not answer, or what it had seen waiting it knows no more.
            weighed = _EARLY
        next_at = again_at(now, one.tries + 1) if weighed.too_early else None
        if weighed.too_early and next_at is None:
            weighed = ReviewedReport(why_open=NEVER_CAME)
        found.append(ReviewedAgain(one, weighed, next_at))
    return found


# --- held against the chain ------------------------------------------------------------------------


async def weigh_report(
    ctx: Context, token: Address, tx_hash: TxHash, values: SellValuation, meter: Meter
) -> ReviewedReport:
    """Holds a transaction against what was said of a token. Raises CallerFault (no_such_tx), NodeFault,
    ServiceFull."""
    told = await read_transaction(ctx.node, tx_hash, ctx.chain_id, meter)
    if told is None:
        raise CallerFault("no_such_tx", _UNKNOWN)
    sent, mined = told
    if mined is None or sent.block is None:
        return _EARLY
    (answer,) = await ctx.node.batch([block_call(sent)], meter)
    tried = FailedTransaction(sent, read_block(answer, sent))
    at = tried.around.ref
    async with reading(ctx) as (connection, stands):
        # Of what failed the index knows nothing, but of what its sender had done before.
        settled_s = stands.block.timestamp_s - (SETTLED_S if mined.succeeded else 0)
        if at.timestamp_s > settled_s:
            return _EARLY
        cases = await _cases(ctx, connection, stands, token, tried)
        if not cases:
            return ReviewedReport(why_open=_NO_VERDICT)
        why_open = None if mined.succeeded else await _why_none(ctx, connection, cases, tried)
    spoken_of = cases[-1].verdict.id
    if why_open is not None:
        return ReviewedReport(why_open=why_open, spoken_of=spoken_of)
    if not mined.succeeded:
        return await _review_failed_sell(ctx, token, tried, cases, values, meter)
    wrong: list[ScoredVerdict] = []
    for case in cases:
        if _is_marked(case, wrong):
            continue
        reals = [await by_receipt(ctx, token, one, meter) for one in case.found]
        wrong += _against(case, [one for one in reals if one is not None])
    return ReviewedReport(wrong, spoken_of=spoken_of)


async def _cases(
    ctx: Context, connection: Connection, stands: Cursor, token: Address, tried: FailedTransaction
) -> list[ScorecardCase]:
    """The verdicts that spoke of its time, the oldest first: of an hour and code the first is scored."""
    at, found = tried.around.ref, []
    for verdict in reversed(await store.spoken_of(connection, token, at.number, MOST_VERDICTS)):
        evidence, spoken = await asyncio.to_thread(read, verdict, ctx.policy)
        if evidence is None or spoken is None or not spoken.from_s <= at.timestamp_s <= spoken.until_s:
            continue
        found.append(
            await case_of(ctx, connection, stands, verdict, evidence, spoken, spoken.from_s, tried.sent.hash)
        )
    return found


def _is_marked(case: ScorecardCase, wrong: Sequence[ScoredVerdict]) -> bool:
    """Whether one of its hour and code is found wrong already: one transaction marks one of these."""
    key = case.from_s // HOUR_S, case.verdict.code
    return any(key == (one.from_s // HOUR_S, one.code) for one in wrong)


async def _why_none(
    ctx: Context, connection: Connection, cases: Sequence[ScorecardCase], tried: FailedTransaction
) -> str | None:
    """Why a transaction that failed is no plain wallet's sell, as far as the index and its call tell; None:
    it may be one."""
    token: Token | None = next((one.token for one in cases if one.token is not None), None)
    if token is None:
        return failed_sells.NOT_PLAIN
    at = tried.around.ref
    if not await failed_sells.names_sell(connection, ctx, token, tried.sent):
        return failed_sells.NO_SELL
    plain = await failed_sells.is_plain(connection, token, tried.sent, at.number, at.timestamp_s)
    return None if plain else failed_sells.NOT_PLAIN


async def _review_failed_sell(
    ctx: Context,
    token: Address,
    tried: FailedTransaction,
    cases: Sequence[ScorecardCase],
    values: SellValuation,
    meter: Meter,
) -> ReviewedReport:
    """A sell that failed speaks against verdicts that it can be sold."""
    wrong: list[ScoredVerdict] = []
    why_open, known = _AGREES, dict[tuple[int, ...], FailedSell | str]()
    for case in cases:
        if case.said is None or case.said.claim not in ("sells", "costs") or _is_marked(case, wrong):
            continue
        sizes_raw = case.said.sizes_raw
        if sizes_raw not in known:
            known[sizes_raw] = await failed_sell(ctx, token, tried, case.said, values, meter)
        failed = known[sizes_raw]
        if isinstance(failed, str):
            why_open = failed
        else:
            wrong += _against(case, (), (failed,))
    return ReviewedReport(wrong, why_open, cases[-1].verdict.id)


def _against(
    case: ScorecardCase, reals: Sequence[RealTrade], failed: Sequence[FailedSell] = ()
) -> list[ScoredVerdict]:
    """What a verdict comes to by these alone, where that is wrong."""
    if case.said is None:
        return []
    score = score_claim(case.said, reals, case.turned, failed)
    # A later check of ours is no word of this transaction.
    if score.outcome != "wrong" or score.cause == "turned":
        return []
    return [as_scored(case, score, reported=True)]
