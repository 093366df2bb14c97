"""Works out what a word is: a symbol, an address, a transaction's hash, a pool's id."""

import re
from dataclasses import dataclass
from typing import Any

import asyncpg

from roundtrip.chain.code import DELEGATED
from roundtrip.chain.rpc import Meter, RpcCall, hex_bytes
from roundtrip.domain import names
from roundtrip.domain.account import Market
from roundtrip.domain.errors import CallerFault, ServiceFull
from roundtrip.domain.events import Pool
from roundtrip.domain.evidence import VenueKind
from roundtrip.domain.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.store import addresses, chain, deployers, look_up, origins, tokens
from roundtrip.store.deployers import Record
from roundtrip.store.look_up import LaunchFound
from roundtrip.store.origins import Origin
from roundtrip.store.tokens import Label
from roundtrip.venues.base import Contracts, quote_name

from .context import Answered, Context
from .explain import explain
from .explain_answer import ExplainParams
from .explain_text import Words
from .index_answer import called, named, reading, when
from .look_up_answer import (
    MOST_CHARACTERS,
    BearersAnswer,
    Found,
    FoundKind,
    LaunchAnswer,
    LaunchStands,
    LookUpParams,
    PoolAnswer,
    TransactionAnswer,
    WalletAnswer,
)
from .whereabouts import Question, Whereabouts, pool_question, token_question

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_WORD = re.compile(r"0x[0-9a-fA-F]{64}")
_HEX = re.compile(r"0x[0-9a-fA-F]*")
_BY_ADDRESS = "Anybody may take any symbol: identify a token by its address."
_LOOKED_FOR = (
    "Symbols, addresses, transactions' hashes and pools' ids were looked for; wallets have no names yet."
)
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
_PARTS = ("token", "launch", "bearers", "pool", "wallet", "transaction")
"""Of an answer: those are there that say something."""
_PLACES: dict[VenueKind, str] = {
    "launchpad_curve": "the launchpad curve",
    "launchpad_pool": "the launchpad pool",
    "amm_v3": "a v3 pool",
    "amm_v4": "a v4 pool",
}


async def find(ctx: Context, params: LookUpParams) -> Answered[Found]:
    """What the query is; of kind ``nothing`` where it is nothing that is known. Raises CallerFault
    (bad_input) where nothing visible was asked, NodeFault and ServiceFull where it could not be found out."""
    query = names.clean(params.query, MOST_CHARACTERS)
    if not query:
        raise CallerFault("bad_input", "The query has nothing in it that can be seen.")
    meter = Meter()
    if _ADDRESS.fullmatch(query):
        found = await _address(ctx, query, Address(query.lower()), meter)
    elif _WORD.fullmatch(query):
        found = await _word(ctx, query, query.lower(), meter)
    else:
        found = await _symbol(ctx, query)
    return Answered(found, ttl_ms=ctx.policy.answer_ttl_ms, meter=meter)


def shared_as(params: LookUpParams) -> str:
    """What makes two queries the same. Capitals stay: the answer repeats the query."""
    return names.clean(params.query, MOST_CHARACTERS)


# --- a symbol --------------------------------------------------------------------------------------


