"""Who holds a token: parameters and answers."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.errors import CallerFault
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.domain.holders.deployer import Source
from roundtrip.domain.holders.deployer_summary import Status
from roundtrip.domain.holders.findings import Tag
from roundtrip.domain.holders.read_state import ReadStatus
from roundtrip.services.support.index_reader import IndexAnswer
from roundtrip.services.support.strangers_text import AnswerText, Symbol

Bps = Annotated[int, msgspec.Meta(description="Hundredths of a percent of the total supply.")]
Window = Literal["24h", "7d", "30d", "all"]


class HoldersParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which token."""

    address: Annotated[
        str, msgspec.Meta(pattern="^0x[0-9a-fA-F]{40}$", description="The token's contract address.")
    ]

    def token(self) -> Address:
        """The address, lower-cased. Raises CallerFault (bad_address)."""
        try:
            return parse_address(self.address)
        except ValueError:
            raise CallerFault("bad_address", "That is not a token address: 0x and 40 hex digits.") from None


class HeldToken(msgspec.Struct, frozen=True, rename="camel"):
    """The token. Its symbol was written by strangers."""

    symbol: Symbol
    decimals: int
    total_supply: Annotated[str, msgspec.Meta(description="Whole tokens, a plain decimal.")]


class HoldersCounted(msgspec.Struct, frozen=True, rename="camel"):
    """How many hold it, and where the supply lies."""

    count: Annotated[int, msgspec.Meta(description="Wallets that hold some; no pool, no burn address.")]
    count_is_floor: Annotated[bool, msgspec.Meta(description="True: there may be more.")]
    top10_bps: Annotated[Bps, msgspec.Meta(description="Share of the ten biggest wallets.")] = msgspec.field(
        name="top10Bps"
    )
    in_pools_bps: Bps
    burned_bps: Annotated[Bps, msgspec.Meta(description="Share at a burn address.")]
    fresh_in_top: Annotated[
        int, msgspec.Meta(description="Top holders made within 3 days of their first buy.")
    ]
    aged_in_top: Annotated[int, msgspec.Meta(description="Top holders whose age is known.")]


class TopHolder(msgspec.Struct, frozen=True, rename="camel"):
    """One of the ten biggest."""

    address: str
    balance: Annotated[str, msgspec.Meta(description="Whole tokens, a plain decimal.")]
    supply_bps: Bps
    first_seen: Annotated[
        datetime | None, msgspec.Meta(description="When anything first reached the wallet on the chain.")
    ]
    age_days: int | None
    entry_market_cap_usd: Annotated[
        float | None,
        msgspec.Meta(description="The market cap it bought at, averaged over its buys by size."),
    ]
    multiple: Annotated[float | None, msgspec.Meta(description="Market cap now over that at entry.")]
    sold_bps: Annotated[int, msgspec.Meta(description="How much of all that ever reached it, it sold.")]
    tags: list[Tag]
    scam_marks: Annotated[
        int, msgspec.Meta(description="How many people mark it as a scam; 0: none, or too few to tell.")
    ]


class LaunchTime(msgspec.Struct, frozen=True, rename="camel"):
    """When the token could first be bought."""

    block: int
    time: datetime | None
    window_blocks: Annotated[
        int,
        msgspec.Meta(description="Snipers and bundles are looked for in the launch block and so many after."),
    ]


class SnipersAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Who bought in the launch window, the deployer left out."""

    wallets: int
    bought_bps: Bps
    held_bps: Bps
    sold_out: Annotated[int, msgspec.Meta(description="How many of them sold and have nothing left.")]


class BundleAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Three or more launch buyers behind one funder, or filled in one transaction."""

    wallets: int
    funder: str | None
    same_transaction: bool
    bought_bps: Bps
    held_bps: Bps


class DeployerHolds(msgspec.Struct, frozen=True, rename="camel"):
    """What the deployer did with what reached him."""

    address: str
    source: Annotated[
        Source,
        msgspec.Meta(
            description="Who says so: the launchpad, the transaction that made the contract, or the one that "
            "launched it."
        ),
    ]
    status: Status
    received_bps: Bps
    bought_bps: Bps
    sold_bps: Bps
    moved_bps: Bps
    pooled_bps: Bps
    burned_bps: Bps
    held_bps: Bps


class BiggestWin(msgspec.Struct, frozen=True, rename="camel"):
    """The most eth a wallet ever took out of one closed token."""

    token: str
    symbol: Symbol
    profit_eth: float
    spent_eth: float
    multiple: float
    closed_at: datetime


class SmartWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A winner that bought the token and holds it."""

    address: str
    rank: int
    window: Annotated[Window, msgspec.Meta(description="The nearest winners board that it ranks on.")]
    profit_eth: float
    win_rate: Annotated[float, msgspec.Meta(description="0 to 1.", ge=0, le=1)]
    closed: int
    supply_bps: Bps
    entry_market_cap_usd: float | None
    multiple: float | None
    biggest_win: BiggestWin | None


class SmartMoneyAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Wallets in profit on the winners list that bought the token and hold it."""

    holding: int
    sold_out: Annotated[int, msgspec.Meta(description="How many of them bought it and sold it all again.")]
    wallets: list[SmartWallet]


class RepeatCrowd(msgspec.Struct, frozen=True, rename="camel"):
    """Top holders that also bought the same deployer's other launches."""

    wallets: int
    of_top: int
    most_launches: Annotated[int, msgspec.Meta(description="Other launches that one of them bought at most.")]
    deployer_launches: Annotated[
        int,
        msgspec.Meta(
            description="All launches of the deployer onto curves, counted up to the newest 200: the number "
            "that a check tells, too."
        ),
    ]


class Holders(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds a token, and how they came by it."""

    address: str
    chain_id: int
    status: Annotated[
        ReadStatus,
        msgspec.Meta(
            description="complete: every transfer was read. reading: a busy token; only its launch is here, "
            "ask again in half a minute. partial: counts are a floor."
        ),
    ]
    transfers_read: int
    token: HeldToken
    market_cap_usd: float | None
    holders: HoldersCounted | None
    top: list[TopHolder]
    launch: LaunchTime | None
    snipers: SnipersAnswer | None
    bundle: BundleAnswer | None
    deployer: DeployerHolds | None
    smart_money: SmartMoneyAnswer | None
    repeat_crowd: RepeatCrowd | None
    checked_at: datetime
    why: Annotated[list[str], msgspec.Meta(description="Why it is partial, in sentences; empty: it is not.")]


class Drift(msgspec.Struct, frozen=True, rename="camel"):
    """How far what the token's transfers add up to is from what it tells of itself."""

    wallets_asked: int
    wallets_off: int
    most_off_bps: Annotated[Bps, msgspec.Meta(description="The largest difference of one wallet.")]
    supply_off_bps: Annotated[
        int | None, msgspec.Meta(description="All balances by the logs, over or below the supply it tells.")
    ]


class Growth(msgspec.Struct, frozen=True, rename="camel"):
    """How many more wallets hold it than then; null: it is younger."""

    hour: int | None
    day: int | None
    week: int | None


class Link(msgspec.Struct, frozen=True, rename="camel"):
    """What ties a wallet to another, or to the launch, and the transaction that shows it."""

    wallet: str
    kind: Literal["deployed", "sniped", "same_transaction", "same_funder", "funded_by_deployer"]
    to: Annotated[str | None, msgspec.Meta(description="The funder, where there is one.")]
    transaction: Annotated[str | None, msgspec.Meta(description="null: not known.")]


class Forensics(msgspec.Struct, frozen=True, rename="camel"):
    """What a closer look finds, beside the answer that both doors give."""

    gini_bps: Annotated[
        int | None, msgspec.Meta(description="0, all wallets hold the same, to 10000, one holds it all.")
    ]
    nakamoto: Annotated[
        int | None,
        msgspec.Meta(description="The fewest wallets that have more than half of what wallets have."),
    ]
    suspicious_wallets: int | None
    suspicious_bps: Annotated[
        Bps | None,
        msgspec.Meta(
            description="What deployer, snipers, bundles and whom the deployer funded hold, each wallet once."
        ),
    ]
    locked_bps: Annotated[
        Bps | None, msgspec.Meta(description="In lockers, escrows and vaults, and at the token itself.")
    ]
    growth: Growth | None
    drift: Drift | None
    funders_unknown: Annotated[
        int, msgspec.Meta(description="Launch buyers of whom it could not be found out who funded them.")
    ]
    links: Annotated[list[Link], msgspec.Meta(description="At most 200, the most telling kinds first.")]


class TokenHolders(Holders, frozen=True, rename="camel"):
    """The tool's answer: the same, in sentences too, and a closer look."""

    text: AnswerText
    block: Annotated[int, msgspec.Meta(description="The block that it holds for.")]
    forensics: Forensics


class OfHolders(IndexAnswer, frozen=True, rename="camel"):
    """What smart_money and launch_bundle both begin with."""

    address: str
    status: Annotated[
        ReadStatus,
        msgspec.Meta(
            description="complete: every transfer was read. reading: a busy token, of which not all is told "
            "yet; ask again in half a minute. partial: counts are a floor, and the text says why."
        ),
    ]
    token: HeldToken
