"""What is said of what a word is: of pools, launches and tokens."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.base.venue import TRAITS, VenueKind
from roundtrip.domain.transaction.account import Kind, KnownMarket
from roundtrip.services.lookup.explain import Status
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import IndexAnswer, TokenNamed, present_token, quote_token, when
from roundtrip.services.support.strangers_text import Sentence
from roundtrip.store.index import addresses, deployers, tokens
from roundtrip.store.index.deployers import DeployerLaunches
from roundtrip.store.index.tokens import Label
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets.look_up import LaunchFound
from roundtrip.venues.base import Contracts, quote_name

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


BY_ADDRESS = "Anybody may take any symbol: identify a token by its address."
_STANDS: dict[str, LaunchStands] = {
    "curve": "curve",
    "swept": "graduating",
    "pooled": "graduated",
    "rescued": "rescued",
}
_STANDS_TEXT: dict[LaunchStands, str] = {
    "curve": "It trades on its curve",
    "graduating": "Its curve is sold out and emptied, and its pool is not open yet",
    "graduated": "It has graduated to its pool",
    "rescued": "The launchpad's owner took what lay in its curve, where it trades no more",
    "pool": "It was launched straight into a v3 pool",
}
_ENDED: dict[LaunchStands, str] = {
    "graduating": "Nothing trades there any more: it is sold out, and the pool is not open yet.",
    "graduated": "Nothing trades there any more: its token has graduated to a pool.",
    "rescued": "Nothing trades there any more: the launchpad's owner took what lay in it.",
}
"""Of a curve that is over."""
_PARTS = ("token", "launch", "bearers", "pool", "wallet", "transaction")
"""Of an answer: those are there that say something."""


def pool_found(
    ctx: Context,
    at: BlockRef,
    query: str,
    pool: PoolPlace | KnownMarket,
    label: Label,
    launch: LaunchFound | None = None,
    record: DeployerLaunches = deployers.NOTHING,
) -> LookUpAnswer:
    """A place where a token trades, or traded: a curve's end is its launch's."""
    opened = when(pool.spot.at_s) if isinstance(pool, PoolPlace) else None
    quote = quote_of(ctx.contracts, pool.quote)
    answer = PoolAnswer(pool.kind, pool.at, present_token(label), quote, opened)
    since = f", opened {on_day(pool.spot.at_s)}" if isinstance(pool, PoolPlace) else ""
    said = [f"It is {TRAITS[pool.kind].described} of {asset_text(ctx, label)}, against {quote}{since}."]
    own = launch if launch is not None and launch.at == pool.at else None
    if own is not None:
        said.append(_ENDED.get(stands_as(own), ""))
    part = None if own is None else launch_part(ctx, own, record)
    address = pool.at if len(pool.at) == len(ZERO_ADDRESS) else None
    return look_up_answer(
        ctx, at, query, "pool", said, address, token=present_token(label), pool=answer, launch=part
    )


def launch_part(ctx: Context, found: LaunchFound, record: DeployerLaunches) -> LaunchAnswer:
    return LaunchAnswer(
        deployer=found.deployer,
        launched_at=when(found.at_s),
        launched_block=found.block_number,
        stands=stands_as(found),
        at=found.at,
        quote=quote_of(ctx.contracts, found.quote),
        deployer_launches=record.launches,
        deployer_graduated=record.graduated,
    )


def stands_as(found: LaunchFound) -> LaunchStands:
    return "pool" if found.generation == 1 else _STANDS[found.stands]


def launch_text(found: LaunchFound, record: DeployerLaunches) -> str:
    stands = stands_as(found)
    at = "" if stands in ("graduated", "graduating") else f" ({found.at})"
    text = f"{found.deployer} launched it {on_day(found.at_s)}. {_STANDS_TEXT[stands]}{at}."
    if record.launches > 1:
        launches = count_text(record.launches, "token")
        text += f" That deployer launched {launches}; {record.graduated:,} graduated."
    return text


def count_text(number: int, what: str) -> str:
    more = "or more " if number >= deployers.MOST_LAUNCHES else ""
    return f"{number:,} {more}{what}{'' if number == 1 else 's'}"


def on_day(at_s: int) -> str:
    return f"on {when(at_s):%Y-%m-%d} at {when(at_s):%H:%M} UTC"


def quote_of(contracts: Contracts, quote: Address) -> str:
    return quote_name(quote, contracts)


def asset_text(ctx: Context, label: Label) -> str:
    name = quote_name(label.address, ctx.contracts)
    return quote_token(label) if name == label.address else name


def look_up_answer(
    ctx: Context,
    at: BlockRef,
    query: str,
    kind: FoundKind,
    said: list[str],
    address: str | None = None,
    **more: Any,
) -> LookUpAnswer:
    text = " ".join(one for one in said if one)
    shown = {**dict.fromkeys(_PARTS), **more}
    return LookUpAnswer(text, ctx.chain_id, at.number, when(at.timestamp_s), query, kind, address, **shown)


async def label_of(connection: Connection, token: Address) -> Label:
    token_id = await addresses.id_of(connection, token)
    known = {} if token_id is None else await tokens.labels(connection, [token_id])
    return known.get(token_id or 0) or Label(token, None, None, None, None)
