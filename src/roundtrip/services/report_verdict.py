"""A person says that a verdict was wrong, and by which transaction: held against the chain, not believed."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import asyncpg
import msgspec

from roundtrip.chain.rpc import Meter
from roundtrip.chain.transactions import block_call, read_block, read_transaction
from roundtrip.domain import names
from roundtrip.domain.errors import CallerFault
from roundtrip.domain.mite import Mite
from roundtrip.domain.scorecard import HOUR_S, SETTLED_S, Failed, Real, sentence, weigh
from roundtrip.domain.types import Address, TxHash, parse_address
from roundtrip.store import scorecard as store
from roundtrip.store import verdict_reports as reports
from roundtrip.store.chain import Cursor
from roundtrip.store.scorecard import Scored

from . import failed_sells
from .accounts import accounts
from .context import Answered, Context
from .failed_sells import Tried, Values, failed_sell
from .index_answer import reading
from .real_trades import by_receipt
from .settle_verdicts import Case, as_scored, case_of, read
from .worth import worth

MOST_NOTE = 280
MOST_VERDICTS = 12
"""So many verdicts of before a transaction, the newest, are held against it."""
_UNKNOWN = (
    "The chain knows no such transaction: it was never sent here, was dropped, or is so new that it has not "
    "come round yet. Nothing was kept."
)
_NO_VERDICT = "No verdict on this token is kept that spoke of the time of that transaction."
_TOO_NEW = (
    "It is too new: what is younger than ten minutes may still be undone, or is not in the index yet. A "
    "sell that went through is looked at once more by itself when the verdict's day is over."
)
_AGREES = (
    "It does not speak against what was said: it was of another size, of another time, of a wallet that "
    "is not known as a plain one, or it bears the verdict out."
)


class ReportParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which token, by which transaction, and in one's own words."""

    token: Annotated[str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="The token's address.")]
    hash: Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-fA-F]{64}\Z", description="The transaction's hash.")]
    note: Annotated[
        str, msgspec.Meta(max_length=MOST_NOTE, description="What happened, in your own words.")
    ] = ""

    def address(self) -> Address:
        """The token, lower-cased. Raises CallerFault (bad_address)."""
        try:
            return parse_address(self.token)
        except ValueError:
            raise CallerFault("bad_address", "That is not a token address: 0x and 40 hex digits.") from None

    def tx_hash(self) -> TxHash:
        """In lower case."""
        return TxHash(self.hash.lower())

    def said(self) -> str:
        """The note, cleaned."""
        return names.clean(self.note, MOST_NOTE)


