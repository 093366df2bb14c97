"""What a token's holders are read from: where it trades, who made it, and where its transfers begin."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from roundtrip.chain.blocks.spans import read_refs
from roundtrip.chain.blocks.venue_index import MOST_VENUES_A_TOKEN
from roundtrip.chain.holders.first_block import NoArchive, first_block, maker_of
from roundtrip.chain.holders.first_logs import first_logs
from roundtrip.chain.holders.token_logs import Sources, VenueSides
from roundtrip.chain.holders.views import entry_point_txs
from roundtrip.chain.rpc.client import Meter, RpcCall, hex_bytes
from roundtrip.chain.rpc.daily_budget import BudgetedNode
from roundtrip.domain.base.errors import CallerFault, NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.base.venue import VenueKind
from roundtrip.domain.check.evidence import AnyLaunch, LaunchRecord, Missing, PoolLaunch
from roundtrip.domain.check.price import raw_usd
from roundtrip.domain.holders.book import BookStart
from roundtrip.domain.holders.deployer import Maker
from roundtrip.domain.holders.token_flows import NonWallets
from roundtrip.services.check.buy_round import BuyRoundResult
from roundtrip.services.check.candidates import standard_venues, unseen_venues
from roundtrip.services.check.pipeline import start_check
from roundtrip.services.check.session import bought_raw, choose_venues
from roundtrip.services.runtime.book_cache import reading_budget
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.newest_block import retry_at_newest
from roundtrip.services.support.index_reader import looking
from roundtrip.store.index import cursor, deployers
from roundtrip.store.index.deployers import LaunchSpot
from roundtrip.venues import launchpad, launchpad_curve
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS

MOST_PLACES = MOST_VENUES_A_TOKEN
_NO_ARCHIVE_S = 3600


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A token after trip 1 and a look into the index. ``spot``: its launch, as the index knows it.
    ``opened_at``: the block in which a venue opened, where that is known. ``absent``: standard venues that
    nobody has opened."""

    head: BlockRef
    trip: BuyRoundResult
    decimals: int
    supply_raw: int
    launch: AnyLaunch | None
    spot: LaunchSpot | None
    sources: Sources
    places: NonWallets
    opened_at: Mapping[str, int]
    absent: frozenset[str] = frozenset()

    @property
    def token(self) -> Address:
        """Whose holders are asked for."""
        return self.trip.run.token

    def usd_a_unit(self, policy: Policy) -> Fraction | None:
        """Dollars for one base unit, at the spot price of the venue where an ordinary buy brought most; None:
        not known. What brings most to whoever pays cannot be made up: a claim of a price can."""
        bought = [one for one in choose_venues(self.trip.data.venues, policy) if one.main_size() is not None]
        fair = [one for one in bought if not one.place.venue.rival_hook()] or bought
        if not fair:
            return None
        venue = max(fair, key=bought_raw)
        market = self.trip.run.setting.market
        return raw_usd(venue.place.venue, venue.facts, self.token, market, policy)

    def is_new(self, at: str, number: int) -> bool:
        """Whether the venue is known to have opened after that block."""
        return self.opened_at.get(at, -1) > number


async def source(ctx: Context, token: Address, meter: Meter) -> TokenSource:
    """Trip 1 of a check, and what the index knows. Raises CallerFault (not_a_token), NodeFault,
    ServiceFull."""
    return await retry_at_newest(ctx, lambda: _source(ctx, token, meter))


async def _source(ctx: Context, token: Address, meter: Meter) -> TokenSource:
    head = ctx.heads.current()
    trip = await start_check(ctx, head, token, meter)
    facts, launch = trip.data.facts, trip.data.launch
    if isinstance(facts.code_bytes, Missing) or isinstance(facts.total_supply_raw, Missing):
        raise NodeFault("it did not tell what the token is")
    if facts.code_bytes == 0 or facts.balance_answers is False or facts.total_supply_raw is None:
        raise CallerFault("not_a_token", "There is no token at this address.")
    if isinstance(launch, Missing) or isinstance(facts.decimals, Missing):
        raise NodeFault("it did not tell what the token is")
    spot, pools = await _read_index(ctx, token)
    venues = _venues(ctx, trip, launch, pools)
    return TokenSource(
        head=await _settled_block(ctx, head.block),
        trip=trip,
        decimals=facts.decimals or 0,
        supply_raw=facts.total_supply_raw,
        launch=launch,
        spot=spot,
        sources=Sources(token, venues, ctx.contracts),
        places=places(token, venues, ctx.contracts),
        opened_at={pool.at: pool.spot.block_number for pool in pools},
        absent=_standard(ctx, token) - venues.keys() if trip.candidates.complete else frozenset(),
    )