async def _symbol(ctx: Context, query: str) -> Found:
    async with reading(ctx) as (connection, stands):
        at = stands.block
        key = names.symbol_key(query)
        borne = await look_up.bearers(connection, key or "")
        if not borne.launched and key is not None and key.startswith("$"):
            key = key[1:]
            borne = await look_up.bearers(connection, key)
        if borne.newest_id is None or borne.oldest_id is None:
            strangers = await tokens.strangers_with(connection, key or "") if borne.strangers else []
            return _no_symbol(ctx, query, at, key or "", borne.strangers, strangers)
        ids = {borne.newest_id, borne.oldest_id}
        labels = await tokens.labels(connection, ids)
        launches = await look_up.launches_of(connection, ids)
        newest, oldest = launches[borne.newest_id], launches[borne.oldest_id]
        record = (await deployers.records(connection, [newest.deployer_id]))[newest.deployer_id]
    label, first = labels[borne.newest_id], labels[borne.oldest_id]
    others = borne.launched - 1
    said = [f"{called(label)} is the token from the launchpad with that symbol that was launched last."]
    if others:
        bear = "other from the launchpad bears" if others == 1 else "others from the launchpad bear"
        said.append(f"{others:,} {bear} it; the oldest is {first.address}, launched {_day(oldest.at_s)}.")
    if borne.strangers:
        bear = "token from elsewhere bears" if borne.strangers == 1 else "tokens from elsewhere bear"
        said.append(f"{borne.strangers:,} {bear} it, too.")
    said += [_launch_text(newest, record), _money_text(ctx, key or ""), _BY_ADDRESS]
    bearers = BearersAnswer(others, borne.strangers, named(first), when(oldest.at_s))
    return _answer(
        ctx,
        at,
        query,
        "token",
        said,
        label.address,
        token=named(label),
        launch=_launch(ctx, newest, record),
        bearers=bearers,
    )


def _no_symbol(
    ctx: Context, query: str, at: BlockRef, key: str, count: int, strangers: list[Address]
) -> Found:
    shown = f'"{names.reason(query)}"'
    if _HEX.fullmatch(query):
        digits = len(query) - 2
        said = [f"{shown} has {digits} hex digits: an address has 40, a hash or a pool's id 64."]
        return _answer(ctx, at, query, "nothing", said)
    said = [f"No token from the launchpad bears the symbol {shown}."]
    if count:
        them = ", ".join(strangers)
        said.append(f"{count:,} from elsewhere {'bears' if count == 1 else 'bear'} it, such as {them}.")
    said.append(_money_text(ctx, key))
    said += [_LOOKED_FOR, _BY_ADDRESS]
    return _answer(ctx, at, query, "nothing", said)


def _money_text(ctx: Context, key: str) -> str:
    """Whoever asks for the money by its name is not to take a stranger's token for it."""
    if key == "eth":
        return "Eth itself is the chain's own money and has no address."
    own = {"weth": ctx.contracts.weth, "usdg": ctx.contracts.usdg}
    return f"The {key} that is money here is {own[key]}." if key in own else ""


# --- thirty-two bytes ------------------------------------------------------------------------------


async def _word(ctx: Context, query: str, word: str, meter: Meter) -> Found:
    """A pool of the index; a transaction; a pool that the chain knows."""
    try:
        async with reading(ctx) as (connection, stands):
            pools = await chain.pools_at(connection, [word], chain.Ids())
            if word in pools:
                label = await _label(connection, pools[word].token)
                return _pool(ctx, stands.block, query, pools[word], label)
    except ServiceFull as full:
        if full.code != "busy":
            raise
    try:
        answered = await explain(ctx, ExplainParams(word))
    except CallerFault as fault:
        if fault.code != "not_found":
            raise
    else:
        one = answered.answer
        short = TransactionAnswer(one.hash, one.status, one.kind, one.text)
        text = f"It is a transaction. {one.text}"
        at = BlockRef(one.block, "", round(one.block_time.timestamp()))
        return _answer(ctx, at, query, "transaction", [text], transaction=short)
    head = ctx.heads.current().block
    known, limit = Whereabouts(), ctx.policy.read_gas_limit
    await _put(ctx, [pool_question(word, "v4", known, ctx.contracts, head, limit)], meter)
    market = known.markets.get(word)
    if market is None:
        said = ["No transaction of that hash is known, and no v4 pool of that id."]
        return _answer(ctx, head, query, "nothing", said)
    await _put(ctx, [token_question(market.token, known, head, limit)], meter)
    return _pool(ctx, head, query, market, known.label(market.token))


