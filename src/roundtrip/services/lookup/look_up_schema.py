"""What may be asked after by a word, and what is answered."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.transaction.account import Kind
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed
from roundtrip.services.support.strangers_text import Sentence

from .explain_schema import Status

FoundKind = Literal["token", "wallet", "contract", "pool", "transaction", "nothing"]
LaunchStands = Literal["curve", "graduating", "graduated", "rescued", "pool"]
MOST_CHARACTERS = 80


class LookUpParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    query: Annotated[
        str,
        msgspec.Meta(
            description="A symbol, a wallet's name, an address, a transaction's hash or a v4 pool's id.",
            min_length=1,
            max_length=MOST_CHARACTERS,
        ),
    ]


class LaunchAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """How a token came from the launchpad, and how its launch stands."""

    deployer: str
    launched_at: datetime
    launched_block: int
    stands: Annotated[
        LaunchStands,
        msgspec.Meta(
            description="curve: it trades on its curve. graduating: the curve is emptied, the pool not "
            "open. graduated: it has its pool. rescued: the launchpad's owner took what lay in the curve. "
            "pool: it was launched straight into a v3 pool."
        ),
    ]
    at: Annotated[str, msgspec.Meta(description="Its curve, or the v3 pool it was launched into.")]
    quote: Annotated[str, msgspec.Meta(description="eth, weth, usdg, or the address of what it is paid in.")]
    deployer_launches: Annotated[
        int, msgspec.Meta(description="All launches of that deployer onto curves, of the newest 200.")
    ]
    deployer_graduated: Annotated[int, msgspec.Meta(description="How many of those have a pool.")]


class BearersAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Who else bears the symbol that was looked for."""

    others: Annotated[int, msgspec.Meta(description="Other tokens from the launchpad with that symbol.")]
    strangers: Annotated[int, msgspec.Meta(description="Known tokens with it that were not launched there.")]
    oldest: TokenNamed
    oldest_launched_at: datetime


class PoolAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Where a token trades."""

    kind: VenueKind
    at: Annotated[str, msgspec.Meta(description="A curve's or v3 pool's address, a v4 pool's id.")]
    token: TokenNamed
    quote: Annotated[str, msgspec.Meta(description="eth, weth, usdg, or the address of the other side.")]
    opened_at: Annotated[datetime | None, msgspec.Meta(description="Null where the index has not seen it.")]


class WalletAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """What is known of whoever has no code of its own."""

    first_seen: Annotated[datetime | None, msgspec.Meta(description="Null where that is not known.")]
    funder: Annotated[str | None, msgspec.Meta(description="Who first sent it eth; null: not known.")]
    has_traded: bool
    launches: Annotated[int, msgspec.Meta(description="Tokens it launched onto curves, 200 at most.")]


class TransactionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A transaction in short; explain_transaction has the rest."""

    hash: str
    status: Status
    kind: Kind
    text: Sentence


class LookUpAnswer(IndexAnswer, frozen=True, rename="camel"):
    """What the query is. Of token, launch, bearers, pool, wallet and transaction those are there that say
    something of it."""

    query: Annotated[str, msgspec.Meta(description="What was looked for, cleaned of what is invisible.")]
    kind: FoundKind
    address: Annotated[str | None, msgspec.Meta(description="Of whatever has one: a v4 pool has none.")]
    token: TokenNamed | None
    launch: LaunchAnswer | None
    bearers: BearersAnswer | None
    pool: PoolAnswer | None
    wallet: WalletAnswer | None
    transaction: TransactionAnswer | None
