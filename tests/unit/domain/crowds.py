"""What a crowd met, for tests: all sold as the main wallet did, every piece replaceable."""

from dataclasses import replace

from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import BPS, Address
from roundtrip.domain.check.crowd_reading import CrowdFinding, CrowdReading, MainSells, read_crowd
from roundtrip.domain.check.evidence import (
    CellOutcome,
    Crowd,
    CrowdSale,
    CrowdTrade,
    CrowdWallet,
    Difference,
    Evidence,
    IsolatedTrade,
    Missing,
    NotTried,
    RefusedCall,
)
from roundtrip.domain.check.sales import Sale, SellResult

from .builders import evidence, sold, venue

GIVEN_RAW, PAID_RAW = 10**24, 10**17
PAUSED = RefusedCall("sell", "paused", 90_000)
NO_BUY = RefusedCall("buy", "not you", 50_000)
GONE = Missing("node", "timed out")
ITS_OWN = Missing("token", "the token does not return balances")
FATES: tuple[Difference, ...] = ("blocks", "wallet", "others", "others sold")
CHOICES: tuple[Difference, ...] = ("size", "time", "share", "pieces", "route", "approval", "tip", "code")


def sale(loss_bps: int = 60, share_bps: int = BPS, whole: bool = True) -> Sale:
    return Sale(loss_bps, share_bps, whole)


MAIN = MainSells(sale(), sale(), sale())


def wallet(number: int = 0, **changes: object) -> CrowdWallet:
    """A wallet that does as the main one does, but for these changes."""
    at = Address(f"0x{0xC00 + number:040x}")
    plain = CrowdWallet(at, 7, 10**17, 0, 5 * 10**16, 0, 0, 0, False, POLICY.later_s, BPS, "usual")
    return replace(plain, **changes)  # type: ignore[arg-type]


def crowd_sale(
    taken_bps: int = 0, planned_bps: int = BPS, arrived_bps: int = BPS, back_bps: int = BPS
) -> CrowdSale:
    """A sale of which the token took so much on the way to the venue; the rest arrived, unless stated."""
    received = GIVEN_RAW * arrived_bps // BPS
    planned = received * planned_bps // BPS
    return CrowdSale(
        GIVEN_RAW, received, planned, planned * (BPS - taken_bps) // BPS, PAID_RAW, PAID_RAW * back_bps // BPS
    )


def trade(
    outcome: CrowdSale | RefusedCall | Missing | NotTried | None = None, **changes: object
) -> CrowdTrade:
    return CrowdTrade(wallet(**changes), crowd_sale() if outcome is None else outcome)  # type: ignore[arg-type]


def isolated(of: int = 0, /, **outcomes: CellOutcome) -> tuple[IsolatedTrade, ...]:
    """Tries alone, by difference with _ for a space; those that are not named sold like the main wallet."""
    by = {name.replace("_", " "): outcome for name, outcome in outcomes.items()}
    every: tuple[Difference, ...] = ("as drawn", "nearly all", *FATES, *CHOICES, "in company")
    assert set(by) <= set(every)
    return tuple(IsolatedTrade(of, difference, by.get(difference, sold())) for difference in every)


def crowd(
    *odd: CrowdTrade, tries: tuple[IsolatedTrade, ...] = (), count: int = 20, untried: int = 0
) -> Crowd:
    """These wallets first, and sound ones up to so many; then wallets that the pool is too thin for."""
    sound = tuple(trade(number=n) for n in range(len(odd), count))
    thin = tuple(trade(NotTried("pool")) for _ in range(untried))
    return Crowd((*odd, *sound, *thin), tries)


def read(known: Crowd, main: MainSells = MAIN) -> CrowdReading:
    return read_crowd(known, main, POLICY)


def findings(*odd: CrowdTrade, tries: tuple[IsolatedTrade, ...]) -> tuple[CrowdFinding, ...]:
    return read(crowd(*odd, tries=tries)).findings


def main(soon: SellResult = None, hour: SellResult = None, day: SellResult = None) -> MainSells:
    return MainSells(soon or sale(), hour or sale(), day or sale())


def checked(known: Crowd | Missing | None) -> Evidence:
    """A sound venue with this crowd."""
    return evidence(replace(venue(), crowd=known))
