"""What is known of a token before its transfers are read: its venues, who made it, and its first block."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from roundtrip.chain.blocks.spans import read_refs
from roundtrip.chain.holders.first_block import NoArchive, find_creation, find_first_block
from roundtrip.chain.holders.first_logs import find_first_logs
from roundtrip.chain.holders.token_logs import LogSources, VenueSides
from roundtrip.chain.holders.views import find_entry_point_txs
from roundtrip.chain.rpc.client import Meter, RpcCall, hex_bytes
from roundtrip.chain.rpc.daily_budget import BudgetedNode
from roundtrip.domain.base.errors import CallerFault, NodeFault, ReadFailed, ServiceFull
from roundtrip.domain.base.events import PoolPlace
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.domain.base.venue import MAX_VENUES_A_TOKEN, VenueKind
from roundtrip.domain.check.evidence import AnyLaunch, LaunchRecord, Missing, PoolLaunch
from roundtrip.domain.check.price import raw_usd
from roundtrip.domain.holders.book import BookStart
from roundtrip.domain.holders.deployer import Maker
from roundtrip.domain.holders.token_flows import NonWallets
from roundtrip.services.engine.buy_round import BuyRoundResult
from roundtrip.services.engine.candidates import standard_venues, unseen_venues
from roundtrip.services.engine.session import bought_raw, choose_venues
from roundtrip.services.engine.token_check import start_check
from roundtrip.services.runtime.book_cache import reading_budget
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.newest_block import retry_at_newest
from roundtrip.services.support.index_reader import looking
from roundtrip.store.index import cursor, deployers
from roundtrip.store.index.deployers import LaunchSpot
from roundtrip.venues import launchpad, launchpad_curve
from roundtrip.venues.base import Contracts
from roundtrip.venues.entry_point import ENTRY_POINTS

MAX_VENUES = MAX_VENUES_A_TOKEN
_NO_ARCHIVE_RETRY_S = 3600
"""Seconds after which callers may ask again for a token whose first transfers no node keeps."""


@dataclass(frozen=True, slots=True)
class TokenSource:
    """A token after a check's buy round and an index lookup. ``head``: the block up to which transfers are
    read. ``spot``: its launch according to the index. ``places``: the addresses that are not wallets.
    ``opened_in``: by venue, the number of the block in which it opened, where known. ``absent``: standard
    venues that were never opened."""

    head: BlockRef
    buy_round: BuyRoundResult
    decimals: int
    supply_raw: int
    launch: AnyLaunch | None
    spot: LaunchSpot | None
    log_sources: LogSources
    places: NonWallets
    opened_in: Mapping[str, int]
    absent: frozenset[str] = frozenset()

    @property
    def token(self) -> Address:
        """The token that the source is about."""
        return self.buy_round.run.token

    def usd_a_unit(self, policy: Policy) -> Fraction | None:
        """Dollars for one base unit, at the spot price of the venue where an ordinary buy brought most; None:
        not known. The amount that a buy brings cannot be faked; a reported price can."""
        bought = [
            venue
            for venue in choose_venues(self.buy_round.data.venues, policy)
            if venue.main_size() is not None
        ]
        preferred = [venue for venue in bought if not venue.place.venue.rival_hook()] or bought
        if not preferred:
            return None
        best = max(preferred, key=bought_raw)
        market = self.buy_round.run.setting.market
        return raw_usd(best.place.venue, best.facts, self.token, market, policy)

    def is_new(self, at: str, number: int) -> bool:
        """Whether the venue is known to have opened after that block."""
        return self.opened_in.get(at, -1) > number


async def read_source(ctx: Context, token: Address, meter: Meter) -> TokenSource:
    """Runs the buy round of a check and reads the index. Raises CallerFault (not_a_token), NodeFault,
    ServiceFull."""
    return await retry_at_newest(ctx, lambda: _read_source(ctx, token, meter))


async def _read_source(ctx: Context, token: Address, meter: Meter) -> TokenSource:
    head = ctx.heads.current()
    buy_round = await start_check(ctx, head, token, meter)
    facts, launch = buy_round.data.facts, buy_round.data.launch
    if isinstance(facts.code_bytes, Missing) or isinstance(facts.total_supply_raw, Missing):
        raise NodeFault("no usable data about the token returned")
    if facts.code_bytes == 0 or facts.balance_answers is False or facts.total_supply_raw is None:
        raise CallerFault(
            "not_a_token",
            "There is no token at this address. Use the contract address of an ERC-20 token, 0x and 40 hex "
            "digits, such as the one that look_up finds for its symbol.",
        )
    if isinstance(launch, Missing) or isinstance(facts.decimals, Missing):
        raise NodeFault("no usable data about the token returned")
    spot, pools = await _read_index(ctx, token)
    venues = _known_venues(ctx, buy_round, launch, pools)
    return TokenSource(
        head=await _read_target_block(ctx, head.block),
        buy_round=buy_round,
        decimals=facts.decimals or 0,
        supply_raw=facts.total_supply_raw,
        launch=launch,
        spot=spot,
        log_sources=LogSources(token, venues, ctx.contracts),
        places=find_non_wallets(token, venues, ctx.contracts),
        opened_in={pool.at: pool.spot.block_number for pool in pools},
        absent=_standard_venues(ctx, token) - venues.keys() if buy_round.candidates.complete else frozenset(),
    )


async def _read_target_block(ctx: Context, head: BlockRef) -> BlockRef:
    """The block up to which transfers are read. Raises NodeFault."""
    if not ctx.books.behind_blocks:
        return head
    (ref,) = await read_refs(ctx.node, [max(0, head.number - ctx.books.behind_blocks)])
    if ref is None:
        raise NodeFault("no block of some seconds ago returned")
    return ref[0]


async def _read_index(ctx: Context, token: Address) -> tuple[LaunchSpot | None, list[PoolPlace]]:
    """The token's launch and venues according to the index. Raises ServiceFull (busy): without a known venue,
    its trades would be reported as gifts."""
    async with looking(ctx) as (connection, _):
        return (
            await deployers.launch_of(connection, token),
            await cursor.venues_of(connection, token, MAX_VENUES),
        )


def _known_venues(
    ctx: Context, buy_round: BuyRoundResult, launch: AnyLaunch | None, pools: list[PoolPlace]
) -> dict[str, VenueSides]:
    """Every venue where the token trades or traded, as far as known."""
    token, contracts = buy_round.run.token, ctx.contracts
    venues = {pool.at: _sides_of(pool.kind, token, _quote_of(pool, token)) for pool in pools}
    tried = [trial.place.venue for trial in buy_round.data.venues]
    for venue in (*buy_round.candidates.venues, *tried, *unseen_venues(contracts, token, launch, ())):
        at = venue.pool if venue.pool is not None else venue.pool_id
        if at is not None and at not in venues:
            venues[at] = _sides_of(venue.kind, token, venue.quote_address)
    if isinstance(launch, LaunchRecord) and launch.curve not in venues:
        venues[launch.curve] = _sides_of(launchpad_curve.KIND, token, launch.quote_address)
    return venues


def _standard_venues(ctx: Context, token: Address) -> frozenset[str]:
    """Where the token may trade by the rules of the venues alone; the check tried them if it completed."""
    places = (venue.pool or venue.pool_id for venue in standard_venues(ctx.contracts, token))
    return frozenset(at for at in places if at is not None)


def _quote_of(pool: PoolPlace, token: Address) -> Address:
    return pool.quote if pool.token == token else pool.token


def _sides_of(kind: VenueKind, token: Address, quote: Address) -> VenueSides:
    return VenueSides(kind, token < quote, quote)


def find_non_wallets(token: Address, venues: Mapping[str, VenueSides], contracts: Contracts) -> NonWallets:
    """Addresses that are not wallets: the token's venues, and the network's own contracts."""
    # The id of a v4 pool is longer than an address.
    pools = {Address(at) for at in venues if len(at) == len(token)} | {contracts.v4_pool_manager}
    if contracts.launchpad_hook is not None:
        pools.add(contracts.launchpad_hook)
    beside = (contracts.all_addresses() | ENTRY_POINTS) - pools - {token}
    return NonWallets(frozenset(pools), frozenset(beside))


def history_node(ctx: Context) -> BudgetedNode:
    """The node with the daily budget for reading old transfers."""
    return BudgetedNode(ctx.node, ctx.books.budget, ctx.now_s)


def new_blocks_node(ctx: Context) -> BudgetedNode:
    """The node for the few new blocks. They count in the node's own budget: a used-up budget for old
    transfers must not stop answers about every token."""
    return BudgetedNode(ctx.node, reading_budget(0), ctx.now_s, counts_all=True)


# --- where it begins -------------------------------------------------------------------------------


async def find_start(ctx: Context, source: TokenSource) -> BookStart:
    """Finds where the token's transfers begin, and who made it. Raises NodeFault, ReadFailed,
    ServiceFull (holders_no_archive)."""
    if source.spot is not None:
        number, maker = source.spot.block_number, await _find_maker(ctx, source, None)
    else:
        first = await _find_start_block(ctx, source)
        number, maker = first.number, await _find_maker(ctx, source, first)
    return BookStart(
        token=source.token,
        places=source.places,
        venues=frozenset(source.log_sources.venues),
        first_number=number,
        launch_number=None if source.launch is None else number,
        insiders=_insiders(maker),
        maker=maker,
    )


def _insiders(maker: Maker | None) -> frozenset[Address]:
    if maker is None:
        return frozenset()
    return frozenset({maker.deployer, *maker.creators})


async def _find_start_block(ctx: Context, source: TokenSource) -> BlockRef:
    """Bisects for the first block with the token's code; if the node has pruned old states, searches for the
    token's first transfer. Raises ReadFailed, ServiceFull (holders_no_archive)."""
    try:
        first = await find_first_block(history_node(ctx), source.token, source.head)
        if first is None:
            raise ReadFailed(NodeFault("the first block of the token's transfers not returned"))
        return first
    except NoArchive:
        pass
    try:
        first_log_block = await find_first_logs(history_node(ctx), source.token, source.head)
    except NodeFault as fault:
        raise ReadFailed(fault) from fault
    if first_log_block is None:
        raise ServiceFull(
            "holders_no_archive",
            "We found no transfer of this token: it has sent none yet, or no node of this service keeps the "
            "first.",
            _NO_ARCHIVE_RETRY_S,
        )
    return first_log_block