async def _put(ctx: Context, asked: list[Question], meter: Meter) -> None:
    answers = await ctx.node.batch([call for one in asked for call in one.calls], meter)
    for one in asked:
        one.read(answers[: len(one.calls)])
        answers = answers[len(one.calls) :]


def _pool(ctx: Context, at: BlockRef, query: str, pool: Pool | Market, label: Label) -> Found:
    opened = when(pool.spot.at_s) if isinstance(pool, Pool) else None
    quote = _quote(ctx.contracts, pool.quote)
    answer = PoolAnswer(pool.kind, pool.at, named(label), quote, opened)
    since = f", opened {_day(pool.spot.at_s)}" if isinstance(pool, Pool) else ""
    said = [f"It is {_PLACES[pool.kind]} of {_asset(ctx, label)}, against {quote}{since}."]
    address = pool.at if len(pool.at) == len(ZERO_ADDRESS) else None
    return _answer(ctx, at, query, "pool", said, address, token=named(label), pool=answer)


# --- an address ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """What the index has of an address."""

    at: BlockRef
    label: Label | None
    launch: LaunchFound | None
    record: Record
    pool: Pool | None
    pool_label: Label | None
    origin: Origin | None
    has_traded: bool
    own: Record


async def _address(ctx: Context, query: str, address: Address, meter: Meter) -> Found:
    known = await _known(ctx, address)
    head, limit = ctx.heads.current().block, ctx.policy.read_gas_limit
    asked = Whereabouts()
    views = token_question(address, asked, head, limit)
    code_call = RpcCall("eth_getCode", [address, {"blockHash": head.hash}])
    code_answer, *answers = await ctx.node.batch([code_call, *views.calls], meter)
    code = hex_bytes(code_answer)
    views.read(answers)
    label = known.label if known.label is not None and known.label.decimals is not None else None
    label = label or asked.label(address)
    if known.pool is not None and known.pool_label is not None:
        return _pool(ctx, known.at, query, known.pool, known.pool_label)
    if known.launch is not None:
        return _launched(ctx, query, known, known.launch, label)
    if not code or code.startswith(DELEGATED):
        return _wallet(ctx, query, address, known, bool(code))
    machinery = Words(ctx.contracts, Whereabouts()).who(address)
    if address in (ctx.contracts.weth, ctx.contracts.usdg):
        said = [f"It is {_quote(ctx.contracts, address)}, money on this chain."]
        return _answer(ctx, known.at, query, "token", said, address, token=named(label))
    if machinery != address:
        said = [f"It is {machinery}, one of the contracts that this service trusts."]
        return _answer(ctx, known.at, query, "contract", said, address)
    if label.decimals is not None and label.supply_raw is not None:
        said = [f"{_asset(ctx, label)} is a token that was not launched on the launchpad.", _BY_ADDRESS]
        return _answer(ctx, known.at, query, "token", said, address, token=named(label))
    said = [f"{address} is a contract that we do not know, and no token."]
    return _answer(ctx, known.at, query, "contract", said, address)


async def _known(ctx: Context, address: Address) -> _Known:
    async with reading(ctx) as (connection, stands):
        own_id = await addresses.id_of(connection, address)
        ids = [] if own_id is None else [own_id]
        labels = await tokens.labels(connection, ids)
        launch = (await look_up.launches_of(connection, ids)).get(own_id or 0)
        pool = (await chain.pools_at(connection, [address], chain.Ids())).get(address)
        pool_label = None if pool is None else await _label(connection, pool.token)
        origin = await origins.origin(connection, address)
        has_traded = own_id is not None and await look_up.has_traded(connection, own_id)
        deploying = [*ids, *([] if launch is None else [launch.deployer_id])]
        records = await deployers.records(connection, deploying)
    return _Known(
        at=stands.block,
        label=labels.get(own_id or 0),
        launch=launch,
        record=deployers.NOTHING if launch is None else records[launch.deployer_id],
        pool=pool,
        pool_label=pool_label,
        origin=origin,
        has_traded=has_traded,
        own=deployers.NOTHING if own_id is None else records[own_id],
    )


