"""Builds the holder answers for people and programs from a ``HolderRecord``."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.book import WINDOW_BLOCKS
from roundtrip.domain.holders.findings import HolderInputs, RankedHolder
from roundtrip.domain.holders.purses import count_purses
from roundtrip.domain.holders.ties import ties
from roundtrip.services.holder_record.findings import (
    HolderFindings,
    HolderRecord,
    funders_unknown,
    launches_bought,
    summarize,
)
from roundtrip.services.support.index_reader import eth, when
from roundtrip.store.holders.smart_money import BoardRow, WinningClose

from .schema import (
    BiggestWin,
    BundleAnswer,
    DeployerHolds,
    Drift,
    Forensics,
    Growth,
    HeldToken,
    HoldersCounted,
    LaunchTime,
    Link,
    OfHolders,
    PurseAnswer,
    Purses,
    RepeatCrowd,
    SmartMoneyAnswer,
    SmartWallet,
    SnipersAnswer,
    TokenHolders,
    TopHolder,
)
from .text import text_of, why_text

MAX_LISTED = 100
"""Wallets in one list."""
MAX_LINKS = 200
_HOUR_S = 3600
_DAY_S = 86_400
_WEEK_S = 7 * _DAY_S


def present(record: HolderRecord) -> TokenHolders:
    """The answer of the tool token_holders."""
    summary = summarize(record)
    return TokenHolders(
        address=record.token,
        chain_id=record.chain_id,
        status=record.status,
        transfers_read=record.transfers_read,
        token=held_token(record),
        market_cap_usd=market_cap_usd(record),
        holders=_present_counts(record, summary),
        top=[_top_holder(record, summary, holder) for holder in summary.top],
        launch=launch_answer(record),
        snipers=_snipers(record, summary),
        bundle=_bundle(record, summary),
        deployer=_deployer(record, summary),
        smart_money=_smart_money(record, summary),
        repeat_crowd=_repeat_buyers(record, summary),
        checked_at=when(record.checked_s),
        why=why_text(record),
        text=text_of(record, summary),
        block=record.block.number,
        forensics=_forensics(record, summary),
    )


def common_fields(record: HolderRecord, sentences: Iterable[str], rows: Iterable[str] = ()) -> dict[str, Any]:
    """The fields of ``OfHolders``. The text is ``sentences``, then each of ``rows`` on a line of its own."""
    fields = OfHolders(
        text="\n".join([" ".join(sentences), *rows]),
        chain_id=record.chain_id,
        block=record.block.number,
        block_time=when(record.block.timestamp_s),
        address=record.token,
        status=record.status,
        token=held_token(record),
    )
    return msgspec.structs.asdict(fields)


def held_token(record: HolderRecord) -> HeldToken:
    """The token, safe to show."""
    symbol = None if record.symbol is None else names.symbol(record.symbol)
    return HeldToken(symbol, record.decimals, plain_decimal(record.supply_raw, record.decimals))


def launch_answer(record: HolderRecord) -> LaunchTime | None:
    """None: not known, or there was no launch."""
    launch = record.launch
    return None if launch is None else LaunchTime(launch.block_number, when(launch.at_s), WINDOW_BLOCKS)


def usd(micro_usd: Fraction | int | None) -> float | None:
    """Millionths of a dollar as dollars, rounded to cents."""
    return None if micro_usd is None else round(float(Fraction(micro_usd) / USDG_UNIT), 2)


def market_cap_usd(record: HolderRecord) -> float | None:
    """None: not known, or the token reports no supply."""
    return usd(record.market_cap_micro_usd) if record.supply_raw > 0 else None


def entry_cap(record: HolderRecord, entry_cap_micro_usd: int | None) -> tuple[float | None, float | None]:
    """The market cap at entry in dollars, and the current one as a multiple of it, to four digits."""
    cap_micro_usd = record.market_cap_micro_usd
    if not entry_cap_micro_usd:
        return None, None
    multiple = None if cap_micro_usd is None else float(f"{float(cap_micro_usd / entry_cap_micro_usd):.4g}")
    return usd(entry_cap_micro_usd), multiple


# --- holders ---------------------------------------------------------------------------------------


def _present_counts(record: HolderRecord, summary: HolderFindings) -> HoldersCounted | None:
    shares = summary.shares
    if shares is None:
        return None
    return HoldersCounted(
        count=shares.wallets,
        count_is_floor=record.status != "complete",
        top10_bps=record.bps(shares.top_raw),
        in_pools_bps=record.bps(shares.in_pools_raw),
        burned_bps=record.bps(shares.burned_raw),
        fresh_in_top=summary.fresh_in_top,
        aged_in_top=summary.aged_in_top,
    )


def _top_holder(record: HolderRecord, summary: HolderFindings, holder: RankedHolder) -> TopHolder:
    first_s = holder.first_s
    entry_usd, multiple = entry_cap(record, holder.entry_cap_micro_usd)
    return TopHolder(
        address=holder.address,
        balance=plain_decimal(holder.balance_raw, record.decimals),
        supply_bps=record.bps(holder.balance_raw),
        first_seen=None if first_s is None else when(first_s),
        age_days=None if first_s is None else max(0, record.block.timestamp_s - first_s) // _DAY_S,
        entry_market_cap_usd=entry_usd,
        multiple=multiple,
        sold_bps=holder.sold_bps,
        tags=list(holder.tags),
        scam_marks=record.scams.get(holder.address, 0),
        purse=summary.purse_number(holder.address),
    )


def _snipers(record: HolderRecord, summary: HolderFindings) -> SnipersAnswer | None:
    snipers = summary.snipers
    if snipers is None:
        return None
    bought, held = record.bps(snipers.bought_raw), record.bps(snipers.held_raw)
    return SnipersAnswer(len(snipers.wallets), bought, held, snipers.sold_out)


def _bundle(record: HolderRecord, summary: HolderFindings) -> BundleAnswer | None:
    if not summary.bundles:
        return None
    first = summary.bundles[0]
    bought, held = record.bps(first.bought_raw), record.bps(first.held_raw)
    return BundleAnswer(len(first.wallets), first.funder, first.tx_hash is not None, bought, held)


def _deployer(record: HolderRecord, summary: HolderFindings) -> DeployerHolds | None:
    deeds, maker = summary.deeds, record.maker
    if deeds is None or maker is None:
        return None
    return DeployerHolds(
        address=maker.deployer,
        source=maker.source,
        status=deeds.status,
        received_bps=record.bps(deeds.received_raw),
        bought_bps=record.bps(deeds.bought_raw),
        sold_bps=record.bps(deeds.sold_raw),
        moved_bps=record.bps(deeds.moved_raw),
        pooled_bps=record.bps(deeds.pooled_raw),
        burned_bps=record.bps(deeds.burned_raw),
        held_bps=record.bps(deeds.held_raw),
    )


# --- winners and repeat buyers ---------------------------------------------------------------------


def smart_wallets(record: HolderRecord, summary: HolderFindings) -> list[SmartWallet]:
    """Winners that hold the token, at most ``MAX_LISTED``."""
    smart, inputs = summary.smart, record.full_inputs
    if smart is None or inputs is None:
        return []
    return [_smart_wallet(record, inputs, row) for row in smart.holding[:MAX_LISTED]]


def _smart_money(record: HolderRecord, summary: HolderFindings) -> SmartMoneyAnswer | None:
    smart = summary.smart
    if smart is None:
        return None
    return SmartMoneyAnswer(len(smart.holding), smart.sold_out, smart_wallets(record, summary))


def _smart_wallet(record: HolderRecord, inputs: HolderInputs, row: BoardRow) -> SmartWallet:
    entry_usd, multiple = entry_cap(record, findings.entry_cap_micro_usd(inputs, row.wallet))
    return SmartWallet(
        address=row.wallet,
        rank=row.rank,
        window=row.span,
        profit_eth=eth(row.profit_wei),
        win_rate=row.won / row.closed if row.closed else 0.0,
        closed=row.closed,
        supply_bps=record.bps(findings.balance_raw(inputs, row.wallet)),
        entry_market_cap_usd=entry_usd,
        multiple=multiple,
        biggest_win=_biggest_win(record.biggest_wins.get(row.wallet)),
    )


def _biggest_win(win: WinningClose | None) -> BiggestWin | None:
    # A token that cost nothing has no multiple.
    if win is None or win.spent_wei <= 0:
        return None
    return BiggestWin(
        token=win.token,
        symbol=None if win.symbol is None else names.symbol(win.symbol),
        profit_eth=eth(win.profit_wei),
        spent_eth=eth(win.spent_wei),
        multiple=win.got_wei / win.spent_wei,
        closed_at=when(win.at_s),
    )


def _repeat_buyers(record: HolderRecord, summary: HolderFindings) -> RepeatCrowd | None:
    crowd = record.crowd
    if crowd is None or record.full_inputs is None or record.full_inputs.maker is None:
        return None
    bought = launches_bought(record, summary)
    return RepeatCrowd(len(bought), len(summary.top), max(bought, default=0), crowd.deployer_launches)


# --- a closer look ---------------------------------------------------------------------------------


def _forensics(record: HolderRecord, summary: HolderFindings) -> Forensics:
    inputs, concentration = record.full_inputs, record.concentration
    suspicious_bps = None
    if inputs is not None and summary.suspicious is not None:
        suspicious_bps = record.share_bps(
            sum(findings.balance_raw(inputs, wallet) for wallet in summary.suspicious)
        )
    links = [] if inputs is None else ties(inputs, record.launch)[:MAX_LINKS]
    return Forensics(
        gini_bps=None if concentration is None or inputs is None else concentration.gini_bps,
        nakamoto=None if concentration is None or inputs is None else concentration.nakamoto,
        suspicious_wallets=None if summary.suspicious is None else _count_holding(record, summary.suspicious),
        suspicious_bps=suspicious_bps,
        locked_bps=None if summary.shares is None else record.share_bps(summary.shares.locked_raw),
        growth=count_growth(record),
        drift=_drift(record),
        funders_unknown=len(funders_unknown(record)),
        links=[Link(tie.wallet, tie.kind, tie.to, tie.tx_hash) for tie in links],
        purses=_present_purses(record, summary),
    )


def _present_purses(record: HolderRecord, summary: HolderFindings) -> Purses | None:
    if summary.purses is None or record.full_inputs is None:
        return None
    count = count_purses(record.full_inputs, summary.purses)
    rows = [
        PurseAnswer(
            wallets=len(purse.wallets),
            holding=purse.holding,
            held_bps=record.bps(purse.held_raw),
            funder=purse.funder,
            has_deployer=purse.has_deployer,
        )
        for purse in summary.purses
    ]
    return Purses(count.wallets, count.purses, count.unknown, rows)


def _count_holding(record: HolderRecord, wallets: tuple[Address, ...]) -> int:
    return sum(1 for wallet in wallets if record.held_raw(wallet))


def count_growth(record: HolderRecord) -> Growth | None:
    """How the number of holders changed. None if transfers are missing or the logs drift: the earlier counts
    are not known."""
    if record.full_inputs is None or record.full_inputs.drifts or not record.has_every_transfer:
        return None
    book, now_s = record.full_inputs.book, record.block.timestamp_s
    count = book.holders()
    counts_before = [book.holders_at(now_s - span_s) for span_s in (_HOUR_S, _DAY_S, _WEEK_S)]
    hour, day, week = (
        None if count_before is None else count - count_before for count_before in counts_before
    )
    return Growth(hour, day, week)


def _drift(record: HolderRecord) -> Drift | None:
    # ``bps`` is at most 100 %, so the difference of the sum is, too.
    disagreement = record.disagreement
    if disagreement is None or record.full_inputs is None:
        return None
    supply_bps = record.bps(abs(disagreement.supply_off_raw)) * (
        1 if disagreement.supply_off_raw >= 0 else -1
    )
    # Without every transfer the sum lacks what was not read.
    supply_off_bps = supply_bps if record.has_every_transfer and record.supply_raw > 0 else None
    return Drift(
        disagreement.wallets_asked,
        disagreement.wallets_off,
        record.bps(disagreement.most_off_raw),
        supply_off_bps,
    )
