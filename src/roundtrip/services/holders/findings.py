"""Everything that is said of who holds a token is made of this, and what is found in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from roundtrip.domain.base.types import BPS, Address, BlockRef
from roundtrip.domain.holders import findings
from roundtrip.domain.holders.book import LaunchBuys
from roundtrip.domain.holders.deployer import Maker
from roundtrip.domain.holders.deployer_summary import DeployerDeeds, deployer_deeds
from roundtrip.domain.holders.findings import (
    Bundle,
    Concentration,
    HolderInputs,
    RankedHolder,
    Shares,
    Snipers,
)
from roundtrip.domain.holders.read_state import ReadStatus
from roundtrip.domain.holders.ties import Disagreement

from .schema import Window

Why = Literal["capped", "pruned", "drifts", "unverified", "venues_unread", "claims"]
"""Why an answer is partial. capped: it has more transfers than are read. pruned: the node has not the oldest.
drifts: logs and balances disagree. unverified: balances could not be asked. venues_unread: of some of its
venues the trades are missing. claims: some of it was bought and left in the v4 manager: for whom is not
known."""

NEAREST: tuple[Window, ...] = ("24h", "7d", "30d", "all")
_FLATTERING = frozenset({"never_held", "holds_all", "holds_some"})


@dataclass(frozen=True, slots=True)
class WinFinding:
    """The most eth that a wallet took out of one closed token. ``symbol``: as strangers wrote it."""

    token: Address
    symbol: str | None
    profit_wei: int
    spent_wei: int
    closed_s: int


@dataclass(frozen=True, slots=True)
class HolderWin:
    """A wallet's place on a winners board."""

    wallet: Address
    window: Window
    rank: int
    profit_wei: int
    won: int
    closed: int
    best: WinFinding | None


@dataclass(frozen=True, slots=True)
class LaunchCrowd:
    """How many other launches of the same deployer each wallet bought, and how many he made in all."""

    bought: Mapping[Address, int]
    deployer_launches: int


