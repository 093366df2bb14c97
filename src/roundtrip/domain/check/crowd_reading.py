"""Reads what a venue's crowd met. A wallet that met anything else than the main one is tried alone, with one
difference at a time, so that the sentence names the cause. Losses are in bps."""

from dataclasses import dataclass, replace
from typing import Literal, TypeGuard, get_args

from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS

from .evidence import (
    Crowd,
    CrowdSale,
    CrowdTrade,
    CrowdWallet,
    Difference,
    IsolatedTrade,
    Missing,
    NotTried,
    RefusedCall,
    Sold,
    TradeOutcome,
)
from .refusals import SETTLED_SHORT
from .sales import Sale, SellResult, sell_result

Choice = Literal["size", "time", "share", "pieces", "route", "approval", "tip", "code"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
"""The differences that a trader chooses."""
Fate = Literal["blocks", "wallet", "others", "others sold"]
"""The differences that a trader does not choose."""
_FATES: tuple[Fate, ...] = get_args(Fate)
_TRAPS: tuple[str, ...] = (*_FATES, "company")
Cause = Fate | Choice | Literal["company", "together", "not alone"]
"""Why a wallet of the crowd met something else. ``company``: it was marked when it bought among others;
``together``: several of its choices at once; ``not alone``: nothing that it met again."""

_SHORT_BPS = 1000
"""A sale that sells so much less of its amount than the main wallet's sold less than asked."""


Losses = tuple[int | None, int | None, int | None]
"""Of the main wallet's sells soon, after an hour and after a day; None: it did not sell then."""


@dataclass(frozen=True, slots=True)
class MainSells:
    """The main wallet's sells soon, after an hour and after a day: what the crowd is compared with.
    ``grown_bps``: what its balance had grown to at each of these moments, by itself. ``only_pieces``: none of
    these sold, and it sold all of it in pieces over a day, or that was not tried yet."""

    soon: SellResult
    hour: SellResult
    day: SellResult
    grown_bps: tuple[int, int, int] = (BPS, BPS, BPS)
    only_pieces: bool = False

    def losses_bps(self) -> Losses:
        """What each sell lost of the price, without what growth of the balance gave back: the crowd sells no
        more than it bought."""
        sells = zip((self.soon, self.hour, self.day), self.grown_bps, strict=True)
        soon, hour, day = (_price_loss_bps(sell, grown) for sell, grown in sells)
        return soon, hour, day

    def least_share_bps(self) -> int:
        """The least share of its amount that a sell of the main wallet sold; all where none sold a part."""
        sells = (self.soon, self.hour, self.day)
        return min((sell.share_bps for sell in sells if isinstance(sell, Sale)), default=BPS)

    def first_sold_s(self, policy: Policy) -> int:
        """The first moment at which it sold, in seconds after its buy; the first one where it never did."""
        moments = ((self.soon, policy.later_s), (self.hour, policy.hour_s), (self.day, policy.day_s))
        return next((at_s for sell, at_s in moments if isinstance(sell, Sale)), policy.later_s)

    def sold_only_soon(self) -> bool:
        """True where it sold soon and was refused at both later moments."""
        refused = isinstance(self.hour, RefusedCall) and isinstance(self.day, RefusedCall)
        return isinstance(self.soon, Sale) and refused

    def expected_loss_bps(
        self, wallet: CrowdWallet, policy: Policy, losses_bps: Losses | None = None
    ) -> int | None:
        """The most that this wallet's sale may lose; None where the main wallet did not sell around it. Where
        that sold in pieces only, one that sells no more than a piece must not be refused, at any time.
        ``losses_bps``: as the method of that name gives them, where they are known."""
        after_s = wallet.after_s
        if self.only_pieces:
            asks_wei = _paid_wei(wallet) * wallet.share_bps // BPS
            return BPS if asks_wei * policy.small_pieces <= policy.probe_wei else None
        soon, hour, day = self.losses_bps() if losses_bps is None else losses_bps
        if wallet.way == "pieces":
            around = [soon, hour, day]
        elif after_s <= policy.later_s:
            around = [soon]
        elif after_s < policy.hour_s:
            around = [soon, hour]
        elif after_s == policy.hour_s:
            around = [hour]
        elif after_s < policy.day_s:
            around = [hour, day]
        else:
            around = [day]
        known = [loss for loss in around if loss is not None]
        return max(known) if len(known) == len(around) else None


def _price_loss_bps(sell: SellResult, grown_bps: int) -> int | None:
    """What did not sell of the whole amount counts as lost, as in ``taken_bps``."""
    if not isinstance(sell, Sale):
        return None
    share_bps = BPS if sell.whole else sell.share_bps
    return BPS - (BPS - sell.loss_bps) * share_bps // max(BPS, grown_bps)


@dataclass(frozen=True, slots=True)
class CrowdFinding:
    """A wallet of the crowd that met something else, and why. ``refused``: it sold less than half, or in
    pieces less than 90 %; else it lost ``loss_bps``."""

    trade: CrowdTrade
    cause: Cause
    refused: bool
    loss_bps: int
    refusal: RefusedCall | None


@dataclass(frozen=True, slots=True)
class CrowdReading:
    """The crowd of a venue. ``trapped``: wallets that bought there cannot sell, and could not have known.
    ``loss_bps``: the most that such a wallet, or one that waits, loses. ``differing``: how many met something
    else; ``traded``: how many of the ``drawn`` ones bought, for ``traded_wei`` together. ``largest_wei``: the
    largest size that sold in one sale; 0: none. ``refused``: how many of those that differ could not sell
    half of what they asked for; ``sold``: how many could; ``settled_short``: how many could not by the second
    route, which takes no taxed token."""

    traded: int
    drawn: int
    differing: int
    findings: tuple[CrowdFinding, ...]
    trapped: bool | Missing
    loss_bps: int
    largest_wei: int
    refused: int
    sold: int
    traded_wei: int = 0
    settled_short: int = 0

    def warns(self) -> bool:
        """True where any wallet met something else, or fewer than half could trade: they found nothing."""
        return self.differing > 0 or self.is_thin()

    def is_thin(self) -> bool:
        """True where fewer than half traded, for whatever reason: a token may burn gas to keep them away."""
        return 2 * self.traded < self.drawn

    def trap(self) -> CrowdFinding | None:
        """The finding that makes it a trap."""
        return next((finding for finding in self.findings if is_trap(finding)), None)


def is_trap(finding: CrowdFinding) -> bool:
    """True where a wallet cannot sell for what it is, or for what others do."""
    return finding.refused and finding.cause in _TRAPS


def _counts(finding: CrowdFinding) -> bool:
    """True where what it lost counts as the token's: for what the wallet is, for what others do, or at some
    time after the buy."""
    return finding.cause in _TRAPS or (finding.cause == "time" and not finding.refused)


def differing(crowd: Crowd, main: MainSells, policy: Policy) -> list[int]:
    """The numbers of the trades that met something else than the main wallet."""
    losses_bps = main.losses_bps()
    return [number for number, trade in enumerate(crowd.trades) if _differs(trade, main, policy, losses_bps)]


def _differs(trade: CrowdTrade, main: MainSells, policy: Policy, losses_bps: Losses) -> bool:
    """Whether the trade met something else than the main wallet; False where that cannot be told."""
    outcome = trade.outcome
    expected_bps = main.expected_loss_bps(trade.wallet, policy, losses_bps)
    if isinstance(outcome, RefusedCall) and outcome.step in ("fund", "buy"):
        # A refused buy costs nothing.
        return False
    if isinstance(outcome, RefusedCall) and _is_settled_short(outcome, trade.wallet):
        return False
    if isinstance(outcome, NotTried) or (isinstance(outcome, Missing) and outcome.fault == "node"):
        return False
    if expected_bps is None:
        return False
    if not isinstance(outcome, CrowdSale):
        return True
    margin_bps = policy.crowd_margin_bps + _rounding_bps(outcome.planned_raw)
    return taken_bps(outcome) > max(0, expected_bps) + margin_bps


def _rounding_bps(sold_raw: int) -> int:
    """What rounding may take of a sale of so many base units: less than one unit when it is bought, and one
    by the pool's fee."""
    return 2 * BPS // max(1, sold_raw)


def _is_settled_short(refused: RefusedCall, wallet: CrowdWallet) -> bool:
    """True only for a sell by the second route, which pays in less than it sold where the token taxes
    transfers: that is said as a tax. Elsewhere a token may give this reason itself."""
    return refused.step == "sell" and refused.reason == SETTLED_SHORT and wallet.way == "second route"


def taken_bps(sale: CrowdSale) -> int:
    """What was taken on the way to and from the venue, of both trades together, and by the pool's fee where
    each swap has another. What else the venue keeps and how the price moved do not count."""
    kept = BPS * BPS
    for arrived, left in (
        (sale.received_raw, sale.given_raw),
        (sale.taken_raw, sale.planned_raw),
        (sale.back_raw, sale.paid_raw),
        (BPS - sale.pool_bps, BPS),
    ):
        if arrived < left or left <= 0:
            kept = kept * max(0, arrived) // left if left > 0 else 0
    return BPS - kept // BPS


def read_crowd(crowd: Crowd, main: MainSells, policy: Policy) -> CrowdReading:
    """What the crowd shows, with the causes that the isolation round found."""
    numbers = differing(crowd, main, policy)
    sold_bps = [sell.loss_bps for sell in (main.soon, main.hour, main.day) if isinstance(sell, Sale)]
    expected_bps = max((*sold_bps, *(loss for loss in main.losses_bps() if loss is not None)), default=0)
    expected = (expected_bps, main.least_share_bps())
    findings, gap = [], _node_gap(crowd)
    isolated = (trade.of for trade in crowd.isolated)
    if all(isinstance(sell, RefusedCall) for sell in (main.soon, main.hour, main.day)):
        # They were tried alone before it was known whether the main wallet sells in pieces.
        isolated = (number for number in isolated if number in numbers)
    for number in dict.fromkeys(isolated):
        trades = [trade for trade in crowd.isolated if trade.of == number]
        finding = _finding(crowd.trades[number], trades, expected, policy)
        if isinstance(finding, Missing):
            gap = gap or finding
        elif finding.cause != "blocks" or not main.sold_only_soon():
            # Else, alone, it sold later than the main one did soon, and in more blocks: either may decide.
            # That nothing sells later is said of the main wallet.
            findings.append(finding)
    if numbers and not crowd.isolated:
        gap = gap or Missing("node", "it is unknown why another wallet met something else")
    trapped: bool | Missing = any(map(is_trap, findings))
    return CrowdReading(
        traded=sum(_has_bought(trade.outcome) for trade in crowd.trades),
        traded_wei=sum(_paid_wei(trade.wallet) for trade in crowd.trades if _has_bought(trade.outcome)),
        drawn=len(crowd.trades),
        differing=len(numbers),
        findings=tuple(findings),
        trapped=trapped or gap or False,
        loss_bps=max((finding.loss_bps for finding in findings if _counts(finding)), default=0),
        largest_wei=_largest_wei(crowd),
        refused=sum(_is_refused(crowd.trades[number]) for number in numbers),
        sold=sum(_sold_half(trade.outcome) for trade in crowd.trades),
        settled_short=sum(
            isinstance(trade.outcome, RefusedCall) and _is_settled_short(trade.outcome, trade.wallet)
            for trade in crowd.trades
        ),
    )


def _paid_wei(wallet: CrowdWallet) -> int:
    return wallet.size_wei + wallet.again_wei


def _has_bought(outcome: object) -> bool:
    if isinstance(outcome, RefusedCall):
        return outcome.step not in ("fund", "buy", "arrive")
    return not isinstance(outcome, Missing | NotTried)


def _sold_half(outcome: object) -> bool:
    return isinstance(outcome, CrowdSale) and 2 * outcome.taken_raw >= outcome.planned_raw


def _is_refused(trade: CrowdTrade) -> bool:
    outcome = trade.outcome
    if isinstance(outcome, RefusedCall):
        return outcome.step not in ("fund", "buy") and not _is_settled_short(outcome, trade.wallet)
    return isinstance(outcome, CrowdSale) and not _sold_half(outcome)


def _node_gap(crowd: Crowd) -> Missing | None:
    gaps = (trade.outcome for trade in crowd.trades if isinstance(trade.outcome, Missing))
    return next((gap for gap in gaps if gap.fault == "node"), None)


def _largest_wei(crowd: Crowd) -> int:
    sold = [
        _paid_wei(trade.wallet)
        for trade in crowd.trades
        if _sold_half(trade.outcome) and trade.wallet.way != "pieces" and trade.wallet.share_bps == BPS
    ]
    return max(sold, default=0)


# --- isolation -------------------------------------------------------------------------------------


def _finding(
    trade: CrowdTrade, trades: list[IsolatedTrade], expected: tuple[int, int], policy: Policy
) -> CrowdFinding | Missing:
    """The cause of one wallet's result: the first difference that alone leads to it. ``expected``: the most
    that a sale may lose, and the least share of its amount that it sells."""
    expected_bps, least_share_bps = expected
    by = {isolated.difference: isolated.outcome for isolated in trades}

    def is_bad(difference: Difference) -> bool | Missing:
        outcome = by.get(difference)
        if outcome is None:
            return False
        if isinstance(outcome, Missing):
            return outcome
        if isinstance(outcome, RefusedCall):
            is_tax = difference in ("route", "as drawn") and _is_settled_short(outcome, trade.wallet)
            return outcome.step not in ("fund", "buy") and not is_tax
        result = sell_result(outcome, policy)
        if not isinstance(result, Sale):
            return True
        is_part = difference == "pieces" and result.share_bps < BPS - _SHORT_BPS
        margin_bps = policy.crowd_margin_bps + _rounding_bps(outcome.planned_raw)
        is_costly = result.loss_bps > max(0, expected_bps) + margin_bps
        return is_part or is_costly or _is_short(outcome, least_share_bps)

    # These sell a thousandth less than all, so where that alone is bad they say nothing.
    unsure = ("others", "others sold", *(("wallet",) if trade.wallet.again_wei else ()))
    is_unsure = is_bad("nearly all") is True
    for difference in (*_FATES, *CHOICES):
        bad = is_bad(difference) if not (is_unsure and difference in unsure) else False
        if isinstance(bad, Missing):
            return bad
        if bad:
            return _blame(trade, difference, by[difference], policy)
    bad = is_bad("as drawn")
    if bad is True:
        return _blame(trade, "together", by["as drawn"], policy)
    bad = is_bad("in company")
    if isinstance(bad, Missing):
        return bad
    if bad:
        return _blame(trade, "company", by["in company"], policy)
    refusal = trade.outcome if isinstance(trade.outcome, RefusedCall) else None
    return CrowdFinding(trade, "not alone", refusal is not None, 0, refusal)


def _blame(trade: CrowdTrade, cause: Cause, outcome: object, policy: Policy) -> CrowdFinding:
    """What the isolated trade met. Where the wallet lost more in company, for what it is or for what others
    did, that loss counts: fewer others may have sold in isolation. A wallet that sold in company was not
    refused, whatever amount was refused alone."""
    finding = _blame_alone(trade, cause, outcome, policy)
    if finding.refused and cause == "wallet" and _arrived_less(trade.outcome):
        finding = CrowdFinding(trade, cause, False, taken_bps(trade.outcome), None)
    if cause in _TRAPS and isinstance(trade.outcome, CrowdSale):
        finding = replace(finding, loss_bps=max(finding.loss_bps, taken_bps(trade.outcome)))
    return finding


def _arrived_less(outcome: TradeOutcome) -> TypeGuard[CrowdSale]:
    """True for a wallet that sold, of whose buys less arrived than the venue gave."""
    return isinstance(outcome, CrowdSale) and _sold_half(outcome) and outcome.received_raw < outcome.given_raw


def _blame_alone(trade: CrowdTrade, cause: Cause, outcome: object, policy: Policy) -> CrowdFinding:
    if isinstance(outcome, RefusedCall):
        return CrowdFinding(trade, cause, True, BPS, outcome)
    assert isinstance(outcome, Sold)
    result = sell_result(outcome, policy)
    if not isinstance(result, Sale):
        return CrowdFinding(trade, cause, True, BPS, result if isinstance(result, RefusedCall) else None)
    is_refused = 2 * outcome.sold_raw < outcome.planned_raw
    if cause == "pieces":
        # Refused ones are not part of what was planned.
        is_refused = result.share_bps < BPS - _SHORT_BPS
    return CrowdFinding(trade, cause, is_refused, result.loss_bps, None)


def _is_short(sold: Sold, least_share_bps: int) -> bool:
    return sold.sold_raw < sold.planned_raw * (least_share_bps - _SHORT_BPS) // BPS