async def _settled_block(ctx: Context, head: BlockRef) -> BlockRef:
    """The block that is read up to. Raises NodeFault."""
    if not ctx.books.behind_blocks:
        return head
    (found,) = await read_refs(ctx.node, [max(0, head.number - ctx.books.behind_blocks)])
    if found is None:
        raise NodeFault("it does not have a block of some seconds ago")
    return found[0]


async def _read_index(ctx: Context, token: Address) -> tuple[LaunchSpot | None, list[PoolPlace]]:
    """What the index knows of its launch and of its places. Raises ServiceFull (busy): read without a place
    that is known, its trades would be told as gifts."""
    async with looking(ctx) as (connection, _):
        return (
            await deployers.launch_of(connection, token),
            await cursor.venues_of(connection, token, MOST_PLACES),
        )


def _venues(
    ctx: Context, trip: BuyRoundResult, launch: AnyLaunch | None, pools: list[PoolPlace]
) -> dict[str, VenueSides]:
    """Every place where it trades or traded, as far as anybody knows."""
    token, contracts = trip.run.token, ctx.contracts
    found = {pool.at: _quoted_side(pool.kind, token, _other(pool, token)) for pool in pools}
    tried = [tried.place.venue for tried in trip.data.venues]
    for venue in (*trip.candidates.venues, *tried, *unseen_venues(contracts, token, launch, ())):
        at = venue.pool if venue.pool is not None else venue.pool_id
        if at is not None and at not in found:
            found[at] = _quoted_side(venue.kind, token, venue.quote_address)
    if isinstance(launch, LaunchRecord) and launch.curve not in found:
        found[launch.curve] = _quoted_side(launchpad_curve.KIND, token, launch.quote_address)
    return found


def _standard(ctx: Context, token: Address) -> frozenset[str]:
    """Where it may trade by the rules of the venues alone: tried as long as some may be unknown."""
    places = (venue.pool or venue.pool_id for venue in standard_venues(ctx.contracts, token))
    return frozenset(at for at in places if at is not None)


def _other(pool: PoolPlace, token: Address) -> Address:
    return pool.quote if pool.token == token else pool.token


def _quoted_side(kind: VenueKind, token: Address, quote: Address) -> VenueSides:
    return VenueSides(kind, token < quote, quote)


def places(token: Address, venues: Mapping[str, VenueSides], contracts: Contracts) -> NonWallets:
    """Who is nobody's wallet: where it lies to be bought, and the network's own machinery."""
    pools = {Address(at) for at in venues if len(at) == len(token)} | {contracts.v4_pool_manager}
    if contracts.launchpad_hook is not None:
        pools.add(contracts.launchpad_hook)
    beside = (contracts.all_addresses() | ENTRY_POINTS) - pools - {token}
    return NonWallets(frozenset(pools), frozenset(beside))


def reading_node(ctx: Context) -> BudgetedNode:
    """The node, for what a read asks of it: all of that comes off the budget of reading."""
    return BudgetedNode(ctx.node, ctx.books.budget, ctx.now_s)


def near_node(ctx: Context) -> BudgetedNode:
    """The node, for the little that is new: all of that comes off its own budget. Else nobody would be told
    of any token once somebody has spent the one of reading."""
    return BudgetedNode(ctx.node, reading_budget(0), ctx.now_s, counts_all=True)


# --- where it begins -------------------------------------------------------------------------------


