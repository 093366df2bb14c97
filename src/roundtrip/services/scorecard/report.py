"""A user reports that a transaction proves a verdict wrong; the report is checked against the chain."""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.accounts.account import Account
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, TxHash
from roundtrip.domain.scorecard.scorecard import sentence
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AnswerText, read_address, says
from roundtrip.services.support.index_reader import accounts
from roundtrip.services.valuation.holdings import worth
from roundtrip.store.scorecard import scorecard as store
from roundtrip.store.scorecard import verdict_reports as reports
from roundtrip.store.server import jobs

from .failed_sells import SellValuation
from .report_review import review_again_at, review_report

JOB = ("scorecard", "verdicts")
"""The job that reviews again the reports that came too early."""
MAX_NOTE = 280


class ReportParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which token, by which transaction, and in one's own words."""

    token: Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="The token's address.")]
    hash: Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{64}\Z", description="The transaction's hash.")]
    note: Annotated[
        str, msgspec.Meta(max_length=MAX_NOTE, description="What happened, in your own words.")
    ] = ""

    def address(self) -> Address:
        """The token, lower-cased. Raises CallerFault (bad_address)."""
        return read_address(self.token, "token")

    def tx_hash(self) -> TxHash:
        """The hash in lower case."""
        return TxHash(self.hash.lower())

    def cleaned_note(self) -> str:
        """The note, cleaned by ``names.clean``."""
        return names.clean(self.note, MAX_NOTE)


class Reported(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a report."""

    text: AnswerText
    token: str
    hash: str
    note: Annotated[str, says("As it was kept.")]
    proved: Annotated[bool, says("A verdict was marked wrong by it, now or before.")]
    again: Annotated[bool, says("You had reported it already: nothing was done again.")]


async def report_verdict(
    ctx: Context, params: ReportParams, account: Account, values: SellValuation = worth
) -> UseCaseAnswer[Reported]:
    """Compares the transaction with the token's verdicts and marks those that it proves wrong. Otherwise
    stores an open report, which changes no count; a report that came too early is reviewed again. Raises
    CallerFault (bad_address, bad_input, no_such_tx), NodeFault, ServiceFull."""
    token, tx_hash = params.address(), params.tx_hash()
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    async with accounts(ctx) as connection:
        before = await reports.find_report(connection, account.id, token, tx_hash)
        if before is None:
            with _bound_reports():
                await reports.check_room(connection, account.id, day)
    if before is not None:
        return UseCaseAnswer(_answer(before, again=True))
    meter = Meter()
    review = await review_report(ctx, token, tx_hash, values, meter)
    why_open = None if review.wrong else review.why_open
    next_at = review_again_at(now, 0) if review.too_early else None
    report = reports.VerdictReport(
        token, tx_hash, params.cleaned_note(), why_open, review.evidence_id(), next_at
    )
    async with accounts(ctx) as connection:
        with _bound_reports():
            added = await reports.add_report(connection, account.id, report, now, day)
        for verdict in review.wrong if added else ():
            await store.mark_wrong(connection, verdict, now)
        if added and next_at is not None:
            await jobs.enqueue(connection, *JOB, run_at=next_at)
    proof = sentence(review.wrong[0].score) if review.wrong else ""
    return UseCaseAnswer(_answer(report, again=not added, proof=proof), meter=meter)


@contextlib.contextmanager
def _bound_reports() -> Iterator[None]:
    try:
        yield
    except reports.TooManyReports:
        raise CallerFault(
            "bad_input",
            f"You reported {reports.MAX_A_DAY} transactions today, which is the daily limit. Report this "
            "one after 00:00 UTC.",
        ) from None


def _answer(report: reports.VerdictReport, again: bool, proof: str = "") -> Reported:
    prefix = "You already reported it. " if again else ""
    if report.why_open is None:
        text = f"{prefix}The chain proves it: a verdict is marked wrong and listed on the scorecard."
        text = f"{text} {proof}".rstrip()
    else:
        text = f"{prefix}It is saved as an open report, which changes no count. {report.why_open}"
    return Reported(text, report.token, report.tx_hash, report.note, report.why_open is None, again)
