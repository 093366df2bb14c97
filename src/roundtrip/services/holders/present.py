"""Who holds a token, from what was gathered, for people and programs."""

from collections.abc import Iterable
from datetime import datetime
from fractions import Fraction
from typing import TypedDict

from roundtrip.domain.base import names
from roundtrip.domain.base.types import Address, plain_decimal
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.book import WINDOW_BLOCKS
from roundtrip.domain.holders.findings import HolderInputs, RankedHolder
from roundtrip.domain.holders.read_state import ReadStatus
from roundtrip.domain.holders.ties import ties
from roundtrip.services.support.index_reader import eth, when

from .findings import HolderFindings, HolderRecord, HolderWin, WinFinding, find, funders_unknown, repeats
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
    RepeatCrowd,
    SmartMoneyAnswer,
    SmartWallet,
    SnipersAnswer,
    TokenHolders,
    TopHolder,
)
from .text import WHY_TEXT, text_of

MOST_LISTED = 100
"""Wallets in one list."""
MOST_LINKS = 200
_HOUR_S = 3600
_DAY_S = 86_400
_WEEK_S = 7 * _DAY_S


def present(gathered: HolderRecord) -> TokenHolders:
    """The tool's answer."""
    found = find(gathered)
    return TokenHolders(
        address=gathered.token,
        chain_id=gathered.chain_id,
        status=gathered.status,
        transfers_read=gathered.transfers_read,
        token=held_token(gathered),
        market_cap_usd=market_cap_usd(gathered),
        holders=_present_counts(gathered, found),
        top=[_top_holder(gathered, one) for one in found.top],
        launch=launch_answer(gathered),
        snipers=_snipers(gathered, found),
        bundle=_bundle(gathered, found),
        deployer=_deployer(gathered, found),
        smart_money=_smart_money(gathered, found),
        repeat_crowd=_repeat_crowd(gathered, found),
        checked_at=when(gathered.checked_s),
        why=[WHY_TEXT[one] for one in gathered.why],
        text=text_of(gathered, found),
        block=gathered.block.number,
        forensics=_forensics(gathered, found),
    )


class HolderAnswerFields(TypedDict):
    """Every field of ``OfHolders``."""

    text: str
    chain_id: int
    block: int
    block_time: datetime
    address: str
    status: ReadStatus
    token: HeldToken


def of_holders(gathered: HolderRecord, said: Iterable[str]) -> HolderAnswerFields:
    """``said``: the answer's sentences."""
    return HolderAnswerFields(
        text=" ".join(said),
        chain_id=gathered.chain_id,
        block=gathered.block.number,
        block_time=when(gathered.block.timestamp_s),
        address=gathered.token,
        status=gathered.status,
        token=held_token(gathered),
    )


def held_token(gathered: HolderRecord) -> HeldToken:
    """The token, fit to show."""
    symbol = None if gathered.symbol is None else names.symbol(gathered.symbol)
    return HeldToken(symbol, gathered.decimals, plain_decimal(gathered.supply_raw, gathered.decimals))


def launch_answer(gathered: HolderRecord) -> LaunchTime | None:
    """None: not known, or there was none."""
    launch = gathered.launch
    return None if launch is None else LaunchTime(launch.block_number, when(launch.at_s), WINDOW_BLOCKS)


def usd(micro_usd: Fraction | int | None) -> float | None:
    """Millionths of a dollar in dollars and cents."""
    return None if micro_usd is None else round(float(Fraction(micro_usd) / USDG_UNIT), 2)


def market_cap_usd(gathered: HolderRecord) -> float | None:
    """None: not known, or of a token that says there is none of it."""
    return usd(gathered.market_cap_micro_usd) if gathered.supply_raw > 0 else None


def entry(gathered: HolderRecord, entry_cap_micro_usd: int | None) -> tuple[float | None, float | None]:
    """The market cap at entry in dollars, and how many times that it is now, by four digits."""
    now = gathered.market_cap_micro_usd
    if not entry_cap_micro_usd:
        return None, None
    multiple = None if now is None else float(f"{float(now / entry_cap_micro_usd):.4g}")
    return usd(entry_cap_micro_usd), multiple


# --- holders ---------------------------------------------------------------------------------------


def _present_counts(gathered: HolderRecord, found: HolderFindings) -> HoldersCounted | None:
    shares = found.shares
    if shares is None:
        return None
    return HoldersCounted(
        count=shares.wallets,
        count_is_floor=gathered.status != "complete",
        top10_bps=gathered.bps(shares.top_raw),
        in_pools_bps=gathered.bps(shares.in_pools_raw),
        burned_bps=gathered.bps(shares.burned_raw),
        fresh_in_top=found.fresh_in_top,
        aged_in_top=found.aged_in_top,
    )


def _top_holder(gathered: HolderRecord, one: RankedHolder) -> TopHolder:
    known = gathered.told.wallets.get(one.address, findings.UNKNOWN) if gathered.told else findings.UNKNOWN
    first_s = known.first_s
    entry_usd, multiple = entry(gathered, one.entry_cap_micro_usd)
    return TopHolder(
        address=one.address,
        balance=plain_decimal(one.balance_raw, gathered.decimals),
        supply_bps=gathered.bps(one.balance_raw),
        first_seen=None if first_s is None else when(first_s),
        age_days=None if first_s is None else max(0, gathered.block.timestamp_s - first_s) // _DAY_S,
        entry_market_cap_usd=entry_usd,
        multiple=multiple,
        sold_bps=one.sold_bps,
        tags=list(one.tags),
        scam_marks=gathered.scams.get(one.address, 0),
    )


