"""Who holds a token: parameters and answers."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.holders.deployer import Source
from roundtrip.domain.holders.deployer_summary import Status
from roundtrip.domain.holders.findings import Tag
from roundtrip.domain.holders.read_state import ReadStatus
from roundtrip.domain.market.winners import Window
from roundtrip.services.support.answer_fields import (
    AnswerText,
    ChainId,
    DeployerWallet,
    SoldOutAt,
    Symbol,
    TokenAddress,
    WalletAddress,
    says,
)
from roundtrip.services.support.index_reader import IndexAnswer

Bps = Annotated[int, says("Hundredths of a percent of the total supply.")]
PurseNumber = Annotated[
    int | None,
    says(
        "Place of its purse in token_holders' forensics.purses.rows, from 1. null: no tie to "
        "another traced wallet is known."
    ),
]


class HeldToken(msgspec.Struct, frozen=True, rename="camel"):
    """The token. Its symbol was written by strangers."""

    symbol: Symbol
    decimals: Annotated[int, says("Decimals of a whole token.")]
    total_supply: Annotated[str, says("Supply in whole tokens, a decimal number.")]


class HoldersCounted(msgspec.Struct, frozen=True, rename="camel"):
    """Number of holders, and where the supply lies."""

    count: Annotated[int, says("Wallets that hold some; pools and burn addresses are left out.")]
    count_is_floor: Annotated[bool, says("true: there may be more.")]
    top10_bps: Annotated[
        Bps, says("Share of the ten biggest wallets, in hundredths of a percent of the total supply.")
    ] = msgspec.field(name="top10Bps")
    in_pools_bps: Annotated[
        Bps, says("Share in pools and the curve, in hundredths of a percent of the total supply.")
    ]
    burned_bps: Annotated[
        Bps, says("Share at burn addresses, in hundredths of a percent of the total supply.")
    ]
    fresh_in_top: Annotated[int, says("Top holders made within 3 days before their first buy.")]
    aged_in_top: Annotated[int, says("Top holders with a known age.")]


class TopHolder(msgspec.Struct, frozen=True, rename="camel"):
    """One of the ten biggest."""

    address: WalletAddress
    balance: Annotated[str, says("What it holds in whole tokens, a decimal number.")]
    supply_bps: Annotated[Bps, says("Share of the total supply, in hundredths of a percent.")]
    first_seen: Annotated[
        datetime | None, says("When anything first reached the wallet on the chain. null: not known.")
    ]
    age_days: Annotated[int | None, says("Days since firstSeen. null: not known.")]
    entry_market_cap_usd: Annotated[
        float | None,
        says(
            "Market cap that it bought at, in dollars, averaged over its buys by size. "
            "null: not known, or it bought none."
        ),
    ]
    multiple: Annotated[
        float | None, says("Market cap now divided by that at entry. null: one of them is not known.")
    ]
    sold_bps: Annotated[
        int, says("How much it sold of all that ever reached it, in hundredths of a percent.")
    ]
    tags: Annotated[
        list[Tag],
        says(
            "What is known of the wallet. winner: on a winners board; fresh: made within 3 "
            "days before its first buy."
        ),
    ]
    scam_marks: Annotated[int, says("People who mark it as a scam; 0: none, or too few to count.")]
    purse: PurseNumber


class LaunchTime(msgspec.Struct, frozen=True, rename="camel"):
    """When the token could first be bought."""

    block: Annotated[int, says("The launch block.")]
    time: Annotated[datetime | None, says("Time of that block. null: not known.")]
    window_blocks: Annotated[
        int, says("Snipers and bundles are looked for in the launch block and this many blocks after it.")
    ]


class SnipersAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Who bought in the launch window, the deployer left out."""

    wallets: Annotated[int, says("Wallets that bought in the launch window, the deployer left out.")]
    bought_bps: Annotated[
        Bps, says("What they bought in the window, in hundredths of a percent of the total supply.")
    ]
    held_bps: Annotated[Bps, says("What they hold now, in hundredths of a percent of the total supply.")]
    sold_out: Annotated[int, says("How many of them sold and hold nothing now.")]


class BundleAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Three or more launch buyers behind one funder, or filled in one transaction."""

    wallets: Annotated[int, says("Wallets in the biggest bundle.")]
    funder: Annotated[
        str | None, says("The wallet that funded them. null: they share a transaction instead.")
    ]
    same_transaction: Annotated[bool, says("Whether one transaction filled all of them.")]
    bought_bps: Annotated[
        Bps, says("What they bought in the window, in hundredths of a percent of the total supply.")
    ]
    held_bps: Annotated[Bps, says("What they hold now, in hundredths of a percent of the total supply.")]


class DeployerHolds(msgspec.Struct, frozen=True, rename="camel"):
    """What the deployer did with the tokens that reached it."""

    address: DeployerWallet
    source: Annotated[
        Source,
        says(
            "What names the deployer: the launchpad, the transaction that deployed the "
            "contract, or the one that launched the token."
        ),
    ]
    status: Annotated[Status, says("What became of the deployer's tokens.")]
    received_bps: Annotated[
        Bps, says("All that ever reached it, in hundredths of a percent of the total supply.")
    ]
    bought_bps: Annotated[Bps, says("What it bought, in hundredths of a percent of the total supply.")]
    sold_bps: Annotated[Bps, says("What it sold, in hundredths of a percent of the total supply.")]
    moved_bps: Annotated[
        Bps, says("What it sent to other wallets, in hundredths of a percent of the total supply.")
    ]
    pooled_bps: Annotated[
        Bps, says("What it put into pools, in hundredths of a percent of the total supply.")
    ]
    burned_bps: Annotated[Bps, says("What it burned, in hundredths of a percent of the total supply.")]
    held_bps: Annotated[Bps, says("What it holds now, in hundredths of a percent of the total supply.")]


class BiggestWin(msgspec.Struct, frozen=True, rename="camel"):
    """The most eth a wallet ever took out of one closed token."""

    token: TokenAddress
    symbol: Symbol
    profit_eth: Annotated[float, says("What it got minus what it spent, in eth.")]
    spent_eth: Annotated[float, says("What it paid for the token, in eth.")]
    multiple: Annotated[float, says("What it got divided by what it spent.")]
    closed_at: SoldOutAt


class SmartWallet(msgspec.Struct, frozen=True, rename="camel"):
    """A winner that bought the token and holds it."""

    address: WalletAddress
    rank: Annotated[int, says("Its place on that board.")]
    window: Annotated[Window, says("The nearest winners board that it ranks on.")]
    profit_eth: Annotated[float, says("Its profit on that board, in eth.")]
    win_rate: Annotated[
        float, msgspec.Meta(description="Share of closed tokens with a profit, 0 to 1.", ge=0, le=1)
    ]
    closed: Annotated[int, says("Tokens that it sold out of.")]
    supply_bps: Annotated[Bps, says("What it holds, in hundredths of a percent of the total supply.")]
    entry_market_cap_usd: Annotated[
        float | None,
        says("Market cap that it bought at, in dollars, averaged over its buys by size. null: not known."),
    ]
    multiple: Annotated[
        float | None, says("Market cap now divided by that at entry. null: one of them is not known.")
    ]
    biggest_win: Annotated[
        BiggestWin | None, says("The most eth that it ever took out of one closed token. null: none known.")
    ]


class SmartMoneyAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Wallets in profit on the winners list that bought the token and hold it."""

    holding: Annotated[int, says("Winners that hold the token.")]
    sold_out: Annotated[int, says("Winners that bought it and sold all of it.")]
    wallets: Annotated[list[SmartWallet], says("Winners that hold it, at most 100, the nearest board first.")]


class RepeatCrowd(msgspec.Struct, frozen=True, rename="camel"):
    """Top holders that also bought the same deployer's other launches."""

    wallets: Annotated[int, says("Top holders that also bought other launches of the deployer.")]
    of_top: Annotated[int, says("Top holders listed, the deployer and creators among them.")]
    most_launches: Annotated[int, says("Most other launches that one of them bought.")]
    deployer_launches: Annotated[
        int, says("Launches of the deployer onto curves; counted up to the newest 200, as in a check.")
    ]


