"""Which pools, curves and tokens a transaction speaks of: from the index, else from the chain."""

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
from roundtrip.domain.transaction.account import AllowanceGiven, KnownMarket, Said
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import reading
from roundtrip.store.index import addresses, cursor, tokens
from roundtrip.store.index.tokens import Label
from roundtrip.venues import amm_v3, amm_v4, launchpad, launchpad_curve
from roundtrip.venues.base import Call, Contracts
from roundtrip.venues.pair_order import sides

MOST_PLACES, MOST_TOKENS = 20, 10
"""Asked for on the chain; what is beyond stays unknown, and the answer says so."""
_MOST_LOOKED_UP = 400
_MOST_CURVES_TOKENS = 3
_Answer = msgspec.Raw | RpcError


@dataclass(slots=True)
class KnownEntities:
    """``stands``: the block that the index knows of; None: there is no index. ``quotes``: what launches were
    made against. ``unasked``: how many places nobody was asked about, for there were too many."""

    markets: dict[str, KnownMarket] = field(default_factory=dict)
    labels: dict[Address, Label] = field(default_factory=dict)
    quotes: set[Address] = field(default_factory=set)
    stands: BlockRef | None = None
    unasked: int = 0

    def label(self, token: Address) -> Label:
        """What is known of the token, which may be nothing but its address."""
        return self.labels.get(token) or Label(token, None, None, None, None)


@dataclass(frozen=True, slots=True)
class Question:
    """Some calls, and what their answers are put into."""

    calls: list[RpcCall]
    read: Callable[[Sequence[_Answer]], None]


async def from_index(ctx: Context, said: Sequence[tuple[int, Said]]) -> KnownEntities:
    """What the index knows of what the logs speak of. Raises nothing where there is no index."""
    found = KnownEntities()
    places, named = _places(said, ctx.contracts), _tokens(said)
    try:
        async with reading(ctx) as (connection, stands):
            pools = await cursor.pools_at(connection, places[:_MOST_LOOKED_UP], cursor.Ids())
            found.quotes = await cursor.launch_quotes(connection)
            named += [side for pool in pools.values() for side in (pool.token, pool.quote)]
            wanted = list(dict.fromkeys(named))[:_MOST_LOOKED_UP]
            ids = await addresses.ids_of(connection, wanted)
            known = await tokens.labels(connection, list(ids.values()))
    except ServiceFull:
        return found
    found.stands = stands.block
    found.labels = {label.address: label for label in known.values() if label.decimals is not None}
    for at, pool in pools.items():
        is_money = pool.in_money_from is not None
        found.markets[at] = KnownMarket(at, pool.kind, pool.token, pool.quote, is_money)
    return found


def from_itself(said: Iterable[tuple[int, Said]], found: KnownEntities, contracts: Contracts) -> None:
    """Puts in what the transaction's own logs tell of new pools and launches."""
    for _, one in said:
        if isinstance(one, PoolOpened) and one.at not in found.markets:
            known = sides(one.currency0, one.currency1, found.quotes, contracts)
            found.markets[one.at] = KnownMarket(one.at, one.kind, *known)
        elif isinstance(one, LaunchedToken) and one.generation != 1:
            market = KnownMarket(one.at, launchpad_curve.KIND, one.token, one.quote, True)
            found.markets.setdefault(one.at, market)


def questions(
    ctx: Context,
    said: Sequence[tuple[int, Said]],
    sender: Address,
    found: KnownEntities,
    pinned: BlockRef,
) -> list[Question]:
    """What has to be asked of the chain for the rest, at the block ``pinned``: keys of pools, which are made
    again and not believed, the launchpad's records, and what tokens say of themselves."""
    limit, contracts = ctx.policy.read_gas_limit, ctx.contracts
    unknown = _unknown(said, found, contracts)
    pools = [(at, kind) for at, kind in unknown.items() if kind != "curve"]
    asked = [pool_question(at, kind, found, contracts, pinned, limit) for at, kind in pools[:MOST_PLACES]]
    curves = _curves(said, unknown)
    looked_at = {at for at, _ in pools[:MOST_PLACES]} | {at for at, _ in curves[:MOST_PLACES]}
    # What no token came from or went to is no curve, and need not be asked about.
    found.unasked = len(({at for at, _ in pools} | {at for at, _ in curves}) - looked_at)
    for at, token in curves[:MOST_PLACES]:
        asked.append(_curve_question(at, token, found, contracts, pinned, limit))
    money = {ZERO_ADDRESS, contracts.weth, contracts.usdg}
    named = [token for token in _tokens(said, sender) if token not in money and token not in found.labels]
    named += [m.token for m in found.markets.values() if m.token not in found.labels]
    unnamed = list(dict.fromkeys(named))[:MOST_TOKENS]
    return asked + [token_question(token, found, pinned, limit) for token in unnamed]