async def _label(connection: asyncpg.Connection, token: Address) -> Label:
    token_id = await addresses.id_of(connection, token)
    known = {} if token_id is None else await tokens.labels(connection, [token_id])
    return known.get(token_id or 0) or Label(token, None, None, None, None)


def _launched(ctx: Context, query: str, known: _Known, launch: LaunchFound, label: Label) -> Found:
    said = [f"{_asset(ctx, label)} is a token from the launchpad.", _launch_text(launch, known.record)]
    return _answer(
        ctx,
        known.at,
        query,
        "token",
        said,
        label.address,
        token=named(label),
        launch=_launch(ctx, launch, known.record),
    )


def _wallet(ctx: Context, query: str, address: Address, known: _Known, delegated: bool) -> Found:
    found, launches = known.origin, known.own.launches
    said = [f"{address} is a wallet: it has no code of its own."]
    if delegated:
        said = [f"{address} is a wallet that lets a contract act for it."]
    if found is not None:
        said.append(f"It was first seen {_day(found.first_s)}.")
    if found is not None and found.funder is not None:
        said.append(f"{found.funder} first sent it eth.")
    said.append("It has traded here." if known.has_traded else "It has not traded, as far as is known.")
    if launches:
        said.append(
            f"It launched {_count(launches, 'token')} onto curves; {known.own.graduated:,} graduated."
        )
    first, funder = (None, None) if found is None else (when(found.first_s), found.funder)
    wallet = WalletAnswer(first, funder, known.has_traded, launches)
    return _answer(ctx, known.at, query, "wallet", said, address, wallet=wallet)


# --- the answer ------------------------------------------------------------------------------------


def _launch(ctx: Context, found: LaunchFound, record: Record) -> LaunchAnswer:
    return LaunchAnswer(
        deployer=found.deployer,
        launched_at=when(found.at_s),
        launched_block=found.block_number,
        stands=_stands(found),
        at=found.at,
        quote=_quote(ctx.contracts, found.quote),
        deployer_launches=record.launches,
        deployer_graduated=record.graduated,
    )


def _stands(found: LaunchFound) -> LaunchStands:
    return "pool" if found.generation == 1 else _STANDS[found.stands]


def _launch_text(found: LaunchFound, record: Record) -> str:
    text = f"{found.deployer} launched it {_day(found.at_s)}. {_STANDS_TEXT[_stands(found)]} ({found.at})."
    if _stands(found) in ("graduated", "graduating"):
        text = f"{found.deployer} launched it {_day(found.at_s)}. {_STANDS_TEXT[_stands(found)]}."
    if record.launches > 1:
        text += f" That deployer launched {_count(record.launches, 'token')}; {record.graduated:,} graduated."
    return text


def _count(number: int, what: str) -> str:
    more = "or more " if number >= deployers.MOST_LAUNCHES else ""
    return f"{number:,} {more}{what}{'' if number == 1 else 's'}"


def _day(at_s: int) -> str:
    return f"on {when(at_s):%Y-%m-%d} at {when(at_s):%H:%M} UTC"


def _quote(contracts: Contracts, quote: Address) -> str:
    return quote_name(quote, contracts)


def _asset(ctx: Context, label: Label) -> str:
    name = quote_name(label.address, ctx.contracts)
    return called(label) if name == label.address else name


def _answer(
    ctx: Context,
    at: BlockRef,
    query: str,
    kind: FoundKind,
    said: list[str],
    address: str | None = None,
    **more: Any,
) -> Found:
    text = " ".join(one for one in said if one)
    shown = {**dict.fromkeys(_PARTS), **more}
    return Found(text, ctx.chain_id, at.number, when(at.timestamp_s), query, kind, address, **shown)