class Reported(msgspec.Struct, frozen=True, rename="camel"):
    """What came of a report."""

    text: Annotated[str, msgspec.Meta(description="What the answer says, in plain sentences.")]
    token: str
    hash: str
    note: Annotated[str, msgspec.Meta(description="As it was kept.")]
    proved: Annotated[bool, msgspec.Meta(description="A verdict was marked wrong by it, now or before.")]
    again: Annotated[bool, msgspec.Meta(description="You had reported it already: nothing was done again.")]


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What a transaction comes to: verdicts that it proves wrong, or why it proves none. ``spoken_of``: the
    newest verdict of its time."""

    wrong: Sequence[Scored] = ()
    why_open: str = _AGREES
    spoken_of: int | None = None

    def report(self, params: ReportParams) -> reports.Report:
        """As it is kept."""
        why_open = None if self.wrong else self.why_open
        spoken_of = self.wrong[0].id if self.wrong else self.spoken_of
        return reports.Report(params.address(), params.tx_hash(), params.said(), why_open, spoken_of)


async def report_verdict(
    ctx: Context, params: ReportParams, mite: Mite, values: Values = worth
) -> Answered[Reported]:
    """Holds the transaction against what was said of the token, marks what it proves wrong, and keeps the
    rest as an open report, which changes no count. Raises CallerFault (bad_address, bad_input, no_such_tx),
    NodeFault, ServiceFull."""
    token, tx_hash = params.address(), params.tx_hash()
    now = datetime.fromtimestamp(ctx.now_s(), UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    async with accounts(ctx) as connection:
        before = await reports.reported(connection, mite.id, token, tx_hash)
        if before is None:
            with _bounded():
                await reports.check_room(connection, mite.id, day)
    if before is not None:
        return Answered(_answer(before, again=True))
    meter = Meter()
    weighed = await _weigh(ctx, token, tx_hash, values, meter)
    kept = weighed.report(params)
    async with accounts(ctx) as connection:
        with _bounded():
            added = await reports.add_report(connection, mite.id, kept, now, day)
        for one in weighed.wrong if added else ():
            await store.settle_by(connection, one, now)
    proof = sentence(weighed.wrong[0].score) if weighed.wrong else ""
    return Answered(_answer(kept, again=not added, proof=proof), meter=meter)


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    try:
        yield
    except reports.TooMany:
        raise CallerFault(
            "bad_input",
            f"You reported {reports.MOST_A_DAY} transactions today, which is all you can in a day.",
        ) from None


def _answer(report: reports.Report, again: bool, proof: str = "") -> Reported:
    first = "You had reported it already. " if again else ""
    if report.why_open is None:
        text = f"{first}The chain proves it: a verdict is marked wrong, and is listed. {proof}".rstrip()
    else:
        text = f"{first}It is kept as an open report, which changes no count. {report.why_open}"
    return Reported(text, report.token, report.tx_hash, report.note, report.why_open is None, again)


# --- held against the chain ------------------------------------------------------------------------


async def _weigh(ctx: Context, token: Address, tx_hash: TxHash, values: Values, meter: Meter) -> _Weighed:
    told = await read_transaction(ctx.node, tx_hash, ctx.chain_id, meter)
    if told is None:
        raise CallerFault("no_such_tx", _UNKNOWN)
    sent, mined = told
    if mined is None or sent.block is None:
        return _Weighed(why_open=_TOO_NEW)
    (answer,) = await ctx.node.batch([block_call(sent)], meter)
    tried = Tried(sent, read_block(answer, sent))
    at = tried.around.ref
    async with reading(ctx) as (connection, stands):
        # Of what failed the index knows nothing, but of what its sender had done before.
        settled_s = stands.block.timestamp_s - (SETTLED_S if mined.succeeded else 0)
        if at.timestamp_s > settled_s:
            return _Weighed(why_open=_TOO_NEW)
        cases = await _cases(ctx, connection, stands, token, tried)
        if not cases:
            return _Weighed(why_open=_NO_VERDICT)
        why_open = None if mined.succeeded else await _why_none(ctx, connection, cases[0], tried)
    spoken_of = cases[0].verdict.id
    if why_open is not None:
        return _Weighed(why_open=why_open, spoken_of=spoken_of)
    if not mined.succeeded:
        return await _failed(ctx, token, tried, cases, values, meter)
    wrong = []
    for case in cases:
        reals = [await by_receipt(ctx, token, one, meter) for one in case.found]
        wrong += _against(case, [one for one in reals if one is not None])
    return _Weighed(wrong, spoken_of=spoken_of)


async def _cases(
    ctx: Context, connection: asyncpg.Connection, stands: Cursor, token: Address, tried: Tried
) -> list[Case]:
    """The verdicts that spoke of its time, the newest first, one of an hour and code."""
    at, found, taken = tried.around.ref, [], set()
    for verdict in await store.spoken_of(connection, token, at.number, MOST_VERDICTS):
        evidence, spoken = await asyncio.to_thread(read, verdict, ctx.policy)
        if evidence is None or spoken is None or not spoken.from_s <= at.timestamp_s <= spoken.until_s:
            continue
        key = (spoken.from_s // HOUR_S, verdict.code)
        if key not in taken:
            taken.add(key)
            found.append(
                await case_of(
                    ctx, connection, stands, verdict, evidence, spoken, spoken.from_s, tried.sent.hash
                )
            )
    return found


async def _why_none(ctx: Context, connection: asyncpg.Connection, case: Case, tried: Tried) -> str | None:
    """Why a transaction that failed is no plain wallet's sell, as far as the index and its call tell; None:
    it may be one."""
    if case.token is None:
        return failed_sells.NOT_PLAIN
    at = tried.around.ref
    if not await failed_sells.names_sell(connection, ctx, case.token, tried.sent):
        return failed_sells.NO_SELL
    plain = await failed_sells.is_plain(connection, case.token, tried.sent, at.number, at.timestamp_s)
    return None if plain else failed_sells.NOT_PLAIN


async def _failed(
    ctx: Context, token: Address, tried: Tried, cases: Sequence[Case], values: Values, meter: Meter
) -> _Weighed:
    """A sell that failed speaks against verdicts that it can be sold."""
    wrong, why_open = [], _AGREES
    for case in cases:
        if case.said is None or case.said.claim not in ("sells", "costs"):
            continue
        failed = await failed_sell(ctx, token, tried, case.said, values, meter)
        if isinstance(failed, str):
            why_open = failed
        else:
            wrong += _against(case, (), (failed,))
    return _Weighed(wrong, why_open, cases[0].verdict.id)


def _against(case: Case, reals: Sequence[Real], failed: Sequence[Failed] = ()) -> list[Scored]:
    """What a verdict comes to by these alone, where that is wrong."""
    if case.said is None:
        return []
    score = weigh(case.said, reals, case.turned, failed)
    # A later check of ours is no word of this transaction.
    if score.outcome != "wrong" or score.cause == "turned":
        return []
    return [as_scored(case, score, reported=True)]
