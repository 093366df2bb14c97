"""The answer to a lookup: its schema, and its text on pools, launches and tokens. Also suggests, while
somebody types, tokens whose symbol, name or address begins so, each with its newest verdict."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from roundtrip.domain.base import names
from roundtrip.domain.base.errors import ParamFault
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.pasted import MAX_CHARACTERS as MAX_PASTED
from roundtrip.domain.base.pasted import find_short_query, list_symbols
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.base.venue import TRAITS, VenueKind
from roundtrip.domain.transaction.account import Kind, KnownMarket
from roundtrip.services.lookup.explain import Status
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.alert_rows import RemovalRow
from roundtrip.services.support.answer_fields import Graduated, Sentence, says
from roundtrip.services.support.index_reader import (
    IndexAnswer,
    TokenNamed,
    present_token,
    quote_token,
    reading,
    when,
)
from roundtrip.services.support.shown_verdict import SHARED_MS, TokenState, present_stored
from roundtrip.store.boards.moving import read_shown_checks
from roundtrip.store.index import deployers, tokens
from roundtrip.store.index.deployers import DeployerLaunches
from roundtrip.store.index.tokens import Label, labels_of
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets.look_up import LaunchFound, find_by_address, find_by_text
from roundtrip.venues.base import quote_name

FoundKind = Literal["token", "wallet", "contract", "pool", "transaction", "nothing"]
LaunchStands = Literal["curve", "graduating", "graduated", "rescued", "pool"]
MAX_CHARACTERS = 80
MAX_REMOVALS = 5


class LookUpParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for."""

    query: Annotated[
        str,
        msgspec.Meta(
            description="A symbol, a wallet's name, an address, a transaction's hash or a v4 pool's id.",
            min_length=1,
            max_length=MAX_CHARACTERS,
        ),
    ]


def shorten_query(text: str) -> str:
    """A pasted text as a query: cleaned; of a longer one the address or hash in it. Raises ParamFault
    (bad_input): it has several, or more than ``MAX_PASTED`` characters."""
    if len(text) > MAX_PASTED:
        # Cut, a hash could be read as an address.
        raise ParamFault(
            "bad_input",
            f"The text has more than {MAX_PASTED:,} characters. Look up the address or the hash in it alone.",
        )
    return find_short_query(names.clean(text, MAX_PASTED), MAX_CHARACTERS)


def read_pasted_query(raw: Mapping[str, object], _chain_id: int | None) -> Mapping[str, object]:
    """The parameters with a short query in place of a long text that has one address or hash in it. Raises
    ParamFault (bad_input)."""
    query = raw.get("query")
    if not isinstance(query, str) or len(query) <= MAX_CHARACTERS:
        return raw
    return {**raw, "query": shorten_query(query)}


class LaunchAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """How a token came from the launchpad, and how its launch stands."""

    deployer: Annotated[str, says("The wallet that launched it.")]
    launched_at: Annotated[datetime, says("When it was launched.")]
    launched_block: Annotated[int, says("Block of the launch.")]
    stands: Annotated[
        LaunchStands,
        says(
            "curve: trades on its curve. graduating: the curve is sold out, the pool not "
            "open. graduated: has its pool. rescued: the launchpad's owner took what lay "
            "in the curve. pool: launched into a pool."
        ),
    ]
    at: Annotated[str, says("Address of its curve, or of the v3 pool that it was launched into.")]
    quote: Annotated[str, says("What it is paid in: eth, weth, usdg or a token's address.")]
    deployer_launches: Annotated[
        int, says("Launches of the deployer onto curves; counted up to the newest 200.")
    ]
    deployer_graduated: Graduated


class BearersAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Other tokens with the symbol that was looked for."""

    others: Annotated[int, says("Other launchpad tokens with that symbol.")]
    strangers: Annotated[int, says("Known tokens with it that were not launched on the launchpad.")]
    oldest: Annotated[TokenNamed, says("The oldest launchpad token with it.")]
    oldest_launched_at: Annotated[datetime, says("When that one was launched.")]


class PoolAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """Where a token trades."""

    kind: Annotated[VenueKind, says("Kind of venue.")]
    at: Annotated[str, says("Address of a curve or v3 pool, id of a v4 pool.")]
    token: Annotated[TokenNamed, says("The token that trades there.")]
    quote: Annotated[str, says("What it trades against: eth, weth, usdg or a token's address.")]
    opened_at: Annotated[datetime | None, says("When it opened. null: the index has not seen it.")]


class WalletAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A wallet: an address without code."""

    first_seen: Annotated[datetime | None, says("When the wallet was first seen. null: not known.")]
    funder: Annotated[str | None, says("The wallet that first sent it eth. null: not known.")]
    has_traded: Annotated[bool, says("Whether it ever traded a token that the index knows.")]
    launches: Annotated[int, says("Tokens that it launched onto curves; counted up to 200.")]


class TransactionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """A transaction in short; explain_transaction has the rest."""

    hash: Annotated[str, says("The transaction's hash.")]
    status: Annotated[Status, says("success, failed, or pending: in no block yet.")]
    kind: Annotated[Kind, says("The most important thing that it did.")]
    text: Sentence


class LookUpAnswer(IndexAnswer, frozen=True, rename="camel"):
    """What the query is. The parts that do not apply are null."""

    query: Annotated[str, says("The query, without invisible characters.")]
    kind: Annotated[FoundKind, says("What the query is; nothing: not known here.")]
    address: Annotated[str | None, says("Its address. null: a v4 pool, a transaction or nothing.")]
    token: Annotated[TokenNamed | None, says("The token. null: not a token.")]
    launch: Annotated[LaunchAnswer | None, says("The token's launch. null: not launched on the launchpad.")]
    bearers: Annotated[
        BearersAnswer | None, says("Other tokens with the symbol that was looked for. null: not a symbol.")
    ]
    pool: Annotated[PoolAnswer | None, says("The pool or curve. null: not one.")]
    wallet: Annotated[WalletAnswer | None, says("The wallet. null: not a wallet.")]
    transaction: Annotated[TransactionAnswer | None, says("The transaction. null: not one.")]
    removals: Annotated[
        list[RemovalRow] | None,
        says(
            f"The token's newest {MAX_REMOVALS} large removals of liquidity within seven days, "
            "the newest first. null: not a token's address."
        ),
    ]
    look_alike_of: Annotated[
        str | None,
        says(
            "Address of the listed, or older and larger, token whose symbol or name the token's "
            "equals or looks like. null: not a token, or none was found, which proves nothing."
        ),
    ]


BY_ADDRESS = "Any token can use any symbol: identify a token by its address."
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
    "rescued": "The launchpad's owner withdrew what was in its curve, where it no longer trades",
    "pool": "It was launched straight into a v3 pool",
}
_ENDED: dict[LaunchStands, str] = {
    "graduating": "This curve has ended: it is sold out, and the pool is not open yet.",
    "graduated": "This curve has ended: its token has graduated to a pool.",
    "rescued": "This curve has ended: the launchpad's owner withdrew what was in it.",
}
"""The sentence about a curve that has ended."""
_PARTS = ("token", "launch", "bearers", "pool", "wallet", "transaction", "removals", "look_alike_of")
"""Optional parts of an answer."""


def answer_pool(
    ctx: Context,
    block: BlockRef,
    query: str,
    pool: PoolPlace | KnownMarket,
    label: Label,
    launch: LaunchFound | None = None,
    record: DeployerLaunches = deployers.NOTHING,
) -> LookUpAnswer:
    """The answer for a pool or curve where a token trades, or traded. The launch says whether a curve
    ended."""
    opened = when(pool.spot.at_s) if isinstance(pool, PoolPlace) else None
    quote = quote_name(pool.quote, ctx.contracts)
    answer = PoolAnswer(pool.kind, pool.at, present_token(label), quote, opened)
    since = f", opened {format_time(pool.spot.at_s)}" if isinstance(pool, PoolPlace) else ""
    sentences = [
        f"It is {TRAITS[pool.kind].described} of {describe_asset(ctx, label)}, paired with {quote}{since}."
    ]
    own_launch = launch if launch is not None and launch.at == pool.at else None
    if own_launch is not None:
        sentences.append(_ENDED.get(find_launch_state(own_launch), ""))
    part = None if own_launch is None else present_launch(ctx, own_launch, record)
    address = pool.at if len(pool.at) == len(ZERO_ADDRESS) else None
    return build_answer(
        ctx, block, query, "pool", sentences, address, token=present_token(label), pool=answer, launch=part
    )