class Holders(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds a token, and how they came by it."""

    address: TokenAddress
    chain_id: ChainId
    status: Annotated[
        ReadStatus,
        says(
            "complete: every transfer was read. reading: a busy token, only its launch is "
            "here; ask again in half a minute. partial: counts are a floor."
        ),
    ]
    transfers_read: Annotated[int, says("Transfers of the token that were read.")]
    token: Annotated[HeldToken, says("The token.")]
    market_cap_usd: Annotated[float | None, says("Market cap now, in dollars. null: not known.")]
    holders: Annotated[
        HoldersCounted | None, says("Number of holders, and where the supply lies. null: not read yet.")
    ]
    top: Annotated[
        list[TopHolder], says("The ten biggest holders; pools, the curve and burn addresses are left out.")
    ]
    launch: Annotated[LaunchTime | None, says("The launch. null: not known, or there was none.")]
    snipers: Annotated[
        SnipersAnswer | None,
        says("Wallets that raced to buy in the launch window. null: none, or not known yet."),
    ]
    bundle: Annotated[
        BundleAnswer | None,
        says(
            "The biggest bundle: three or more launch buyers with one funder or one "
            "transaction. null: none found, or not known yet."
        ),
    ]
    deployer: Annotated[DeployerHolds | None, says("What the deployer did with its tokens. null: not known.")]
    smart_money: Annotated[SmartMoneyAnswer | None, says("Winners that hold the token. null: not known yet.")]
    repeat_crowd: Annotated[
        RepeatCrowd | None,
        says("Top holders that bought other launches of the same deployer. null: not known."),
    ]
    checked_at: Annotated[datetime, says("When the answer was made.")]
    why: Annotated[list[str], says("Reasons why the status is partial; empty: it is not.")]


class Drift(msgspec.Struct, frozen=True, rename="camel"):
    """How far the token's transfer logs differ from the balances that it reports."""

    wallets_asked: Annotated[int, says("Wallets with a compared balance.")]
    wallets_off: Annotated[int, says("Those of them with a different balance.")]
    most_off_bps: Annotated[
        Bps, says("Largest difference of one wallet, in hundredths of a percent of the total supply.")
    ]
    supply_off_bps: Annotated[
        int | None,
        says(
            "All balances by the logs minus the reported supply, in hundredths of a "
            "percent of it. null: not every transfer was read."
        ),
    ]


class Growth(msgspec.Struct, frozen=True, rename="camel"):
    """Change of the number of holders."""

    hour: Annotated[
        int | None, says("Holders now minus an hour ago, if it was launched by then. null: not known.")
    ]
    day: Annotated[int | None, says("Holders now minus a day ago. null: not known.")]
    week: Annotated[int | None, says("Holders now minus a week ago. null: not known.")]


class Link(msgspec.Struct, frozen=True, rename="camel"):
    """A tie between a wallet and another or the launch, and the transaction that shows it."""

    wallet: Annotated[str, says("The wallet that is tied.")]
    kind: Annotated[
        Literal["deployed", "sniped", "same_transaction", "same_funder", "funded_by_deployer"],
        says("What ties it."),
    ]
    to: Annotated[str | None, says("The funder. null: no funder is involved.")]
    transaction: Annotated[str | None, says("The transaction that shows it. null: not known.")]


class PurseAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Traced wallets that are tied: by who sent their first eth, or by one launch transaction."""

    wallets: Annotated[int, says("Its wallets, as far as they were traced.")]
    holding: Annotated[int, says("Those of them that hold the token.")]
    held_bps: Annotated[Bps, says("What they hold, in hundredths of a percent of the total supply.")]
    funder: Annotated[
        str | None, says("The wallet that funded most of them; a transaction may tie them. null: not known.")
    ]
    has_deployer: Annotated[bool, says("Whether the deployer is one of them.")]


class Purses(msgspec.Struct, frozen=True, rename="camel"):
    """The wallets that were traced (the ten biggest, the launch buyers, the deployer), by purse."""

    wallets: Annotated[int, says("Traced wallets that hold the token.")]
    count: Annotated[int, says("Purses that they have at most; a wallet without a known tie is one.")]
    unknown: Annotated[int, says("Those of them whose funder, or his other wallets, are not known.")]
    rows: Annotated[list[PurseAnswer], says("Purses of two wallets or more, the one that holds most first.")]


class Forensics(msgspec.Struct, frozen=True, rename="camel"):
    """Measures of concentration, ties between wallets, and doubts about the token's own figures."""

    gini_bps: Annotated[
        int | None,
        says(
            "Gini index times 10000. 0: all wallets hold the same; 10000: one holds "
            "everything. null: not known."
        ),
    ]
    nakamoto: Annotated[
        int | None,
        says("Fewest wallets that together hold more than half of what wallets hold. null: not known."),
    ]
    suspicious_wallets: Annotated[
        int | None,
        says(
            "Deployer, snipers, bundles, and wallets that the deployer funded or shares a purse with, that "
            "hold some, each counted once. null: not known."
        ),
    ]
    suspicious_bps: Annotated[
        Bps | None,
        says("What those wallets hold, in hundredths of a percent of the total supply. null: not known."),
    ]
    locked_bps: Annotated[
        Bps | None,
        says(
            "What lies in lockers, escrows and vaults and at the token itself, in "
            "hundredths of a percent of the total supply. null: not known."
        ),
    ]
    growth: Annotated[Growth | None, says("Change of the number of holders. null: not known.")]
    drift: Annotated[
        Drift | None,
        says(
            "How far the transfer logs differ from the balances that the token reports. null: not compared."
        ),
    ]
    funders_unknown: Annotated[int, says("Launch buyers with a funder that could not be found out.")]
    links: Annotated[list[Link], says("Ties between wallets, at most 200, the most telling first.")]
    purses: Annotated[Purses | None, says("Which wallets have one purse. null: not read yet.")]


class TokenHolders(Holders, frozen=True, rename="camel"):
    """The tool's answer: also in sentences, with more measures."""

    text: AnswerText
    block: Annotated[int, says("The block that the answer holds for.")]
    forensics: Annotated[
        Forensics,
        says("Measures of concentration, ties between wallets, and doubts about the token's own figures."),
    ]


class OfHolders(IndexAnswer, frozen=True, rename="camel"):
    """Fields that smart_money, launch_bundle and the growth of holders begin with."""

    address: TokenAddress
    status: Annotated[
        ReadStatus,
        says(
            "complete: every transfer was read. reading: a busy token, not all is known yet; ask again in "
            "half a minute. partial: counts are a floor, and text says why."
        ),
    ]
    token: Annotated[HeldToken, says("The token.")]
