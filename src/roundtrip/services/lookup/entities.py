"""Reads the pools, curves and tokens that a transaction's logs name: from the index, else from the chain."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from roundtrip.chain.holders.token_views import bytes_or_empty, read_views, view_calls
from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.events import (
    CurveTraded,
    LaunchedToken,
    LaunchMoved,
    LiquidityMoved,
    PoolOpened,
    Swapped,
    Transferred,
)
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.transaction.account import AllowanceGiven, DecodedLog, KnownMarket
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import reading
from roundtrip.store.index import cursor, tokens
from roundtrip.store.index.tokens import Label
from roundtrip.venues import amm_v3, amm_v4, launchpad, launchpad_curve
from roundtrip.venues.base import Call, Contracts
from roundtrip.venues.pair_order import sides

MAX_PLACES, MAX_TOKENS = 20, 10
"""Limits of what is read from the chain; the rest stays unknown, and the answer says so."""
_MAX_LOOKED_UP = 400
_MAX_CURVES_TOKENS = 3
_Answer = msgspec.Raw | RpcError


@dataclass(slots=True)
class KnownEntities:
    """Markets by place, token labels by address. ``quotes``: quote assets of launches. ``index_block``: the
    newest indexed block; None: there is no index. ``unasked``: number of places over the limit, not read."""

    markets: dict[str, KnownMarket] = field(default_factory=dict)
    labels: dict[Address, Label] = field(default_factory=dict)
    quotes: set[Address] = field(default_factory=set)
    index_block: BlockRef | None = None
    unasked: int = 0

    def label(self, token: Address) -> Label:
        """The token's label; all of it but the address may be unknown."""
        return self.labels.get(token) or Label(token, None, None, None, None)


@dataclass(frozen=True, slots=True)
class Question:
    """Calls, and the function that takes their answers."""

    calls: list[RpcCall]
    read: Callable[[Sequence[_Answer]], None]


async def load_from_index(ctx: Context, logs: Sequence[tuple[int, DecodedLog]]) -> KnownEntities:
    """The entities in the logs that the index knows. Empty if there is no index."""
    return await load_named(ctx, _list_places(logs, ctx.contracts), _list_tokens(logs))


async def load_named(ctx: Context, places: Sequence[str], named: Sequence[Address]) -> KnownEntities:
    """Those of the pools and curves at ``places``, and of the tokens ``named``, that the index knows. Empty
    if there is no index."""
    entities = KnownEntities()
    try:
        async with reading(ctx) as (connection, index_cursor):
            pools = await cursor.pools_at(connection, [*places][:_MAX_LOOKED_UP], cursor.Ids())
            entities.quotes = await cursor.launch_quotes(connection)
            sides_named = [side for pool in pools.values() for side in (pool.token, pool.quote)]
            wanted = list(dict.fromkeys([*named, *sides_named]))[:_MAX_LOOKED_UP]
            ids = await tokens.ids_of(connection, wanted)
            labels = await tokens.labels(connection, list(ids.values()))
    except ServiceFull:
        return entities
    entities.index_block = index_cursor.block
    entities.labels = {label.address: label for label in labels.values() if label.decimals is not None}
    for at, pool in pools.items():
        is_money = pool.in_money_from is not None
        entities.markets[at] = KnownMarket(at, pool.kind, pool.token, pool.quote, is_money)
    return entities


def add_from_logs(
    logs: Iterable[tuple[int, DecodedLog]], entities: KnownEntities, contracts: Contracts
) -> None:
    """Adds the pools and launches that the transaction's own logs announce."""
    for _, log in logs:
        if isinstance(log, PoolOpened) and log.at not in entities.markets:
            pair = sides(log.currency0, log.currency1, entities.quotes, contracts)
            entities.markets[log.at] = KnownMarket(log.at, log.kind, *pair)
        # The first generation launches into v3 pools, not onto curves.
        elif isinstance(log, LaunchedToken) and log.generation != 1:
            market = KnownMarket(log.at, launchpad_curve.KIND, log.token, log.quote, True)
            entities.markets.setdefault(log.at, market)


_ROLES = {
    "swap_router02": "the swap router",
    "universal_router": "the Universal Router",
    "permit2": "Permit2",
}


def find_role(at: str, contracts: Contracts) -> str | None:
    """What one of the network's own contracts is, in words; None: it is none of them."""
    name = next((name for name, known in contracts.by_name().items() if known == at), None)
    if name is None or name in ("weth", "usdg"):
        return name
    if name.startswith(("beside", "launchpad_v1")):
        return "a contract of the exchange or the launchpad"
    return _ROLES.get(name) or f"the {name.replace('_', ' ')}"


def build_questions(
    ctx: Context,
    logs: Sequence[tuple[int, DecodedLog]],
    sender: Address,
    entities: KnownEntities,
    pinned: BlockRef,
) -> list[Question]:
    """Questions to the chain for the unknown entities, at the block ``pinned``: pool keys, which are verified
    by deriving the pool from them, launchpad records, and tokens' own views."""
    limit, contracts = ctx.policy.read_gas_limit, ctx.contracts
    unknown = _find_unknown_places(logs, entities, contracts)
    pools = [(at, kind) for at, kind in unknown.items() if kind != "curve"]
    questions = [
        build_pool_question(at, kind, entities, contracts, pinned, limit) for at, kind in pools[:MAX_PLACES]
    ]
    curves = _find_curves(logs, unknown)
    looked_at = {at for at, _ in pools[:MAX_PLACES]} | {at for at, _ in curves[:MAX_PLACES]}
    # A place without any token transfer is no curve and needs no question.
    entities.unasked = len(({at for at, _ in pools} | {at for at, _ in curves}) - looked_at)
    for at, token in curves[:MAX_PLACES]:
        questions.append(_build_curve_question(at, token, entities, contracts, pinned, limit))
    money = {ZERO_ADDRESS, contracts.weth, contracts.usdg}
    named = [
        token for token in _list_tokens(logs, sender) if token not in money and token not in entities.labels
    ]
    named += [m.token for m in entities.markets.values() if m.token not in entities.labels]
    unnamed = list(dict.fromkeys(named))[:MAX_TOKENS]
    return questions + [build_token_question(token, entities, pinned, limit) for token in unnamed]


