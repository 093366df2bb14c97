"""Works out what a word is: a symbol, an address, a transaction's hash, a pool's id."""

import re

import msgspec

from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base import names
from roundtrip.domain.base.errors import CallerFault, ServiceFull
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.index_reader import looking, present_token, quote_token, reading, when
from roundtrip.services.wallets.names import called_so, scam_text
from roundtrip.store.community import public_names
from roundtrip.store.community.public_names import Bearer
from roundtrip.store.index import cursor, deployers, tokens
from roundtrip.store.wallets import look_up

from .entities import KnownEntities, Question, pool_question, token_question
from .explain import ExplainParams, explain
from .look_up_address import what_address
from .look_up_answer import (
    BY_ADDRESS,
    MOST_CHARACTERS,
    BearersAnswer,
    LookUpAnswer,
    LookUpParams,
    TransactionAnswer,
    label_of,
    launch_part,
    launch_text,
    look_up_answer,
    on_day,
    pool_found,
)

_WRITTEN = re.compile(r"(?:ethereum:)?(?:0x)?(?P<digits>[0-9a-f]{40}|[0-9a-f]{64})[.,;:]*", re.IGNORECASE)
"""An address or thirty-two bytes, as people copy them."""
_UNREAD = "The symbols of some new tokens are not read yet."
_HEX = re.compile(r"0x[0-9a-fA-F]*")
_LOOKED_FOR = "Symbols, names of wallets, addresses, transactions' hashes and pools' ids were looked for."
_STRANGERS = "That is what strangers call it, and no proof of whose it is."


async def find(ctx: Context, params: LookUpParams) -> UseCaseAnswer[LookUpAnswer]:
    """What the query is; of kind ``nothing`` where it is nothing that is known. Raises CallerFault
    (bad_input) where nothing visible was asked, NodeFault and ServiceFull where it could not be found out."""
    query = names.clean(params.query, MOST_CHARACTERS)
    if not query:
        raise CallerFault("bad_input", "The query has nothing in it that can be seen.")
    meter = Meter()
    ttl_ms, written = ctx.policy.answer_ttl_ms, _WRITTEN.fullmatch(query)
    word = "" if written is None else "0x" + written["digits"].lower()
    if len(word) == len(ZERO_ADDRESS):
        found = await what_address(ctx, query, Address(word), meter)
    elif word:
        found, ttl_ms = await _word(ctx, query, word, meter)
    else:
        found = await _symbol(ctx, query)
    found = await _with_marks(ctx, found)
    return UseCaseAnswer(found, ttl_ms=ttl_ms, meter=meter)


async def _with_marks(ctx: Context, found: LookUpAnswer) -> LookUpAnswer:
    """With what enough people say of the wallets that it names. Raises ServiceFull."""
    named = {found.address: "It", found.launch and found.launch.deployer: "Its deployer"}
    wallets = {Address(one): who for one, who in named.items() if one}
    if not wallets:
        return found
    async with looking(ctx) as (connection, _):
        marked = await public_names.scams(connection, wallets)
    said = [scam_text(wallets[one], people) for one, people in marked.items()]
    return msgspec.structs.replace(found, text=" ".join([found.text, *said]))


def shared_as(params: LookUpParams) -> str:
    """What makes two queries the same. Capitals stay: the answer repeats the query."""
    return names.clean(params.query, MOST_CHARACTERS)


# --- a symbol --------------------------------------------------------------------------------------


async def _symbol(ctx: Context, query: str) -> LookUpAnswer:
    async with reading(ctx) as (connection, stands):
        at = stands.block
        # A symbol is kept cut: of a longer word nobody knows who bears it.
        key = (names.symbol_key(query) or "") if len(query) <= names.SYMBOL_LENGTH else ""
        borne = await look_up.bearers(connection, key)
        if not borne.launched and key.startswith("$"):
            key = key[1:]
            borne = await look_up.bearers(connection, key)
        unread = _UNREAD if await look_up.has_unread(connection) else ""
        if borne.newest_id is None or borne.oldest_id is None:
            is_own = bool(_HEX.fullmatch(query) or _money_text(ctx, key))
            wallets = [] if is_own else await called_so(connection, query)
            if wallets:
                said = _wallet_said(query, wallets, borne.strangers)
                return look_up_answer(ctx, at, query, "wallet", said, wallets[0].wallet)
            strangers = await tokens.strangers_with(connection, key) if borne.strangers else []
            return _no_symbol(ctx, query, at, key, borne.strangers, strangers, unread)
        ids = {borne.newest_id, borne.oldest_id}
        labels = await tokens.labels(connection, ids)
        launches = await look_up.launches_of(connection, ids)
        newest, oldest = launches[borne.newest_id], launches[borne.oldest_id]
        record = (await deployers.records(connection, [newest.deployer_id]))[newest.deployer_id]
    label, first = labels[borne.newest_id], labels[borne.oldest_id]
    others = borne.launched - 1
    said = [f"{quote_token(label)} is the token from the launchpad with that symbol that was launched last."]
    if others:
        bear = "other from the launchpad bears" if others == 1 else "others from the launchpad bear"
        said.append(f"{others:,} {bear} it; the oldest is {first.address}, launched {on_day(oldest.at_s)}.")
    if borne.strangers:
        bear = "token from elsewhere bears" if borne.strangers == 1 else "tokens from elsewhere bear"
        said.append(f"{borne.strangers:,} {bear} it, too.")
    said += [launch_text(newest, record), unread, _money_text(ctx, key), BY_ADDRESS]
    bearers = BearersAnswer(others, borne.strangers, present_token(first), when(oldest.at_s))
    return look_up_answer(
        ctx,
        at,
        query,
        "token",
        said,
        label.address,
        token=present_token(label),
        launch=launch_part(ctx, newest, record),
        bearers=bearers,
    )