async def _find_maker(ctx: Context, source: TokenSource, first: BlockRef | None) -> Maker | None:
    """The deployer that the launchpad names; else the maker of the contract, or the sender of the transaction
    that made it. Raises ReadFailed."""
    try:
        if isinstance(source.launch, LaunchRecord | PoolLaunch):
            return await _read_launcher(ctx, source, source.launch)
        creation = None if first is None else await find_creation(ctx.node, source.token, first)
    except NodeFault as fault:
        # The maker is searched once, when the book is started; a maker missed then stays unknown.
        raise ReadFailed(fault) from fault
    return None if creation is None else Maker(creation.sender, creation.how, (), creation.tx_hash)


async def _read_launcher(ctx: Context, source: TokenSource, launch: LaunchRecord | PoolLaunch) -> Maker:
    spot = source.spot
    creators = {await _read_tax_receiver(ctx, source), await _read_sender(ctx, spot)} - {
        None,
        launch.deployer,
    }
    other_creators = tuple(sorted(creator for creator in creators if creator is not None))
    return Maker(launch.deployer, "launchpad", other_creators, None if spot is None else spot.tx_hash)


async def update_maker(ctx: Context, source: TokenSource, known: Maker) -> Maker:
    """The maker with what the index has learned since about the same deployer's launch. Raises ReadFailed,
    ServiceFull."""
    current = await _find_maker(ctx, source, None)
    return current if current is not None and current.deployer == known.deployer else known


async def _read_tax_receiver(ctx: Context, source: TokenSource) -> Address | None:
    """The receiver of the launchpad's creator tax; None: there is none, or it is not reported. Raises
    NodeFault."""
    calls = launchpad.launch_calls(source.token, ctx.contracts)
    if not calls or not isinstance(source.launch, LaunchRecord):
        return None
    call = {"to": calls[0].to, "data": calls[0].data}
    (answer,) = await ctx.node.batch([RpcCall("eth_call", [call, {"blockHash": source.head.hash}])])
    record = launchpad.read_record(source.token, hex_bytes(answer))
    return None if record is None or record.creator == ZERO_ADDRESS else record.creator


async def _read_sender(ctx: Context, spot: LaunchSpot | None) -> Address | None:
    """The sender of the launch, if that is not its deployer. A bundler of account operations does not count.
    Raises NodeFault, ServiceFull."""
    if spot is None or spot.sender in (None, spot.deployer):
        return None
    operated = (await find_entry_point_txs(ctx.node, [spot.tx_hash], Meter()))[spot.tx_hash]
    if operated is None:
        raise NodeFault("the launch's transaction not returned")
    return None if operated else spot.sender