def build_token_question(token: Address, entities: KnownEntities, pinned: BlockRef, limit: int) -> Question:
    """Asks a token for its symbol, name, decimals and supply."""

    def read(answers: Sequence[_Answer]) -> None:
        views = read_views(answers)
        entities.labels[token] = Label(token, views.symbol, views.name, views.decimals, views.supply_raw)

    return Question(view_calls(token, pinned, limit), read)


def _call(call: Call, pinned: BlockRef, limit: int) -> RpcCall:
    request = {"to": call.to, "data": call.data, "gas": hex(limit)}
    return RpcCall("eth_call", [request, {"blockHash": pinned.hash}])


def build_pool_question(
    at: str, kind: str, entities: KnownEntities, contracts: Contracts, pinned: BlockRef, limit: int
) -> Question:
    """Asks for the key of a possible v3 or v4 pool."""
    calls = amm_v3.key_calls(Address(at)) if kind == "v3" else (amm_v4.key_call(at, contracts),)

    def read(answers: Sequence[_Answer]) -> None:
        datas = tuple(bytes_or_empty(answer) for answer in answers)
        if kind == "v3":
            pair = amm_v3.read_key(Address(at), datas, contracts)
            if pair is not None:
                entities.markets[at] = KnownMarket(at, amm_v3.KIND, *sides(*pair, entities.quotes, contracts))
            return
        key = amm_v4.read_key(at, datas[0], contracts)
        if key is not None:
            entities.markets[at] = KnownMarket(at, key[2], *sides(key[0], key[1], entities.quotes, contracts))

    return Question([_call(call, pinned, limit) for call in calls], read)


def _build_curve_question(
    at: str, token: Address, entities: KnownEntities, contracts: Contracts, pinned: BlockRef, limit: int
) -> Question:
    calls = launchpad.launch_calls(token, contracts)[:1]

    def read(answers: Sequence[_Answer]) -> None:
        record = launchpad.read_record(token, bytes_or_empty(answers[0])) if answers else None
        if record is not None and record.curve == at:
            entities.markets[at] = KnownMarket(at, launchpad_curve.KIND, token, record.quote_address, True)

    return Question([_call(call, pinned, limit) for call in calls], read)


# --- what the logs name ----------------------------------------------------------------------------


def _list_places(logs: Sequence[tuple[int, DecodedLog]], contracts: Contracts) -> list[str]:
    """Places with trades in the logs: first those with money transfers, then those with any token transfer,
    then the rest. So a contract that logs hundreds of invented trades comes last."""
    named = dict.fromkeys(
        log.at for _, log in logs if isinstance(log, Swapped | CurveTraded | LiquidityMoved)
    )
    money = {contracts.weth, contracts.usdg}
    moves = [log for _, log in logs if isinstance(log, Transferred)]
    with_money = {end for log in moves if log.token in money for end in (log.sender, log.recipient)}
    with_any = {end for log in moves for end in (log.sender, log.recipient)}

    def rank(at: str) -> int:
        # Only the manager logs the trades of v4 pools, and holds their tokens.
        return 0 if at in with_money or len(at) > len(ZERO_ADDRESS) else 1 if at in with_any else 2

    return sorted(named, key=rank)


def _list_tokens(logs: Iterable[tuple[int, DecodedLog]], first: Address | None = None) -> list[Address]:
    """Tokens that the logs name; those that ``first`` sent or received come first."""
    primary: dict[Address, None] = {}
    others: dict[Address, None] = {}
    for _, log in logs:
        if isinstance(log, LaunchedToken):
            primary[log.token] = None
            others[log.quote] = None
        elif isinstance(log, LaunchMoved | AllowanceGiven):
            primary[log.token] = None
        elif isinstance(log, Transferred):
            (primary if first in (log.sender, log.recipient) else others)[log.token] = None
    return list({**primary, **others})


def _find_unknown_places(
    logs: Sequence[tuple[int, DecodedLog]], entities: KnownEntities, contracts: Contracts
) -> dict[str, str]:
    """Unknown places and their sort (v3, v4 or curve), in the order of ``_list_places``."""
    unknown = {}
    for _, log in logs:
        if isinstance(log, CurveTraded):
            unknown[log.at] = "curve"
        elif isinstance(log, Swapped | LiquidityMoved):
            unknown[log.at] = "v3" if len(log.at) == 42 else "v4"
    places = _list_places(logs, contracts)
    return {at: unknown[at] for at in places if at not in entities.markets}


def _find_curves(
    logs: Sequence[tuple[int, DecodedLog]], unknown: Mapping[str, str]
) -> list[tuple[str, Address]]:
    """Possible curves, each with the tokens that moved to or from it, one of which may be its own."""
    tokens_at: dict[str, dict[Address, None]] = {at: {} for at, kind in unknown.items() if kind == "curve"}
    for _, log in logs:
        if isinstance(log, Transferred):
            for side in {log.sender, log.recipient} & tokens_at.keys():
                tokens_at[side][log.token] = None
    return [(at, token) for at, named in tokens_at.items() for token in list(named)[:_MAX_CURVES_TOKENS]]