def token_question(token: Address, found: KnownEntities, pinned: BlockRef, limit: int) -> Question:
    """Asks a token for what it says of itself."""

    def read(answers: Sequence[_Answer]) -> None:
        views = read_views(answers)
        found.labels[token] = Label(token, views.symbol, views.name, views.decimals, views.supply_raw)

    return Question(view_calls(token, pinned, limit), read)


def _call(call: Call, pinned: BlockRef, limit: int) -> RpcCall:
    asked = {"to": call.to, "data": call.data, "gas": hex(limit)}
    return RpcCall("eth_call", [asked, {"blockHash": pinned.hash}])


def pool_question(
    at: str, kind: str, found: KnownEntities, contracts: Contracts, pinned: BlockRef, limit: int
) -> Question:
    """Asks for the key of what may be a pool of v3 or v4."""
    calls = amm_v3.key_calls(Address(at)) if kind == "v3" else (amm_v4.key_call(at, contracts),)

    def read(answers: Sequence[_Answer]) -> None:
        datas = tuple(bytes_or_empty(answer) for answer in answers)
        if kind == "v3":
            pair = amm_v3.read_key(Address(at), datas, contracts)
            if pair is not None:
                found.markets[at] = KnownMarket(at, amm_v3.KIND, *sides(*pair, found.quotes, contracts))
            return
        key = amm_v4.read_key(at, datas[0], contracts)
        if key is not None:
            found.markets[at] = KnownMarket(at, key[2], *sides(key[0], key[1], found.quotes, contracts))

    return Question([_call(call, pinned, limit) for call in calls], read)


def _curve_question(
    at: str, token: Address, found: KnownEntities, contracts: Contracts, pinned: BlockRef, limit: int
) -> Question:
    calls = launchpad.launch_calls(token, contracts)[:1]

    def read(answers: Sequence[_Answer]) -> None:
        record = launchpad.read_record(token, bytes_or_empty(answers[0])) if answers else None
        if record is not None and record.curve == at:
            found.markets[at] = KnownMarket(at, launchpad_curve.KIND, token, record.quote_address, True)

    return Question([_call(call, pinned, limit) for call in calls], read)


# --- what the logs name ----------------------------------------------------------------------------


def _places(said: Sequence[tuple[int, Said]], contracts: Contracts) -> list[str]:
    """Where something was traded, as the logs tell it: first those that tokens came from or went to, and
    before them those that money did. Whoever makes up trades by the hundred is asked about last."""
    named = dict.fromkeys(
        one.at for _, one in said if isinstance(one, Swapped | CurveTraded | LiquidityMoved)
    )
    money = {contracts.weth, contracts.usdg}
    moves = [one for _, one in said if isinstance(one, Transferred)]
    with_money = {end for one in moves if one.token in money for end in (one.sender, one.recipient)}
    with_any = {end for one in moves for end in (one.sender, one.recipient)}

    def rank(at: str) -> int:
        # Pools of v4 are told of by their manager alone.
        return 0 if at in with_money or len(at) > len(ZERO_ADDRESS) else 1 if at in with_any else 2

    return sorted(named, key=rank)


def _tokens(said: Iterable[tuple[int, Said]], first: Address | None = None) -> list[Address]:
    """Tokens that the logs name; before others those that ``first`` had to do with."""
    own: dict[Address, None] = {}
    others: dict[Address, None] = {}
    for _, one in said:
        if isinstance(one, LaunchedToken):
            own[one.token] = None
            others[one.quote] = None
        elif isinstance(one, LaunchMoved | AllowanceGiven):
            own[one.token] = None
        elif isinstance(one, Transferred):
            (own if first in (one.sender, one.recipient) else others)[one.token] = None
    return list({**own, **others})


def _unknown(said: Sequence[tuple[int, Said]], found: KnownEntities, contracts: Contracts) -> dict[str, str]:
    """Places that nobody told of yet: v3, v4 or curve; in the order of ``_places``."""
    unknown = {}
    for _, one in said:
        if isinstance(one, CurveTraded):
            unknown[one.at] = "curve"
        elif isinstance(one, Swapped | LiquidityMoved):
            unknown[one.at] = "v3" if len(one.at) == 42 else "v4"
    places = _places(said, contracts)
    return {at: unknown[at] for at in places if at not in found.markets}


def _curves(said: Sequence[tuple[int, Said]], unknown: Mapping[str, str]) -> list[tuple[str, Address]]:
    """What says it is a curve, with each token that it may be of: those that moved to it or from it."""
    tokens_at: dict[str, dict[Address, None]] = {at: {} for at, kind in unknown.items() if kind == "curve"}
    for _, one in said:
        if isinstance(one, Transferred):
            for side in {one.sender, one.recipient} & tokens_at.keys():
                tokens_at[side][one.token] = None
    return [(at, token) for at, named in tokens_at.items() for token in list(named)[:_MOST_CURVES_TOKENS]]