@dataclass(frozen=True, slots=True)
class HolderRecord:
    """``symbol``: as strangers wrote it. ``why``: why it is partial, the weightiest first; nothing else has
    any. ``told`` None: nothing was read yet. While ``status`` is reading only the launch is told of it, and
    only balances that were asked. ``launch`` None: there was none, or its place is not known for sure.
    ``market_cap_micro_usd``: in millionths of a dollar, at ``block``. ``winners``, ``crowd`` None: the index
    could not be asked. ``disagreement``, ``concentration`` None: not looked at. ``unsure_maker``: who sent
    the transaction in which the token first spoke, where it may be older: nothing else is told of him.
    ``scams``: how many people mark a top holder, or the deployer, as a scam.
    """

    chain_id: int
    token: Address
    symbol: str | None
    decimals: int
    supply_raw: int
    block: BlockRef
    checked_s: int
    status: ReadStatus
    transfers_read: int
    why: tuple[Why, ...] = ()
    told: HolderInputs | None = None
    launch: LaunchBuys | None = None
    market_cap_micro_usd: Fraction | None = None
    winners: tuple[HolderWin, ...] | None = None
    crowd: LaunchCrowd | None = None
    disagreement: Disagreement | None = None
    concentration: Concentration | None = None
    unsure_maker: Maker | None = None
    scams: Mapping[Address, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.status == "partial") != bool(self.why):
            raise ValueError("what is partial has a reason, and nothing else has")

    @property
    def read(self) -> HolderInputs | None:
        """What is known of all holders; None while that is being read."""
        return None if self.status == "reading" else self.told

    @property
    def maker(self) -> Maker | None:
        """Who deployed it, or may have."""
        return self.unsure_maker if self.told is None else self.told.maker or self.unsure_maker

    @property
    def has_every_transfer(self) -> bool:
        """Up to its block."""
        return self.read is not None and not {"capped", "pruned"} & set(self.why)

    def bps(self, raw: int) -> int:
        """Of the supply, and never more than all of it, whatever a token tells; of one that says it has none,
        0."""
        return min(BPS, max(0, raw) * BPS // self.supply_raw) if self.supply_raw > 0 else 0

    def share_bps(self, raw: int) -> int | None:
        """The same; None of a token that says it has none."""
        return self.bps(raw) if self.supply_raw > 0 else None

    def held_raw(self, wallet: Address) -> int | None:
        """None: not known yet."""
        told = self.told
        if told is None or (self.status == "reading" and wallet not in told.balances):
            return None
        return findings.balance_raw(told, wallet)


@dataclass(frozen=True, slots=True)
class SmartFindings:
    """Winners that bought the token and hold it, by the nearest board and their rank there; and how many sold
    it all."""

    holding: tuple[HolderWin, ...]
    sold_out: int


@dataclass(frozen=True, slots=True)
class HolderFindings:
    """None, or nothing in a list: not known, or there is none; ``bundles`` None: not known."""

    top: tuple[RankedHolder, ...] = ()
    shares: Shares | None = None
    snipers: Snipers | None = None
    bundles: tuple[Bundle, ...] | None = None
    deeds: DeployerDeeds | None = None
    suspicious: tuple[Address, ...] | None = None
    smart: SmartFindings | None = None
    fresh_in_top: int = 0
    aged_in_top: int = 0
    tags: Mapping[Address, tuple[findings.Tag, ...]] = field(default_factory=dict)
    """Of launch buyers."""


def find(gathered: HolderRecord) -> HolderFindings:
    """All that is found in it."""
    told, launch, all_told = gathered.told, gathered.launch, gathered.read
    bundles = _bundles(gathered)
    sniping = None if told is None or launch is None else findings.snipers(told, launch)
    sniped = frozenset(sniping.wallets if sniping else ())
    bundled = frozenset(wallet for bundle in bundles or () for wallet in bundle.wallets)
    tags = {} if told is None or launch is None else {
        buy.wallet: findings.tags(told, buy.wallet, sniped, bundled) for buy in launch.buys
    }  # fmt: skip
    if all_told is None:
        return HolderFindings(bundles=bundles, tags=tags)
    top = tuple(findings.top(all_told, snipers=sniped, bundled=bundled))
    ages = [all_told.wallets.get(one.address, findings.UNKNOWN).first_s for one in top]
    return HolderFindings(
        top=top,
        shares=findings.shares(all_told),
        snipers=sniping,
        bundles=bundles,
        deeds=_deeds(gathered, all_told),
        suspicious=findings.suspicious(all_told, launch),
        smart=_smart(gathered, all_told),
        fresh_in_top=sum(1 for one in top if "fresh" in one.tags),
        aged_in_top=sum(1 for first_s in ages if first_s is not None),
        tags=tags,
    )


def _bundles(gathered: HolderRecord) -> tuple[Bundle, ...] | None:
    told, launch = gathered.told, gathered.launch
    if told is None or launch is None:
        return None
    if gathered.status == "reading":
        if not told.book.launch_is_over():
            return None
        if any(gathered.held_raw(buy.wallet) is None for buy in launch.buys):
            return None
    return tuple(findings.bundles(told, launch))


def _deeds(gathered: HolderRecord, told: HolderInputs) -> DeployerDeeds | None:
    """Where transfers are missing only that he is out is told: what he got and sold may be among these. So it
    is where somebody else may have deployed it."""
    deeds = deployer_deeds(replace(told, maker=gathered.maker))
    is_all = gathered.has_every_transfer and gathered.unsure_maker is None
    return None if deeds is not None and deeds.status in _FLATTERING and not is_all else deeds


def _smart(gathered: HolderRecord, told: HolderInputs) -> SmartFindings | None:
    if gathered.winners is None:
        return None
    skipped = findings.outside(told)
    nearest: dict[Address, HolderWin] = {}
    for one in sorted(gathered.winners, key=lambda one: (NEAREST.index(one.window), one.rank)):
        if one.profit_wei > 0 and one.wallet not in skipped and findings.has_bought(told, one.wallet):
            nearest.setdefault(one.wallet, one)
    out = {wallet for wallet in nearest if findings.has_sold_out(told, wallet)}
    holding = (one for one in nearest.values() if one.wallet not in out)
    return SmartFindings(
        tuple(one for one in holding if findings.holds_on_purpose(told, one.wallet)), len(out)
    )


def funders_unknown(gathered: HolderRecord) -> tuple[Address, ...]:
    """Launch buyers of whom it could not be found out who funded them, or whom else that one funded."""
    if gathered.launch is None:
        return ()
    known = {} if gathered.told is None else gathered.told.wallets
    each = ((buy.wallet, known.get(buy.wallet, findings.UNKNOWN)) for buy in gathered.launch.buys)
    families = {} if gathered.told is None else gathered.told.families
    return tuple(
        address
        for address, wallet in each
        if (not wallet.funder_known if wallet.funder is None else wallet.funder not in families)
    )


def repeats(gathered: HolderRecord, found: HolderFindings) -> list[int]:
    """Of every top holder that bought other launches of the deployer how many; he himself is no crowd."""
    if gathered.crowd is None:
        return []
    own = {"deployer", "creator"}
    each = (gathered.crowd.bought.get(one.address, 0) for one in found.top if not own & set(one.tags))
    return [launches for launches in each if launches > 0]