def _wallet_said(query: str, wallets: list[Bearer], strangers: int) -> list[str]:
    first, others = wallets[0], len(wallets) - 1
    said = [f'{first.people} people call the wallet {first.wallet} "{names.reason(query)}".', _STRANGERS]
    if others:
        said.append(f"{others} more {'is' if others == 1 else 'are'} called so by enough people.")
    if strangers:
        said.append(f"{strangers:,} {'token bears' if strangers == 1 else 'tokens bear'} it as a symbol.")
    return said


def _no_symbol(
    ctx: Context, query: str, at: BlockRef, key: str, count: int, strangers: list[Address], unread: str
) -> LookUpAnswer:
    shown = f'"{names.reason(query)}"'
    if _HEX.fullmatch(query):
        digits = len(query) - 2
        said = [f"{shown} has {digits} hex digits: an address has 40, a hash or a pool's id 64."]
        return look_up_answer(ctx, at, query, "nothing", said)
    said = [f"No token from the launchpad that we have read bears the symbol {shown}.", unread]
    if len(query) > names.SYMBOL_LENGTH:
        said = [f"{shown} is longer than the {names.SYMBOL_LENGTH} characters that are kept of a symbol."]
    if count == 1:
        said.append(f"One token from elsewhere bears it: {strangers[0]}.")
    elif count:
        said.append(f"{count:,} tokens from elsewhere bear it, such as {', '.join(strangers)}.")
    said.append(_money_text(ctx, key))
    said += [_LOOKED_FOR, BY_ADDRESS]
    return look_up_answer(ctx, at, query, "nothing", said)


def _money_text(ctx: Context, key: str) -> str:
    """Whoever asks for the money by its name is not to take a stranger's token for it."""
    if key == "eth":
        return "Eth itself is the chain's own money and has no address."
    own = {"weth": ctx.contracts.weth, "usdg": ctx.contracts.usdg}
    return f"The {key} that is money here is {own[key]}." if key in own else ""


# --- thirty-two bytes ------------------------------------------------------------------------------


async def _word(ctx: Context, query: str, word: str, meter: Meter) -> tuple[LookUpAnswer, int]:
    """A pool of the index; a transaction; a pool that the chain knows. With how long that holds, in ms."""
    ttl_ms = ctx.policy.answer_ttl_ms
    try:
        async with reading(ctx) as (connection, stands):
            pools = await cursor.pools_at(connection, [word], cursor.Ids())
            if word in pools:
                label = await label_of(connection, pools[word].token)
                return pool_found(ctx, stands.block, query, pools[word], label), ttl_ms
    except ServiceFull as full:
        if full.code != "busy":
            raise
    try:
        explained = await explain(ctx, ExplainParams(word))
    except CallerFault as fault:
        if fault.code != "not_found":
            raise
    else:
        one = explained.answer
        short = TransactionAnswer(one.hash, one.status, one.kind, one.text)
        text = f"It is a transaction. {one.text}"
        at = BlockRef(one.block, "", round(one.block_time.timestamp()))
        return look_up_answer(ctx, at, query, "transaction", [text], transaction=short), explained.ttl_ms
    head = ctx.heads.current().block
    known, limit = KnownEntities(), ctx.policy.read_gas_limit
    await _put(ctx, [pool_question(word, "v4", known, ctx.contracts, head, limit)], meter)
    market = known.markets.get(word)
    if market is None:
        said = ["No transaction of that hash is known, and no v4 pool of that id."]
        # It may be on its way to the node.
        return look_up_answer(ctx, head, query, "nothing", said), ctx.policy.node_fault_ttl_ms
    await _put(ctx, [token_question(market.token, known, head, limit)], meter)
    return pool_found(ctx, head, query, market, known.label(market.token)), ttl_ms


async def _put(ctx: Context, asked: list[Question], meter: Meter) -> None:
    answers = await ctx.node.batch([call for one in asked for call in one.calls], meter)
    for one in asked:
        one.read(answers[: len(one.calls)])
        answers = answers[len(one.calls) :]
