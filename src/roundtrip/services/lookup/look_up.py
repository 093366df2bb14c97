"""Finds out what a query is: a symbol, a wallet's name, an address, a transaction's hash or a pool's id; and
what stands at an address."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from roundtrip.chain.holders.token_views import bytes_or_empty
from roundtrip.chain.rpc.client import Meter, RpcCall, hex_bytes
from roundtrip.chain.simulate.block_dependence import DELEGATED
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, ParamFault, ServiceFull
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.pasted import PastedWord, find_only_word, list_symbols
from roundtrip.domain.base.types import (
    BURN_ADDRESS,
    ZERO_ADDRESS,
    Address,
    BlockRef,
    is_precompile,
    parse_address,
)
from roundtrip.domain.community.marks import name_key
from roundtrip.domain.liquidity.unlocks import Removal
from roundtrip.domain.wallets.linked import FirstSeen
from roundtrip.services.lookup.entities import (
    KnownEntities,
    Question,
    build_pool_question,
    build_token_question,
)
from roundtrip.services.lookup.explain import ExplainParams, explain
from roundtrip.services.lookup.explain_text import StepsText
from roundtrip.services.lookup.look_up_answer import (
    BY_ADDRESS,
    MAX_CHARACTERS,
    MAX_REMOVALS,
    BearersAnswer,
    LookUpAnswer,
    LookUpParams,
    TransactionAnswer,
    WalletAnswer,
    answer_pool,
    build_answer,
    count_launches,
    describe_asset,
    describe_launch,
    format_time,
    present_launch,
    read_label,
)
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import wait_for_index
from roundtrip.services.support.alert_rows import describe_removal, present_removal
from roundtrip.services.support.answer_fields import scam_text
from roundtrip.services.support.index_reader import looking, present_token, quote_token, reading, when
from roundtrip.services.support.look_alikes import LookAlikeAnswer, find_look_alike
from roundtrip.store.community import public_names
from roundtrip.store.community.public_names import Bearer
from roundtrip.store.index import cursor, deployers, origins, tokens
from roundtrip.store.index.deployers import DeployerLaunches
from roundtrip.store.index.tokens import Label
from roundtrip.store.liquidity.positions import read_removals
from roundtrip.store.server.rows import Connection
from roundtrip.store.wallets import look_up
from roundtrip.store.wallets.look_up import Bearers, LaunchFound
from roundtrip.venues import abi, erc20
from roundtrip.venues.base import quote_name

_KEYLESS: dict[Address, str] = {
    ZERO_ADDRESS: "It is the zero address, which has no owner: what is sent there is lost.",
    BURN_ADDRESS: "It is a burn address, which has no key: what is sent there is burned.",
}
_REMOVALS_S = 7 * 86_400


@dataclass(frozen=True, slots=True)
class _AddressRecord:
    """What the index knows of an address. ``record``: launches of the deployer of the token (or the pool's
    token); ``own_launches``: launches by the address itself."""

    at: BlockRef
    label: Label | None
    launch: LaunchFound | None
    record: DeployerLaunches
    pool: PoolPlace | None
    pool_label: Label | None
    pool_launch: LaunchFound | None
    origin: FirstSeen | None
    has_traded: bool
    own_launches: DeployerLaunches
    removals: Sequence[Removal]
    """The newest large removals of liquidity from pools of the address as a token."""

    def is_known(self) -> bool:
        """Whether the address is known as a token, a venue or a trader: a later block cannot make it
        something else."""
        return self.launch is not None or self.pool is not None or self.has_traded


async def identify_address(ctx: Context, query: str, address: Address, meter: Meter) -> LookUpAnswer:
    """Finds out what the address is. Raises NodeFault or ServiceFull when that cannot be read."""
    # The address may have been launched since the last poll.
    head, limit = (await ctx.heads.read_now()).block, ctx.policy.read_gas_limit
    record = await _read_address(ctx, address)
    if not record.is_known() and record.at.number < head.number:
        await wait_for_index(ctx, head.number)
        record = await _read_address(ctx, address)
    entities = KnownEntities()
    question = build_token_question(address, entities, head, limit)
    code_call = RpcCall("eth_getCode", [address, {"blockHash": head.hash}])
    code_answer, balance_answer, *answers = await ctx.node.batch(
        [code_call, _balance_call(address, head, limit), *question.calls], meter
    )
    code, balance = hex_bytes(code_answer), bytes_or_empty(balance_answer)
    question.read(answers)
    label = record.label if record.label is not None and record.label.decimals is not None else None
    label = label or entities.label(address)
    if record.pool is not None and record.pool_label is not None:
        return answer_pool(
            ctx, record.at, query, record.pool, record.pool_label, record.pool_launch, record.record
        )
    if record.launch is not None:
        asset = f"{describe_asset(ctx, label)} is a token from the launchpad."
        return _answer_token(ctx, query, record, label, asset, describe_launch(record.launch, record.record))
    if address in _KEYLESS:
        return build_answer(ctx, record.at, query, "nothing", [_KEYLESS[address]], address)
    if is_precompile(address):
        sentences = [f"{address} is a part of the chain itself (a precompile), not a wallet."]
        return build_answer(ctx, record.at, query, "contract", sentences, address)
    if not code or code.startswith(DELEGATED):
        return _answer_wallet(ctx, query, address, record, bool(code))
    machinery = StepsText(ctx.contracts, KnownEntities()).name_address(address)
    if address in (ctx.contracts.weth, ctx.contracts.usdg):
        sentences = [f"It is {quote_name(address, ctx.contracts)}, money on this chain."]
        return build_answer(ctx, record.at, query, "token", sentences, address, token=present_token(label))
    if machinery != address:
        sentences = [f"It is {machinery}, one of the contracts that this service trusts."]
        return build_answer(ctx, record.at, query, "contract", sentences, address)
    if label.decimals is not None and label.supply_raw is not None and len(balance) >= abi.WORD:
        no_launch = _describe_no_launch(describe_asset(ctx, label), record.at, head)
        return _answer_token(ctx, query, record, label, no_launch, BY_ADDRESS)
    sentences = [f"{address} is a contract that we do not know. It does not answer as a token."]
    return build_answer(ctx, record.at, query, "contract", sentences, address)


def _balance_call(token: Address, head: BlockRef, limit: int) -> RpcCall:
    """Asks a token what an account without code holds, as a check does."""
    call = {"to": token, "data": abi.call(erc20.BALANCE_OF, BURN_ADDRESS), "gas": hex(limit)}
    return RpcCall("eth_call", [call, {"blockHash": head.hash}])


async def _read_address(ctx: Context, address: Address) -> _AddressRecord:
    async with reading(ctx) as (connection, index_cursor):
        address_id = await tokens.id_of(connection, address)
        ids = [] if address_id is None else [address_id]
        labels = await tokens.labels(connection, ids)
        launch = (await look_up.launches_of(connection, ids)).get(address_id or 0)
        pool = (await cursor.pools_at(connection, [address], cursor.Ids())).get(address)
        pool_label = None if pool is None else await read_label(connection, pool.token)
        pool_launch = None
        if pool is not None:
            pool_id = await tokens.id_of(connection, pool.token) or 0
            pool_launch = (await look_up.launches_of(connection, [pool_id])).get(pool_id)
        origin = await origins.origin(connection, address)
        has_traded = address_id is not None and await look_up.has_traded(connection, address_id)
        named_launch = launch or pool_launch
        deployer_ids = [*ids, *([] if named_launch is None else [named_launch.deployer_id])]
        records = await deployers.records(connection, deployer_ids)
        after_s = index_cursor.block.timestamp_s - _REMOVALS_S
        removals = await read_removals(connection, address, after_s, MAX_REMOVALS) if ids else []
    return _AddressRecord(
        at=index_cursor.block,
        label=labels.get(address_id or 0),
        launch=launch,
        record=deployers.NOTHING if named_launch is None else records[named_launch.deployer_id],
        pool=pool,
        pool_label=pool_label,
        pool_launch=pool_launch,
        origin=origin,
        has_traded=has_traded,
        own_launches=deployers.NOTHING if address_id is None else records[address_id],
        removals=removals,
    )


def _answer_token(
    ctx: Context, query: str, record: _AddressRecord, label: Label, *sentences: str
) -> LookUpAnswer:
    """``sentences``: what comes before its removals of liquidity."""
    launch = record.launch
    return build_answer(
        ctx,
        record.at,
        query,
        "token",
        [*sentences, _describe_removals(record.removals)],
        label.address,
        token=present_token(label),
        launch=None if launch is None else present_launch(ctx, launch, record.record),
        removals=[present_removal(removal) for removal in record.removals],
    )


def _describe_no_launch(asset: str, indexed: BlockRef, head: BlockRef) -> str:
    """Only an index that has read the whole chain knows that there was no launch."""
    if indexed.number >= head.number:
        return f"{asset} is a token that was not launched on the launchpad."
    read = f"we have read the chain up to block {indexed.number:,}"
    return f"{asset} is a token. We know of no launch of it on the launchpad; {read}."


def _describe_removals(removals: Sequence[Removal]) -> str:
    """The newest removal, and how many there are more; empty: there is none."""
    if not removals:
        return ""
    more = f" It is the newest of {len(removals)} such removals within seven days." if removals[1:] else ""
    return f"Liquidity left {format_time(removals[0].spot.at_s)}: {describe_removal(removals[0])}{more}"


def _answer_wallet(
    ctx: Context, query: str, address: Address, record: _AddressRecord, delegated: bool
) -> LookUpAnswer:
    origin, launches = record.origin, record.own_launches.launches
    sentences = [f"{address} is a wallet: it has no code of its own."]
    if not (delegated or origin or launches or record.has_traded):
        sentences = [
            f"{address} has no code: it is a wallet, or an address that was never used. We know nothing "
            "about it."
        ]
        wallet = WalletAnswer(None, None, False, 0)
        return build_answer(ctx, record.at, query, "wallet", sentences, address, wallet=wallet)
    if delegated:
        sentences = [f"{address} is a wallet that lets a contract act for it."]
    if origin is not None:
        sentences.append(f"It was first seen {format_time(origin.first_s)}.")
    if origin is not None and origin.funder is not None:
        sentences.append(f"Its first eth came from {origin.funder}.")
    sentences.append("It has traded here." if record.has_traded else "We know of no trade by it.")
    if launches:
        sentences.append(
            f"It launched {count_launches(launches)} on curves; {record.own_launches.graduated:,} graduated."
        )
    first_seen, funder = (None, None) if origin is None else (when(origin.first_s), origin.funder)
    wallet = WalletAnswer(first_seen, funder, record.has_traded, launches)
    return build_answer(ctx, record.at, query, "wallet", sentences, address, wallet=wallet)


_MAX_NAMED = 200
"""Limit of wallets with one name."""
_UNREAD = "We have not read the symbols of some new tokens yet."
_HEX = re.compile(r"0x[0-9a-fA-F]*")
_LOOKED_FOR = "We looked for symbols, names of wallets, addresses, transaction hashes and pool ids."
_STRANGERS = "Strangers call it that: it does not prove who owns it."


async def find(ctx: Context, params: LookUpParams) -> UseCaseAnswer[LookUpAnswer]:
    """Finds what the query is; kind ``nothing`` if it is unknown. Raises CallerFault (bad_input) when the
    query has no visible characters, and NodeFault or ServiceFull when the answer cannot be read."""
    query = names.clean(params.query, MAX_CHARACTERS)
    if not query:
        raise ParamFault(
            "bad_input",
            'query must have visible characters: a symbol, an address or a transaction hash, such as "PEPE".',
        )
    meter, ttl_ms, pasted = Meter(), ctx.policy.answer_ttl_ms, find_only_word(query)
    if pasted is None:
        answer = await _look_up_symbol(ctx, query)
    elif len(pasted.word) == len(ZERO_ADDRESS):
        answer = await identify_address(ctx, query, Address(pasted.word), meter)
    else:
        answer, ttl_ms = await _look_up_word(ctx, query, pasted.word, meter)
    answer = await _add_scam_marks(ctx, await _add_look_alike(ctx, answer, meter))
    return UseCaseAnswer(
        _add_other_chain(ctx, answer, pasted),
        ttl_ms=ttl_ms,
        meter=meter,
        block=ctx.heads.current().block.number,
        is_absence=_is_absence(answer),
    )


def _is_absence(answer: LookUpAnswer) -> bool:
    """Whether the next block may make something else of it: a launch, or a first trade."""
    return answer.kind in ("nothing", "wallet") or (answer.kind == "token" and answer.launch is None)


def _add_other_chain(ctx: Context, answer: LookUpAnswer, pasted: PastedWord | None) -> LookUpAnswer:
    """Says first that the query names another chain than the one that was read."""
    if pasted is None or pasted.chain_id in (None, ctx.chain_id):
        return answer
    named = f"The query names chain {pasted.chain_id}; this is what is on chain {ctx.chain_id}"
    return msgspec.structs.replace(answer, text=f"{named}, the one served here. {answer.text}")


async def _add_look_alike(ctx: Context, answer: LookUpAnswer, meter: Meter) -> LookUpAnswer:
    """Adds the token that a found token looks like. Raises ServiceFull, NodeFault."""
    if answer.kind != "token" or answer.token is None:
        return answer
    token = answer.token
    label = Label(Address(token.address), token.symbol, token.name, None, None)
    found = await find_look_alike(ctx, label, meter)
    if found is None:
        return answer
    return msgspec.structs.replace(
        answer, text=f"{answer.text} {found.text}", look_alike_of=found.original.address
    )


async def _add_scam_marks(ctx: Context, answer: LookUpAnswer) -> LookUpAnswer:
    """Adds the scam marks of the wallets that the answer names. Raises ServiceFull."""
    subjects = {answer.address: "It", answer.launch and answer.launch.deployer: "Its deployer"}
    wallets = {Address(address): subject for address, subject in subjects.items() if address}
    if not wallets:
        return answer
    async with looking(ctx) as (connection, _):
        marked = await public_names.scams(connection, wallets)
    sentences = [scam_text(wallets[wallet], people) for wallet, people in marked.items()]
    return msgspec.structs.replace(answer, text=" ".join([answer.text, *sentences]))


def shared_as(params: LookUpParams) -> str:
    """The key under which equal queries share an answer. Case matters: the answer repeats the query."""
    return names.clean(params.query, MAX_CHARACTERS)


# --- a symbol --------------------------------------------------------------------------------------


async def _look_up_symbol(ctx: Context, query: str) -> LookUpAnswer:
    async with reading(ctx) as (connection, index_cursor):
        block = index_cursor.block
        key, symbol_bearers = await _read_bearers(connection, query)
        word = list_symbols(query)[-1]
        unread = _UNREAD if await look_up.has_unread(connection) else ""
        if symbol_bearers.newest_id is None or symbol_bearers.oldest_id is None:
            is_other = bool(_HEX.fullmatch(word) or _describe_money(ctx, key))
            wallets = [] if is_other else await public_names.bearers(connection, name_key(word), _MAX_NAMED)
            if wallets:
                sentences = _describe_named_wallet(word, wallets, symbol_bearers.strangers)
                return build_answer(ctx, block, query, "wallet", sentences, wallets[0].wallet)
            strangers = await tokens.strangers_with(connection, key) if symbol_bearers.strangers else []
            return _answer_no_symbol(ctx, query, block, key, symbol_bearers.strangers, strangers, unread)
        ids = {symbol_bearers.newest_id, symbol_bearers.oldest_id}
        labels = await tokens.labels(connection, ids)
        launches = await look_up.launches_of(connection, ids)
        newest, oldest = launches[symbol_bearers.newest_id], launches[symbol_bearers.oldest_id]
        record = (await deployers.records(connection, [newest.deployer_id]))[newest.deployer_id]
    label, oldest_label = labels[symbol_bearers.newest_id], labels[symbol_bearers.oldest_id]
    others = symbol_bearers.launched - 1
    sentences = [f"{quote_token(label)} is the newest launchpad token with that symbol."]
    if others:
        count = format_count(others, "other launchpad token has", "other launchpad tokens have")
        launched = format_time(oldest.at_s)
        sentences.append(f"{count} it; the oldest is {oldest_label.address}, launched {launched}.")
    if symbol_bearers.strangers:
        singular, plural = "token from elsewhere also has", "tokens from elsewhere also have"
        sentences.append(f"{format_count(symbol_bearers.strangers, singular, plural)} it.")
    sentences += [describe_launch(newest, record), unread, _describe_money(ctx, key), BY_ADDRESS]
    bearers = BearersAnswer(others, symbol_bearers.strangers, present_token(oldest_label), when(oldest.at_s))
    return build_answer(
        ctx,
        block,
        query,
        "token",
        sentences,
        label.address,
        token=present_token(label),
        launch=present_launch(ctx, newest, record),
        bearers=bearers,
    )


async def _read_bearers(connection: Connection, query: str) -> tuple[str, Bearers]:
    """The key of the symbol that the query most likely names, and the tokens with it: launches before others,
    the symbol as it is written before the one without quotes or ``$``."""
    # Stored symbols are cut at this length, so no longer query can match.
    fitting = [word for word in list_symbols(query) if len(word) <= names.SYMBOL_LENGTH]
    keys = list(dict.fromkeys(names.symbol_key(word) or "" for word in fitting)) or [""]
    found = [(key, await look_up.bearers(connection, key)) for key in keys]
    launched = (pair for pair in found if pair[1].launched)
    return next(launched, None) or next((pair for pair in found if pair[1].strangers), found[-1])


def _describe_named_wallet(query: str, wallets: list[Bearer], strangers: int) -> list[str]:
    first, others = wallets[0], len(wallets) - 1
    sentences = [f'{first.people} people call the wallet {first.wallet} "{names.reason(query)}".', _STRANGERS]
    if others:
        count = format_count(others, "more wallet has", "more wallets have")
        sentences.append(f"{count} that name from enough people.")
    if strangers:
        sentences.append(f"{format_count(strangers, 'token has', 'tokens have')} it as a symbol.")
    return sentences


def _answer_no_symbol(
    ctx: Context, query: str, block: BlockRef, key: str, count: int, strangers: list[Address], unread: str
) -> LookUpAnswer:
    word = list_symbols(query)[-1]
    shown = f'"{names.reason(word)}"'
    if _HEX.fullmatch(word):
        digits = len(word) - 2
        sentences = [
            f"{shown} has {digits} hex digits: an address has 40, a transaction hash or a pool id 64."
        ]
        return build_answer(ctx, block, query, "nothing", sentences)
    sentences = [f"Of the launchpad tokens that we have read, none has the symbol {shown}.", unread]
    if len(word) > names.SYMBOL_LENGTH:
        sentences = [
            f"{shown} is longer than a symbol here: we keep {names.SYMBOL_LENGTH} characters of one."
        ]
    if count == 1:
        sentences.append(f"One token from elsewhere has it: {strangers[0]}.")
    elif count:
        sentences.append(f"{count:,} tokens from elsewhere have it, such as {', '.join(strangers)}.")
    sentences.append(_describe_money(ctx, key))
    sentences += [_LOOKED_FOR, BY_ADDRESS if count else ""]
    return build_answer(ctx, block, query, "nothing", sentences)


def _describe_money(ctx: Context, key: str) -> str:
    """Names the real eth, weth or usdg, so that a query for it does not end at an impostor token."""
    if key == "eth":
        return "Eth is the chain's own currency and has no address."
    money = {"weth": ctx.contracts.weth, "usdg": ctx.contracts.usdg}
    return f"The real {key} is {money[key]}." if key in money else ""


# --- thirty-two bytes ------------------------------------------------------------------------------


async def _look_up_word(ctx: Context, query: str, word: str, meter: Meter) -> tuple[LookUpAnswer, int]:
    """Looks up 32 bytes: an indexed pool, else a transaction, else a v4 pool on the chain. Returns the answer
    and its lifetime in ms."""
    ttl_ms = ctx.policy.answer_ttl_ms
    try:
        async with reading(ctx) as (connection, index_cursor):
            pools = await cursor.pools_at(connection, [word], cursor.Ids())
            if word in pools:
                label = await read_label(connection, pools[word].token)
                return answer_pool(ctx, index_cursor.block, query, pools[word], label), ttl_ms
    except ServiceFull as full:
        if full.code != "busy":
            raise
    try:
        explained = await explain(ctx, ExplainParams(word))
    except CallerFault as fault:
        if fault.code != "not_found":
            raise
    else:
        explanation = explained.answer
        short = TransactionAnswer(explanation.hash, explanation.status, explanation.kind, explanation.text)
        text = f"It is a transaction. {explanation.text}"
        block = BlockRef(explanation.block, "", round(explanation.block_time.timestamp()))
        return build_answer(ctx, block, query, "transaction", [text], transaction=short), explained.ttl_ms
    head = ctx.heads.current().block
    entities, limit = KnownEntities(), ctx.policy.read_gas_limit
    await _ask(ctx, [build_pool_question(word, "v4", entities, ctx.contracts, head, limit)], meter)
    market = entities.markets.get(word)
    if market is None:
        sentences = ["We know no transaction with that hash, and no v4 pool with that id."]
        # The transaction may reach the node a moment later.
        return build_answer(ctx, head, query, "nothing", sentences), ctx.policy.node_fault_ttl_ms
    await _ask(ctx, [build_token_question(market.token, entities, head, limit)], meter)
    return answer_pool(ctx, head, query, market, entities.label(market.token)), ttl_ms


async def _ask(ctx: Context, questions: list[Question], meter: Meter) -> None:
    answers = await ctx.node.batch([call for question in questions for call in question.calls], meter)
    for question in questions:
        question.read(answers[: len(question.calls)])
        answers = answers[len(question.calls) :]


# --- look-alikes -------------------------------------------------------------------------------------


class LookAlikeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token, and its symbol and name as its contract returns them."""

    address: str
    symbol: str | None
    name: str | None


class TokenLookAlike(msgspec.Struct, frozen=True, rename="camel"):
    """``look_alike`` null: no token was found that it looks like, which does not prove that there is none."""

    look_alike: LookAlikeAnswer | None


async def token_look_alike(ctx: Context, params: LookAlikeParams) -> UseCaseAnswer[TokenLookAlike]:
    """The original of a token. Raises ServiceFull (busy), NodeFault."""
    label = Label(parse_address(params.address), params.symbol, params.name, None, None)
    meter = Meter()
    found = await find_look_alike(ctx, label, meter)
    return UseCaseAnswer(TokenLookAlike(found), ctx.policy.answer_ttl_ms, meter=meter)
