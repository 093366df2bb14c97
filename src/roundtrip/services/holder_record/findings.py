"""The data that every holder answer is made of, and what is derived from it."""

from collections.abc import Collection, Mapping
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
from roundtrip.domain.holders.purses import Purse, insiders, purses
from roundtrip.domain.holders.read_state import ReadStatus
from roundtrip.domain.holders.ties import Disagreement
from roundtrip.domain.market.winners import SPANS
from roundtrip.store.holders.smart_money import BoardRow, SmartCrowd, WinningClose

Why = Literal["oversupplied", "capped", "pruned", "drifts", "unverified", "venues_unread", "claims"]
"""Why an answer is partial. oversupplied: balances exceed the supply. capped: the token has more transfers
than are read. pruned: the node does not have the oldest ones. drifts: logs and balances disagree. unverified:
some balances could not be read. venues_unread: trades of some venues are missing. claims: some of it was
bought and left in the v4 manager; the owner is not known."""

_FLATTERING = frozenset({"never_held", "holds_all", "holds_some"})
"""What the deployer may be said to have done only if every transfer was read."""


@dataclass(frozen=True, slots=True)
class HolderRecord:
    """``symbol``: as strangers wrote it. ``why``: the reasons if it is partial, the weightiest first; else
    empty. ``inputs`` None: nothing was read yet. While ``status`` is reading, only the launch is known, and
    only balances that were asked. ``launch`` None: there was none, or its block is not final. ``large_buy``:
    the first large buy after a launch by quiet trading. ``market_cap_micro_usd``: in millionths of a dollar,
    at ``block``. ``winners``, ``crowd`` None: the index was not available. ``biggest_wins``: by wallet, of
    the first winners. ``disagreement``, ``concentration`` None: not computed. ``unsure_maker``: the sender of
    the transaction with the token's first log, if the token may be older; nothing else is reported of him.
    ``scams``: how many people mark a top holder, or the deployer, as a scam."""

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
    inputs: HolderInputs | None = None
    launch: LaunchBuys | None = None
    large_buy: LaunchBuys | None = None
    market_cap_micro_usd: Fraction | None = None
    winners: tuple[BoardRow, ...] | None = None
    biggest_wins: Mapping[Address, WinningClose] = field(default_factory=dict)
    crowd: SmartCrowd | None = None
    disagreement: Disagreement | None = None
    concentration: Concentration | None = None
    unsure_maker: Maker | None = None
    scams: Mapping[Address, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.status == "partial") != bool(self.why):
            raise ValueError("a partial record needs a reason, and no other record has one")

    @property
    def full_inputs(self) -> HolderInputs | None:
        """What is known of all holders; None while transfers are being read."""
        return None if self.status == "reading" else self.inputs

    @property
    def maker(self) -> Maker | None:
        """The deployer, certain or probable."""
        return self.unsure_maker if self.inputs is None else self.inputs.maker or self.unsure_maker

    @property
    def has_every_transfer(self) -> bool:
        """Whether every transfer up to its block was read."""
        return self.full_inputs is not None and not {"capped", "pruned"} & set(self.why)

    def bps(self, raw: int) -> int:
        """The amount as a part of the supply, at most all of it whatever the token reports; 0 if it reports
        no supply."""
        return min(BPS, max(0, raw) * BPS // self.supply_raw) if self.supply_raw > 0 else 0

    def share_bps(self, raw: int) -> int | None:
        """As ``bps``; None if the token reports no supply."""
        return self.bps(raw) if self.supply_raw > 0 else None

    def held_raw(self, wallet: Address) -> int | None:
        """The wallet's balance; None: not known yet."""
        inputs = self.inputs
        if inputs is None or (self.status == "reading" and wallet not in inputs.balances):
            return None
        return findings.balance_raw(inputs, wallet)


@dataclass(frozen=True, slots=True)
class SmartFindings:
    """Winners that bought the token and hold it, by the nearest board and their rank there; and how many sold
    all of it."""

    holding: tuple[BoardRow, ...]
    sold_out: int


@dataclass(frozen=True, slots=True)
class HolderFindings:
    """None, or an empty list: not known, or there is none; ``bundles`` None: not known."""

    top: tuple[RankedHolder, ...] = ()
    shares: Shares | None = None
    snipers: Snipers | None = None
    bundles: tuple[Bundle, ...] | None = None
    deeds: DeployerDeeds | None = None
    suspicious: tuple[Address, ...] | None = None
    smart: SmartFindings | None = None
    purses: tuple[Purse, ...] | None = None
    tags: Mapping[Address, tuple[findings.Tag, ...]] = field(default_factory=dict)
    """Of launch buyers."""

    @property
    def fresh_in_top(self) -> int:
        """The number of top holders that are fresh."""
        return sum(1 for holder in self.top if "fresh" in holder.tags)

    @property
    def aged_in_top(self) -> int:
        """The number of top holders of which the first activity is known."""
        return sum(1 for holder in self.top if holder.first_s is not None)

    def purse_number(self, wallet: Address) -> int | None:
        """The place of its purse (wallets that are tied to each other) among all, from 1; None: none is
        known."""
        numbered = enumerate(self.purses or (), 1)
        return next((number for number, purse in numbered if wallet in purse.wallets), None)


def summarize(record: HolderRecord) -> HolderFindings:
    """Derives all findings."""
    inputs, launch, full_inputs = record.inputs, record.launch, record.full_inputs
    snipers, bundles, *parties = _launch_parties(record)
    tags = {} if inputs is None or launch is None else {
        buy.wallet: findings.tags(inputs, buy.wallet, *parties) for buy in launch.buys
    }  # fmt: skip
    if full_inputs is None:
        return HolderFindings(bundles=bundles, tags=tags)
    found = tuple(purses(full_inputs, launch))
    return HolderFindings(
        top=tuple(findings.top(full_inputs, findings.TOP, *parties)),
        shares=findings.shares(full_inputs),
        snipers=snipers,
        bundles=bundles,
        deeds=_known_deeds(record, full_inputs),
        suspicious=insiders(full_inputs, launch, found),
        smart=_smart(record, full_inputs),
        purses=found,
        tags=tags,
    )


def tag_accounts(
    record: HolderRecord, accounts: Collection[Address]
) -> tuple[Mapping[Address, tuple[findings.Tag, ...]], bool]:
    """The tags of those accounts that have any, which need not hold the token; and whether no other of them
    has one that could not be found out."""
    inputs = record.inputs
    if inputs is None:
        return {}, False
    _, _, *parties = _launch_parties(record)
    tags = {account: findings.tags(inputs, account, *parties) for account in accounts}
    is_complete = record.status == "complete" and record.unsure_maker is None and inputs.maker is not None
    is_complete = is_complete and all(_is_traced(record, inputs, account) for account in accounts)
    return {account: found for account, found in tags.items() if found}, is_complete


def _is_traced(record: HolderRecord, inputs: HolderInputs, account: Address) -> bool:
    """Whether enough is known for every tag. An account that never bought has none that needs a buy, and
    nobody is funded by himself."""
    known, holding = inputs.wallets.get(account, findings.UNKNOWN), inputs.book.wallets.get(account)
    is_deployer = inputs.maker is not None and account == inputs.maker.deployer
    if known.is_contract is None or not (known.funder_known or is_deployer):
        return False
    if holding is None or holding.first_buy_s is None:
        return True
    return record.launch is not None and record.winners is not None and known.first_s is not None


def _launch_parties(
    record: HolderRecord,
) -> tuple[Snipers | None, tuple[Bundle, ...] | None, frozenset[Address], frozenset[Address]]:
    """Snipers and bundles, None: as in ``HolderFindings``; and the wallets of each."""
    inputs, launch, bundles = record.inputs, record.launch, _bundles(record)
    snipers = None if inputs is None or launch is None else findings.snipers(inputs, launch)
    return (
        snipers,
        bundles,
        frozenset(snipers.wallets if snipers else ()),
        frozenset(wallet for bundle in bundles or () for wallet in bundle.wallets),
    )


def _bundles(record: HolderRecord) -> tuple[Bundle, ...] | None:
    inputs, launch = record.inputs, record.launch
    if inputs is None or launch is None:
        return None
    if record.status == "reading":
        if not inputs.book.launch_is_over():
            return None
        if any(record.held_raw(buy.wallet) is None for buy in launch.buys):
            return None
    return tuple(findings.bundles(inputs, launch))


def _known_deeds(record: HolderRecord, inputs: HolderInputs) -> DeployerDeeds | None:
    """What the deployer did. If transfers are missing, or another wallet may be the deployer, only that he
    has nothing left is reported: what he received and sold may be missing. None: not known."""
    deeds = deployer_deeds(replace(inputs, maker=record.maker))
    is_all = record.has_every_transfer and record.unsure_maker is None
    return None if deeds is not None and deeds.status in _FLATTERING and not is_all else deeds


def nearness(win: BoardRow) -> tuple[int, int]:
    """Sort key: the board that looks back least first (the nearest), then the better rank."""
    return list(SPANS).index(win.span), win.rank


def _smart(record: HolderRecord, inputs: HolderInputs) -> SmartFindings | None:
    if record.winners is None:
        return None
    skipped = findings.outside(inputs)
    nearest: dict[Address, BoardRow] = {}
    for win in sorted(record.winners, key=nearness):
        if win.profit_wei > 0 and win.wallet not in skipped and findings.has_bought(inputs, win.wallet):
            nearest.setdefault(win.wallet, win)
    sold_out = {wallet for wallet in nearest if findings.has_sold_out(inputs, wallet)}
    holding = (win for win in nearest.values() if win.wallet not in sold_out)
    return SmartFindings(
        tuple(win for win in holding if findings.holds_on_purpose(inputs, win.wallet)), len(sold_out)
    )


def funders_unknown(record: HolderRecord) -> tuple[Address, ...]:
    """Launch buyers of which the funder, or the funder's other wallets, are not known."""
    if record.launch is None:
        return ()
    known = {} if record.inputs is None else record.inputs.wallets
    known_wallets = ((buy.wallet, known.get(buy.wallet, findings.UNKNOWN)) for buy in record.launch.buys)
    families = {} if record.inputs is None else record.inputs.families
    return tuple(
        address
        for address, wallet in known_wallets
        if (not wallet.funder_known if wallet.funder is None else wallet.funder not in families)
    )


def launches_bought(record: HolderRecord, summary: HolderFindings) -> list[int]:
    """For every top holder that bought other launches of the deployer, how many; the deployer and creators do
    not count."""
    if record.crowd is None:
        return []
    insider_tags = {"deployer", "creator"}
    counts = (
        record.crowd.launches_by_wallet.get(holder.address, 0)
        for holder in summary.top
        if not insider_tags & set(holder.tags)
    )
    return [launches for launches in counts if launches > 0]