async def beginning(ctx: Context, found: TokenSource) -> BookStart:
    """Where its transfers begin, and who made it. Raises NodeFault, ServiceFull (holders_no_archive)."""
    if found.spot is not None:
        number, maker = found.spot.block_number, await _maker(ctx, found, None)
    else:
        first = await _first(ctx, found)
        number, maker = first.number, await _maker(ctx, found, first)
    return BookStart(
        token=found.token,
        places=found.places,
        venues=frozenset(found.sources.venues),
        first_number=number,
        launch_number=None if found.launch is None else number,
        insiders=_insiders(maker),
        maker=maker,
    )


def _insiders(maker: Maker | None) -> frozenset[Address]:
    if maker is None:
        return frozenset()
    return frozenset({maker.deployer, *maker.creators})


async def _first(ctx: Context, found: TokenSource) -> BlockRef:
    """By bisection on its code; where the node has let old states go, by its first transfer. Raises
    ReadFailed, ServiceFull (holders_no_archive)."""
    try:
        told = await first_block(reading_node(ctx), found.token, found.head)
        if told is None:
            raise ReadFailed(NodeFault("it did not tell where the token's transfers begin"))
        return told.block
    except NoArchive:
        pass
    try:
        spoken = await first_logs(reading_node(ctx), found.token, found.head)
    except NodeFault as fault:
        raise ReadFailed(fault) from fault
    if spoken is None:
        raise ServiceFull(
            "holders_no_archive",
            "This token is older than the index, and no node here tells where its transfers begin.",
            _NO_ARCHIVE_S,
        )
    return spoken


async def _maker(ctx: Context, found: TokenSource, first: BlockRef | None) -> Maker | None:
    """Whom the launchpad names; else who made the contract, or sent the transaction that did. Raises
    ReadFailed."""
    try:
        if isinstance(found.launch, LaunchRecord | PoolLaunch):
            return await _launcher(ctx, found, found.launch)
        told = None if first is None else await maker_of(ctx.node, found.token, first)
    except NodeFault as fault:
        # A book is begun once: who is not known then is not known for good.
        raise ReadFailed(fault) from fault
    return None if told is None else Maker(told.sender, told.how, (), told.tx_hash)


async def _launcher(ctx: Context, found: TokenSource, launch: LaunchRecord | PoolLaunch) -> Maker:
    spot = found.spot
    creators = {await _tax_receiver(ctx, found), await _sender(ctx, spot)} - {None, launch.deployer}
    others = tuple(sorted(one for one in creators if one is not None))
    return Maker(launch.deployer, "launchpad", others, None if spot is None else spot.tx_hash)


async def made_by(ctx: Context, found: TokenSource, known: Maker) -> Maker:
    """With what the index has come to know since of who was behind the same deployer's launch. Raises
    NodeFault, ServiceFull."""
    told = await _maker(ctx, found, None)
    return told if told is not None and told.deployer == known.deployer else known


async def _tax_receiver(ctx: Context, found: TokenSource) -> Address | None:
    """Whom the launchpad pays the creator's tax; None: nobody, or nobody that is told. Raises NodeFault."""
    calls = launchpad.launch_calls(found.token, ctx.contracts)
    if not calls or not isinstance(found.launch, LaunchRecord):
        return None
    asked = {"to": calls[0].to, "data": calls[0].data}
    (answer,) = await ctx.node.batch([RpcCall("eth_call", [asked, {"blockHash": found.head.hash}])])
    record = launchpad.read_record(found.token, hex_bytes(answer))
    return None if record is None or record.creator == ZERO_ADDRESS else record.creator


async def _sender(ctx: Context, spot: LaunchSpot | None) -> Address | None:
    """Who sent the launch, where that is not its deployer: whoever runs others' operations is nobody here.
    Raises NodeFault, ServiceFull."""
    if spot is None or spot.sender in (None, spot.deployer):
        return None
    operated = (await entry_point_txs(ctx.node, [spot.tx_hash], Meter()))[spot.tx_hash]
    if operated is None:
        raise NodeFault("it did not tell of the launch's transaction")
    return None if operated else spot.sender