def _snipers(gathered: HolderRecord, found: HolderFindings) -> SnipersAnswer | None:
    snipers = found.snipers
    if snipers is None:
        return None
    bought, held = gathered.bps(snipers.bought_raw), gathered.bps(snipers.held_raw)
    return SnipersAnswer(len(snipers.wallets), bought, held, snipers.sold_out)


def _bundle(gathered: HolderRecord, found: HolderFindings) -> BundleAnswer | None:
    if not found.bundles:
        return None
    first = found.bundles[0]
    bought, held = gathered.bps(first.bought_raw), gathered.bps(first.held_raw)
    return BundleAnswer(len(first.wallets), first.funder, first.tx_hash is not None, bought, held)


def _deployer(gathered: HolderRecord, found: HolderFindings) -> DeployerHolds | None:
    deeds, maker = found.deeds, gathered.maker
    if deeds is None or maker is None:
        return None
    return DeployerHolds(
        address=maker.deployer,
        source=maker.source,
        status=deeds.status,
        received_bps=gathered.bps(deeds.received_raw),
        bought_bps=gathered.bps(deeds.bought_raw),
        sold_bps=gathered.bps(deeds.sold_raw),
        moved_bps=gathered.bps(deeds.moved_raw),
        pooled_bps=gathered.bps(deeds.pooled_raw),
        burned_bps=gathered.bps(deeds.burned_raw),
        held_bps=gathered.bps(deeds.held_raw),
    )


# --- winners and the crowd -------------------------------------------------------------------------


def smart_wallets(gathered: HolderRecord, found: HolderFindings) -> list[SmartWallet]:
    """Winners that hold the token, as many as are listed."""
    smart, told = found.smart, gathered.read
    if smart is None or told is None:
        return []
    return [_smart_wallet(gathered, told, one) for one in smart.holding[:MOST_LISTED]]


def _smart_money(gathered: HolderRecord, found: HolderFindings) -> SmartMoneyAnswer | None:
    smart = found.smart
    if smart is None:
        return None
    return SmartMoneyAnswer(len(smart.holding), smart.sold_out, smart_wallets(gathered, found))


def _smart_wallet(gathered: HolderRecord, told: HolderInputs, one: HolderWin) -> SmartWallet:
    entry_usd, multiple = entry(gathered, findings.entry_cap_micro_usd(told, one.wallet))
    return SmartWallet(
        address=one.wallet,
        rank=one.rank,
        window=one.window,
        profit_eth=eth(one.profit_wei),
        win_rate=one.won / one.closed if one.closed else 0.0,
        closed=one.closed,
        supply_bps=gathered.bps(findings.balance_raw(told, one.wallet)),
        entry_market_cap_usd=entry_usd,
        multiple=multiple,
        biggest_win=_biggest_win(one.best),
    )


def _biggest_win(win: WinFinding | None) -> BiggestWin | None:
    # What cost nothing brought no multiple of it.
    if win is None or win.spent_wei <= 0:
        return None
    return BiggestWin(
        token=win.token,
        symbol=None if win.symbol is None else names.symbol(win.symbol),
        profit_eth=eth(win.profit_wei),
        spent_eth=eth(win.spent_wei),
        multiple=(win.profit_wei + win.spent_wei) / win.spent_wei,
        closed_at=when(win.closed_s),
    )


def _repeat_crowd(gathered: HolderRecord, found: HolderFindings) -> RepeatCrowd | None:
    crowd = gathered.crowd
    if crowd is None or gathered.read is None or gathered.read.maker is None:
        return None
    bought = repeats(gathered, found)
    return RepeatCrowd(len(bought), len(found.top), max(bought, default=0), crowd.deployer_launches)


# --- a closer look ---------------------------------------------------------------------------------


def _forensics(gathered: HolderRecord, found: HolderFindings) -> Forensics:
    told, spread = gathered.read, gathered.concentration
    held = None
    if told is not None and found.suspicious is not None:
        held = gathered.share_bps(sum(findings.balance_raw(told, wallet) for wallet in found.suspicious))
    links = [] if told is None else ties(told, gathered.launch)[:MOST_LINKS]
    return Forensics(
        gini_bps=None if spread is None or told is None else spread.gini_bps,
        nakamoto=None if spread is None or told is None else spread.nakamoto,
        suspicious_wallets=None if found.suspicious is None else _holding(gathered, found.suspicious),
        suspicious_bps=held,
        locked_bps=None if found.shares is None else gathered.share_bps(found.shares.beside_raw),
        growth=_growth(gathered),
        drift=_drift(gathered),
        funders_unknown=len(funders_unknown(gathered)),
        links=[Link(one.wallet, one.kind, one.to, one.tx_hash) for one in links],
    )


def _holding(gathered: HolderRecord, wallets: tuple[Address, ...]) -> int:
    return sum(1 for wallet in wallets if gathered.held_raw(wallet))


def _growth(gathered: HolderRecord) -> Growth | None:
    """Where transfers are missing or lie nobody knows how many there were."""
    if gathered.read is None or gathered.read.drifts or not gathered.has_every_transfer:
        return None
    book, now_s = gathered.read.book, gathered.block.timestamp_s
    count = book.holders()
    then = [book.holders_at(now_s - span_s) for span_s in (_HOUR_S, _DAY_S, _WEEK_S)]
    hour, day, week = (None if before is None else count - before for before in then)
    return Growth(hour, day, week)


def _drift(gathered: HolderRecord) -> Drift | None:
    off = gathered.disagreement
    if off is None or gathered.read is None:
        return None
    over = gathered.bps(abs(off.supply_off_raw)) * (1 if off.supply_off_raw >= 0 else -1)
    # What was not read is missing in the sum.
    supply_off_bps = over if gathered.has_every_transfer and gathered.supply_raw > 0 else None
    return Drift(off.wallets_asked, off.wallets_off, gathered.bps(off.most_off_raw), supply_off_bps)
