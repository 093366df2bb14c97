"""Reviews reported transactions: compares each with the verdicts whose period includes it, at once, and again
later when the report came too early."""

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
from .failed_sells import FailedTransaction, SellValuation, retry_failed_sell
from .real_trades import Token, confirm_by_receipt
from .settlement import ScorecardCase, as_scored, read_case, read_verdict

MAX_VERDICTS = 12
"""The most verdicts before a transaction, the newest ones, that it is compared with."""
MAX_AGAIN = 5
"""The most reports that one run reviews again."""
AGAIN_S = (15, 45, 240, 600, 3600, 86_400)
"""The waits of a report that came too early, before its second review, its third and so on."""
_UNKNOWN = (
    "The chain does not know this transaction: it was never sent here, was dropped, or is too new. Nothing "
    "was saved: check the hash, or report it again in a few seconds."
)
_NO_VERDICT = "We have no verdict on this token that covers the time of that transaction."
TOO_NEW = (
    "It is too new to decide: a transaction of the last ten minutes may still be undone by a reorg, or is "
    "not in the index yet. We review it again a few times within a day: you need not send it again. The "
    "scorecard lists what it proves then."
)
NEVER_CAME = (
    "We reviewed it again for a day. It is still in no block, or in none that the index has, or we could not "
    "read it."
)
_AGREES = (
    "It does not contradict a verdict: its size or time is another, its wallet is not known as a plain one, "
    "or it confirms the verdict."
)


@dataclass(frozen=True, slots=True)
class ReviewedReport:
    """The result of a review: the verdicts that the transaction proves wrong, or why it proves none.
    ``newest_id``: the newest verdict whose period includes it. ``too_early``: it cannot be decided yet."""

    wrong: Sequence[ScoredVerdict] = ()
    why_open: str = _AGREES
    newest_id: int | None = None
    too_early: bool = False

    def evidence_id(self) -> int | None:
        """The verdict that the report belongs to."""
        return self.wrong[0].id if self.wrong else self.newest_id


_EARLY = ReviewedReport(why_open=TOO_NEW, too_early=True)


def review_again_at(now: datetime, tries: int) -> datetime | None:
    """When to review a report that came too early again, after ``tries`` repeated reviews; None: never."""
    return now + timedelta(seconds=AGAIN_S[tries]) if tries < len(AGAIN_S) else None


# --- repeated reviews ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReviewedAgain:
    """A report after a repeated review. ``next_at``: when to review it once more."""

    report: reports.WaitingReport
    review: ReviewedReport
    next_at: datetime | None

    async def put(self, connection: Connection, now: datetime) -> None:
        """Writes the result, and marks the verdicts that it proves wrong."""
        why_open = None if self.review.wrong else self.review.why_open
        if await reports.save_review(
            connection, self.report, why_open, self.review.evidence_id(), self.next_at
        ):
            for verdict in self.review.wrong:
                await store.mark_wrong(connection, verdict, now)


async def review_again(ctx: Context, values: SellValuation = worth) -> list[ReviewedAgain]:
    """Reviews again some of the due reports that came too early; writes nothing. A report that the node gives
    no answer for keeps waiting. Raises ServiceFull."""
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    async with ctx.pool.acquire() as connection:
        waiting = await reports.due(connection, now, MAX_AGAIN)
    reviewed, meter = [], Meter()
    for report in waiting:
        try:
            review = await review_report(ctx, report.token, report.tx_hash, values, meter)
        except (NodeFault, CallerFault):
            # The node did not answer, or no longer knows a transaction that was pending before.
            review = _EARLY
        next_at = review_again_at(now, report.tries + 1) if review.too_early else None
        if review.too_early and next_at is None:
            review = ReviewedReport(why_open=NEVER_CAME)
        reviewed.append(ReviewedAgain(report, review, next_at))
    return reviewed


# --- one review ------------------------------------------------------------------------------------


