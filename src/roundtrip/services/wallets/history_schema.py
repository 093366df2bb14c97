"""What wallet_history answers: everything typed, with its units."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed

OriginStatus = Literal["known", "searching", "unknown"]
Phase = Literal["curve", "between", "graduated", "rescued", "pool"]

Eth = Annotated[float, msgspec.Meta(description="In eth.")]
Bps = Annotated[int, msgspec.Meta(description="In hundredths of a percent.")]


class FunderAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Who first sent the wallet eth in a plain transfer."""

    address: str
    wallets_funded: Annotated[
        int, msgspec.Meta(description="How many wallets it first sent eth to; counted up to 501.")
    ]
    exchange_like: Annotated[
        bool, msgspec.Meta(description="It first sent eth to over 500 wallets, as exchanges and bridges do.")
    ]


class LaunchRow(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet launched, and what became of it."""

    token: TokenNamed
    launched_at: datetime
    phase: Annotated[
        Phase,
        msgspec.Meta(
            description="curve: on its curve; between: the curve is over and no pool there yet; graduated: "
            "it became a pool; rescued: taken back by the launchpad; pool: launched straight into a pool."
        ),
    ]
    fill_bps: Annotated[
        int | None,
        msgspec.Meta(
            description="On the curve: how full it is, in hundredths of a percent; null: not known."
        ),
    ]
    sold_bps: Annotated[
        int | None,
        msgspec.Meta(
            description="How much of what the wallet itself bought of it was sold, in hundredths of a "
            "percent; null: it bought none."
        ),
    ]


class LaunchesAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Launches, and how they ended."""

    count: Annotated[int, msgspec.Meta(description="Launches with a curve; counted up to the newest 200.")]
    graduated: Annotated[int, msgspec.Meta(description="Those of them that became a pool.")]
    sold_own: Annotated[
        int, msgspec.Meta(description="Those of them of which it sold half or more of what it bought.")
    ]
    into_pools: Annotated[
        int, msgspec.Meta(description="Launches straight into a pool, which are in no other count.")
    ]
    rows: Annotated[tuple[LaunchRow, ...], msgspec.Meta(description="The newest, at most 10.")]


class ClosingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet had bought and sold out of."""

    token: TokenNamed
    at: datetime
    spent_eth: Eth
    got_eth: Eth
    profit_eth: Eth


class RecordAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The trading record. A round is closed when the wallet has sold out of a token and the worth of
    everything that it paid and got is known."""

    trades: int
    buys: int
    sells: int
    tokens: int
    closed: Annotated[int, msgspec.Meta(description="Rounds closed.")]
    won: Annotated[int, msgspec.Meta(description="Rounds closed with a profit.")]
    win_rate_bps: Annotated[
        int | None, msgspec.Meta(description="Won of closed, in hundredths of a percent; null: none closed.")
    ]
    profit_eth: Annotated[float, msgspec.Meta(description="Of closed rounds only, in eth.")]
    spent_eth: Annotated[float, msgspec.Meta(description="Paid in all buys whose worth is known, in eth.")]
    got_eth: Annotated[
        float,
        msgspec.Meta(description="Got in sells of what it had bought, where the worth is known, in eth."),
    ]
    unpriced: Annotated[int, msgspec.Meta(description="Trades whose worth in eth is not known.")]
    best: ClosingAnswer | None
    worst: ClosingAnswer | None
    partial: Annotated[
        bool,
        msgspec.Meta(description="There is more than is counted: the newest 4,000 tokens and rounds are."),
    ]


class RecentAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """The last 30 days in short."""

    tokens: Annotated[int, msgspec.Meta(description="Tokens whose newest trade was then.")]
    closed: int
    won: int
    win_rate_bps: int | None
    profit_eth: Annotated[float, msgspec.Meta(description="Of rounds closed then, in eth.")]
    partial: Annotated[bool, msgspec.Meta(description="There is more than is counted.")]


class HoldingAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A token that the wallet bought and has not sold, by the index, and what it really holds of it."""

    token: TokenNamed
    amount: Annotated[
        str | None,
        msgspec.Meta(description="What it holds by the token itself, whole tokens; null: could not be read."),
    ]
    amount_raw: Annotated[str | None, msgspec.Meta(description="The same in base units.")]
    bought_raw: Annotated[
        str, msgspec.Meta(description="What is left of what it bought, by its trades, in base units.")
    ]
    supply_bps: Annotated[
        int | None,
        msgspec.Meta(description="What it holds of all there are, in hundredths of a percent."),
    ]
    entry_eth: Annotated[
        float | None,
        msgspec.Meta(
            description="What a whole token cost on average over all its buys, in eth; null: unknown."
        ),
    ]
    entry_usd: Annotated[
        float | None,
        msgspec.Meta(description="What a whole token cost on average over all its buys, in dollars."),
    ]
    worth_eth: Annotated[
        float | None,
        msgspec.Meta(
            description="What it holds at the price of the token's last trade, in eth; no proof of a sell."
        ),
    ]
    priced_at: Annotated[datetime | None, msgspec.Meta(description="When that last trade was.")]
    last_traded_at: Annotated[datetime, msgspec.Meta(description="When the wallet last traded it.")]


class HoldingsAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What the wallet holds. A wallet may hold what it never traded: that is not here."""

    at_block: Annotated[
        int | None, msgspec.Meta(description="The block balances were read at; null: they could not be.")
    ]
    eth: Annotated[float | None, msgspec.Meta(description="Eth; null: could not be read.")]
    weth: Annotated[float | None, msgspec.Meta(description="Wrapped eth; null: could not be read.")]
    usdg: Annotated[float | None, msgspec.Meta(description="Usdg, in dollars; null: could not be read.")]
    count: Annotated[
        int, msgspec.Meta(description="Tokens that it bought and has not sold out of, by its trades.")
    ]
    rows: Annotated[
        tuple[HoldingAnswer, ...], msgspec.Meta(description="Those that cost it most, at most 20.")
    ]


class WalletHistory(IndexAnswer, frozen=True, rename="camel"):
    """Where a wallet comes from, what it launched, how it traded, what it holds."""

    address: str
    contract: Annotated[
        bool | None, msgspec.Meta(description="It is a contract and no wallet; null: could not be read.")
    ]
    origin_status: Annotated[
        OriginStatus,
        msgspec.Meta(
            description="known: age and funder are known for sure; searching: older blocks are being looked "
            "through, ask again; unknown: could not be found out, or the wallet was never met."
        ),
    ]
    first_seen: datetime | None
    age_days: int | None
    funder: FunderAnswer | None
    launches: LaunchesAnswer
    record: RecordAnswer
    last30_days: RecentAnswer
    holdings: HoldingsAnswer