def present_launch(ctx: Context, launch: LaunchFound, record: DeployerLaunches) -> LaunchAnswer:
    """The launch as the answer has it."""
    return LaunchAnswer(
        deployer=launch.deployer,
        launched_at=when(launch.at_s),
        launched_block=launch.block_number,
        stands=find_launch_state(launch),
        at=launch.at,
        quote=quote_name(launch.quote, ctx.contracts),
        deployer_launches=record.launches,
        deployer_graduated=record.graduated,
    )


def find_launch_state(launch: LaunchFound) -> LaunchStands:
    """The state of the launch."""
    return "pool" if launch.generation == 1 else _STANDS[launch.stands]


def describe_launch(launch: LaunchFound, record: DeployerLaunches) -> str:
    """Who launched it and when, and the state of the launch, as sentences."""
    state = find_launch_state(launch)
    at = "" if state in ("graduated", "graduating") else f" ({launch.at})"
    text = f"{launch.deployer} launched it {format_time(launch.at_s)}. {_STANDS_TEXT[state]}{at}."
    if record.launches > 1:
        text += f" That deployer launched {count_launches(record.launches)}; {record.graduated:,} graduated."
    return text


def count_launches(launches: int) -> str:
    """``3 tokens``; ``at least`` where the count stops at its limit."""
    at_least = "at least " if launches >= deployers.MAX_LAUNCHES else ""
    return f"{at_least}{format_count(launches, 'token')}"


def format_time(at_s: int) -> str:
    """``on 2026-01-02 at 03:04 UTC``."""
    return f"on {when(at_s):%Y-%m-%d} at {when(at_s):%H:%M} UTC"


def describe_asset(ctx: Context, label: Label) -> str:
    """eth, weth and usdg by name, a token by its quoted symbol."""
    name = quote_name(label.address, ctx.contracts)
    return quote_token(label) if name == label.address else name


def build_answer(
    ctx: Context,
    block: BlockRef,
    query: str,
    kind: FoundKind,
    sentences: list[str],
    address: str | None = None,
    **parts: Any,
) -> LookUpAnswer:
    """The answer to a look-up at a block."""
    text = " ".join(sentence for sentence in sentences if sentence)
    shown = {**dict.fromkeys(_PARTS), **parts}
    return LookUpAnswer(
        text, ctx.chain_id, block.number, when(block.timestamp_s), query, kind, address, **shown
    )


async def read_label(connection: Connection, token: Address) -> Label:
    """The indexed label of a token; an empty one where it is not indexed."""
    token_id = await tokens.id_of(connection, token)
    labels = {} if token_id is None else await tokens.labels(connection, [token_id])
    return labels.get(token_id or 0) or Label(token, None, None, None, None)


MAX_SHOWN = 8
_DIGITS = re.compile(r"0x(?P<digits>[0-9a-fA-F]{3,40})")
_NAME_LENGTH = 64


class SuggestParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody has typed so far."""

    query: str


class TokenSuggestion(TokenState, frozen=True, rename="camel"):
    """``launched_at`` None: no launchpad launched it."""

    launched_at: datetime | None


class TokenSuggestions(msgspec.Struct, frozen=True, rename="camel"):
    """Those with the very symbol first, the oldest before its copies; then the newest launches."""

    rows: list[TokenSuggestion]


async def suggest(ctx: Context, params: SuggestParams) -> UseCaseAnswer[TokenSuggestions]:
    """The suggestions; none for an empty query. Raises ServiceFull."""
    query = shared_as(params)
    if not query:
        return UseCaseAnswer(TokenSuggestions([]), ttl_ms=SHARED_MS)
    query = list_symbols(query)[-1]
    address = _DIGITS.fullmatch(query)
    async with reading(ctx) as (connection, _):
        if address is not None:
            found = await find_by_address(connection, address["digits"], MAX_SHOWN)
        else:
            found = await find_by_text(connection, query.casefold(), query[:_NAME_LENGTH], MAX_SHOWN)
        tokens = [token for token, _ in found]
        checks = await read_shown_checks(connection, tokens)
        labels = await labels_of(connection, tokens)
    now_s = ctx.now_s()
    rows = [
        TokenSuggestion(
            present_token(labels[token]),
            present_stored(checks[token], now_s),
            None if launched_s is None else when(launched_s),
        )
        for token, launched_s in found
    ]
    return UseCaseAnswer(TokenSuggestions(rows), ttl_ms=SHARED_MS)


def shared_as(params: SuggestParams) -> str:
    """The query as it is looked for."""
    return names.clean(params.query, MAX_CHARACTERS)