async def review_report(
    ctx: Context, token: Address, tx_hash: TxHash, values: SellValuation, meter: Meter
) -> ReviewedReport:
    """Compares a transaction with a token's verdicts. Raises CallerFault (no_such_tx), NodeFault,
    ServiceFull."""
    answer = await read_transaction(ctx.node, tx_hash, ctx.chain_id, meter)
    if answer is None:
        raise CallerFault("no_such_tx", _UNKNOWN)
    sent, mined = answer
    if mined is None or sent.block is None:
        return _EARLY
    (block_answer,) = await ctx.node.batch([block_call(sent)], meter)
    transaction = FailedTransaction(sent, read_block(block_answer, sent))
    block = transaction.around.ref
    async with reading(ctx) as (connection, indexed):
        # The index holds nothing of a failed transaction itself, only what its sender did before.
        settled_s = indexed.block.timestamp_s - (SETTLED_S if mined.succeeded else 0)
        if block.timestamp_s > settled_s:
            return _EARLY
        cases = await _read_cases(ctx, connection, indexed, token, transaction)
        if not cases:
            return ReviewedReport(why_open=_NO_VERDICT)
        why_open = None if mined.succeeded else await _why_no_sell(ctx, connection, cases, transaction)
    newest_id = cases[-1].verdict.id
    if why_open is not None:
        return ReviewedReport(why_open=why_open, newest_id=newest_id)
    if not mined.succeeded:
        return await _review_failed_sell(ctx, token, transaction, cases, values, meter)
    wrong: list[ScoredVerdict] = []
    for case in cases:
        if _is_marked(case, wrong):
            continue
        trades = [await confirm_by_receipt(ctx, token, trade, meter) for trade in case.trades]
        wrong += _score_if_wrong(case, [trade for trade in trades if trade is not None])
    return ReviewedReport(wrong, newest_id=newest_id)


async def _read_cases(
    ctx: Context, connection: Connection, indexed: Cursor, token: Address, transaction: FailedTransaction
) -> list[ScorecardCase]:
    """The verdicts whose period includes the transaction, the oldest first, because the first one of an hour
    and code is scored."""
    block, cases = transaction.around.ref, []
    tx_hash = transaction.sent.hash
    for verdict in reversed(await store.spoken_of(connection, token, block.number, MAX_VERDICTS)):
        evidence, claim = await asyncio.to_thread(read_verdict, verdict, ctx.policy)
        if evidence is None or claim is None or not claim.from_s <= block.timestamp_s <= claim.until_s:
            continue
        cases.append(
            await read_case(ctx, connection, indexed, verdict, evidence, claim, claim.from_s, tx_hash)
        )
    return cases


def _is_marked(case: ScorecardCase, wrong: Sequence[ScoredVerdict]) -> bool:
    """Whether a verdict of the same hour and code is in ``wrong``: a transaction marks only one of these."""
    key = case.from_s // HOUR_S, case.verdict.code
    return any(key == (verdict.from_s // HOUR_S, verdict.code) for verdict in wrong)


async def _why_no_sell(
    ctx: Context, connection: Connection, cases: Sequence[ScorecardCase], transaction: FailedTransaction
) -> str | None:
    """Why, by the index and the call, a failed transaction is no plain wallet's sell; None: it may be one."""
    token: Token | None = next((case.token for case in cases if case.token is not None), None)
    if token is None:
        return failed_sells.NOT_PLAIN
    sent, block = transaction.sent, transaction.around.ref
    if not await failed_sells.names_sell(connection, ctx, token, sent):
        return failed_sells.NO_SELL
    is_plain = await failed_sells.is_plain(connection, token, sent, block.number, block.timestamp_s)
    return None if is_plain else failed_sells.NOT_PLAIN


async def _review_failed_sell(
    ctx: Context,
    token: Address,
    transaction: FailedTransaction,
    cases: Sequence[ScorecardCase],
    values: SellValuation,
    meter: Meter,
) -> ReviewedReport:
    """A failed sell can prove verdicts wrong that say that the token can be sold."""
    wrong: list[ScoredVerdict] = []
    why_open, sell_by_sizes = _AGREES, dict[tuple[int, ...], FailedSell | str]()
    for case in cases:
        if case.claim is None or case.claim.claim not in ("sells", "costs") or _is_marked(case, wrong):
            continue
        sizes_raw = case.claim.sizes_raw
        if sizes_raw not in sell_by_sizes:
            sell_by_sizes[sizes_raw] = await retry_failed_sell(
                ctx, token, transaction, case.claim, values, meter
            )
        sell = sell_by_sizes[sizes_raw]
        if isinstance(sell, str):
            why_open = sell
        else:
            wrong += _score_if_wrong(case, (), (sell,))
    return ReviewedReport(wrong, why_open, cases[-1].verdict.id)


def _score_if_wrong(
    case: ScorecardCase, trades: Sequence[RealTrade], failed_sells: Sequence[FailedSell] = ()
) -> list[ScoredVerdict]:
    """The verdict's score if these trades and sells alone prove it wrong, else nothing."""
    if case.claim is None:
        return []
    score = score_claim(case.claim, trades, case.later_checks, failed_sells)
    # A later check by this service is no proof by this transaction.
    if score.outcome != "wrong" or score.cause == "turned":
        return []
    return [as_scored(case, score, reported=True)]
