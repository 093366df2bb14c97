"""Everything that is known of who holds a token, at one block: its book, what it tells itself, where its
wallets come from, and which of them win elsewhere.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace

from roundtrip.chain.holders.views import FirstFunding, entry_point_txs, funding_txs, had_before, was_made_in
from roundtrip.chain.holders.wallet_views import code_calls, read_codes
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, quantity
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.names import text_in
from roundtrip.domain.base.types import BPS, Address, BlockRef
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.holders.book import HolderBook, LaunchBuys
from roundtrip.domain.holders.deployer import Maker
from roundtrip.domain.holders.findings import (
    MIN_BUNDLE,
    TOP,
    UNKNOWN,
    Concentration,
    HolderInputs,
    biggest,
    concentration,
    has_bought,
    is_funded_by_deployer,
    launch_groups,
)
from roundtrip.domain.holders.read_state import ReadStatus, read_status
from roundtrip.domain.holders.ties import disagreement
from roundtrip.services.runtime.book_cache import OpenBook
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import looking
from roundtrip.store.community import public_names
from roundtrip.store.holders import smart_money
from roundtrip.store.holders.smart_money import BoardRow
from roundtrip.store.holders.smart_money import WinningClose as KeptWin
from roundtrip.store.index.cursor import may_trade_beyond

from .balances import MOST_BUYERS, Balances, balances
from .book_reader import read
from .findings import NEAREST, HolderRecord, HolderWin, LaunchCrowd, Why, WinFinding
from .funding import BUSY_NONCE, FunderFamilies, kin
from .late_venues import late_venues
from .schema import Window
from .sources import MOST_PLACES, TokenSource, source

LEAST_TIED = 2
"""Two of one funder are told as a pair."""
LEAST_FUNDING_WEI = 10**12
"""Less pays for no transaction: whoever sends it only wants to be taken for the funder."""
MOST_BY_LOGS = 60
"""Of those who have most by the logs, pools among them, so many are asked of, and of those who have less than
nothing by them."""
MOST_BELOW_ZERO = 20
MANY_WALLETS = 50_000
"""How even they are is counted in 30 ms."""
MOST_WINS = 40
"""Of so many winners the biggest win is looked up: of one with many thousand closings it takes 3 ms."""


async def gather_holders(ctx: Context, token: Address, meter: Meter) -> HolderRecord:
    """Raises CallerFault (not_a_token), NodeFault, ReadFailed, ServiceFull."""
    found = await source(ctx, token, meter)
    opened = ctx.books.get(token)
    if opened is not None and opened.state == "reading" and ctx.books.is_locked(token):
        # A job is just reading on.
        return await _of_launch(ctx, found, opened, meter)
    async with ctx.books.alone(token):
        opened = await read(ctx, found)
        if opened.state == "reading":
            return await _of_launch(ctx, found, opened, meter)
        return await _of_all(ctx, found, opened, meter)


def _collect_record(
    ctx: Context,
    found: TokenSource,
    at: BlockRef,
    told: HolderInputs,
    launch: LaunchBuys | None,
    status: ReadStatus,
    why: tuple[Why, ...] = (),
) -> HolderRecord:
    symbol = found.trip.data.facts.symbol_data
    usd = found.usd_a_unit(ctx.policy)
    return HolderRecord(
        chain_id=ctx.chain_id,
        token=found.token,
        symbol=text_in(bytes.fromhex(symbol[2:])) if isinstance(symbol, str) else None,
        decimals=found.decimals,
        supply_raw=told.supply_raw,
        block=at,
        checked_s=int(ctx.now_s()),
        status="partial" if why and status == "complete" else status,
        transfers_read=told.book.transfers,
        why=why,
        told=told,
        launch=launch,
        market_cap_micro_usd=None if usd is None else usd * told.supply_raw * USDG_UNIT,
    )


# --- while it is being read ------------------------------------------------------------------------


async def _of_launch(ctx: Context, found: TokenSource, opened: OpenBook, meter: Meter) -> HolderRecord:
    """The launch alone, once its place and all who bought in it are known for good: what these hold is asked
    of the token. A job may read on meanwhile, even to the end: nothing of that is told here."""
    at, book = found.head, opened.book
    is_known = not opened.pruned and book.launching.window is not None and book.launch_is_over()
    is_known = is_known and not await _is_unread(ctx, found, opened)
    launch = book.launch() if is_known else None
    is_sure = launch is not None and await _is_sure(ctx, book, meter)
    told = HolderInputs(book, found.supply_raw, {}, False, book.beginning.maker if is_sure else None, {})
    if launch is None:
        return _collect_record(ctx, found, at, told, None, "reading")
    held = await balances(ctx, book, at, found.supply_raw, (), meter)
    told = replace(told, supply_raw=held.supply_raw, balances=held.told)
    told = await _with_kin(ctx, told, launch, (), held, meter)
    return _collect_record(ctx, found, at, told, launch, "reading")


# --- when it is read -------------------------------------------------------------------------------


async def _of_all(ctx: Context, found: TokenSource, opened: OpenBook, meter: Meter) -> HolderRecord:
    book = opened.book
    assert book.block is not None
    # What is read no further is told with balances as they are now.
    at = found.head if opened.state == "capped" else book.block
    maker = book.beginning.maker
    is_sure = await _is_sure(ctx, book, meter)
    moved = opened.standing.moved
    moved_count = None if moved is None else len(moved)
    first, below = opened.standing.look(book.wallets)
    who = {*_insiders(found, opened), *first[:MOST_BY_LOGS], *below[:MOST_BELOW_ZERO]}
    held = await balances(ctx, book, at, found.supply_raw, who, meter)
    launch = None if opened.pruned else book.launch()
    sure = maker if is_sure else None
    told = HolderInputs(book, held.supply_raw, held.told, held.drifts, sure, {}, leaders=tuple(first))
    top = [wallet for wallet, _ in biggest(told, TOP)]
    told = await _with_kin(ctx, told, launch, top, held, meter)
    winners, crowd, scams = await _known_elsewhere(ctx, told, top, maker)
    told = replace(told, winners=frozenset(one.wallet for one in winners or ()))
    why = _why(opened, held, await _is_unread(ctx, found, opened))
    status = "partial" if why else read_status(opened.state, opened.pruned)
    return replace(
        _collect_record(ctx, found, at, told, launch, status, why),
        winners=winners,
        crowd=crowd,
        disagreement=disagreement(told) if book.block == at and not opened.pruned else None,
        concentration=_spread(opened, told, moved_count),
        unsure_maker=None if is_sure else maker,
        scams=scams,
    )


async def _is_sure(ctx: Context, book: HolderBook, meter: Meter) -> bool:
    """Whether the token was made where its maker was looked for. Without an archive that is where it first
    spoke: whoever made it may have said nothing, long before."""
    begun = book.beginning
    if begun.maker is None or begun.maker.source != "launch_tx":
        return True
    return bool(await was_made_in(ctx.node, begun.token, begun.first_number, meter))


def _spread(opened: OpenBook, told: HolderInputs, moved: int | None) -> Concentration | None:
    """Counted anew for every answer; of very many wallets only once a hundredth of them moved."""
    wallets, before = len(told.book.wallets), opened.spread_moved
    opened.spread_moved = None if before is None or moved is None else before + moved
    is_old = opened.spread_moved is None or opened.spread_moved * 100 > wallets
    if wallets < MANY_WALLETS or is_old or told.drifts:
        opened.spread, opened.spread_moved = concentration(told), 0
    return opened.spread


def _insiders(found: TokenSource, opened: OpenBook) -> set[Address]:
    """Who may have what no transfer tells."""
    facts, maker = found.trip.data.facts, opened.book.beginning.maker
    told = {facts.owner, facts.proxy_admin, found.token}
    told |= set() if maker is None else {maker.deployer, *maker.creators}
    return {one for one in told if one is not None and not isinstance(one, Missing)}


async def _is_unread(ctx: Context, found: TokenSource, opened: OpenBook) -> bool:
    """Whether trades may be missing, of places that are not known, or came to be known late, or are known no
    more, or beyond those that are read."""
    if opened.unread_venues or late_venues(found, opened):
        return True
    if len(found.sources.venues) < MOST_PLACES:
        return not found.trip.candidates.complete or not opened.book.lost_venues.keys() <= found.absent
    try:
        async with looking(ctx) as (connection, _):
            return await may_trade_beyond(connection, found.token, found.sources.venues)
    except ServiceFull:
        return True


def _why(opened: OpenBook, held: Balances, is_unread: bool) -> tuple[Why, ...]:
    """Why it is partial; nothing where it is complete."""
    holds: dict[Why, bool] = {
        "capped": opened.state == "capped",
        "pruned": opened.pruned,
        # Without its oldest transfers they add up to nothing of what it tells.
        "drifts": held.drifts and not opened.pruned,
        "unverified": bool(held.unread),
        "venues_unread": is_unread,
        "claims": 0 < held.supply_raw <= opened.book.claimed_raw * BPS,
    }
    return tuple(why for why, is_so in holds.items() if is_so)


# --- who they are ----------------------------------------------------------------------------------


async def _with_kin(
    ctx: Context,
    told: HolderInputs,
    launch: LaunchBuys | None,
    top: Sequence[Address],
    held: Balances,
    meter: Meter,
) -> HolderInputs:
    """With where the top and the launch's buyers come from, and what ties them."""
    buys = () if launch is None else launch.buys
    first = heapq.nlargest(MOST_BUYERS, buys, key=lambda buy: buy.bought_raw)
    behind = [] if told.maker is None else [told.maker.deployer, *told.maker.creators]
    others = [*behind, *(buy.wallet for buy in first)]
    came = await kin(ctx, told.book, held.at, top, others, held.contracts, meter)
    told = replace(told, wallets=came.wallets, families=came.families)
    launch = launch or LaunchBuys(0, 0, ())
    told = await _with_fundings(ctx, told, launch, came, meter)
    never, unasked = await _never_group(ctx, told, launch, held.at, meter)
    hidden = {
        wallet: replace(told.wallets.get(wallet, UNKNOWN), funder=None, funder_known=False)
        for group in launch_groups(told, launch)
        if {group.funder, group.tx_hash} & unasked
        for wallet in group.wallets
    }
    return replace(told, wallets={**told.wallets, **hidden}, never_group=never)


async def _never_group(
    ctx: Context, told: HolderInputs, launch: LaunchBuys, at: BlockRef, meter: Meter
) -> tuple[frozenset[str], frozenset[str | None]]:
    """Funders that are contracts, a deployer who is as busy as an exchange, and transactions of entry points;
    and of whom that could not be found out: these group nobody either, and leave open who belongs to whom."""
    found = launch_groups(told, launch)
    funders = sorted({group.funder for group in found if group.funder is not None})
    txs = sorted({group.tx_hash for group in found if group.tx_hash is not None})
    never: set[str] = set()
    unasked: set[str | None] = set()
    if funders:
        answers = await ctx.node.batch(code_calls(funders, at), meter)
        codes = read_codes(answers, funders, ctx.chain_id)
        never |= {funder for funder in funders if codes[funder] is not False}
        unasked |= {funder for funder in funders if codes[funder] is None}
    if told.maker is not None and any(is_funded_by_deployer(told, wallet) for wallet in told.wallets):
        deployer = told.maker.deployer
        call = RpcCall("eth_getTransactionCount", [deployer, {"blockHash": at.hash}])
        (answer,) = await ctx.node.batch([call], meter)
        if isinstance(answer, RpcError) or quantity(answer) >= BUSY_NONCE:
            never.add(deployer)
    if txs:
        operated = await entry_point_txs(ctx.node, txs, meter)
        never |= {tx_hash for tx_hash in txs if operated[tx_hash] is not False}
        unasked |= {tx_hash for tx_hash in txs if operated[tx_hash] is None}
    return frozenset(never), frozenset(unasked)


async def _with_fundings(
    ctx: Context, told: HolderInputs, launch: LaunchBuys, came: FunderFamilies, meter: Meter
) -> HolderInputs:
    """With the transaction that shows each tie to a funder, and without ties that are none: whoever had
    something before that payment was funded by somebody else, and next to nothing is no funding."""
    # What weighs most comes first: no more than some blocks are read.
    tied = [wallet for wallet in told.wallets if is_funded_by_deployer(told, wallet)]
    for least in (MIN_BUNDLE, LEAST_TIED):
        groups = launch_groups(told, launch, least)
        tied += [wallet for group in groups if group.funder is not None for wallet in group.wallets]
    wanted = [
        FirstFunding(funder, wallet, came.funded[wallet])
        for wallet in dict.fromkeys(tied)
        if wallet in came.funded and (funder := told.wallets[wallet].funder) is not None
    ]
    if not wanted:
        return told
    paid = await funding_txs(ctx.node, wanted, meter)
    before = await had_before(
        ctx.node, [(one.wallet, one.block_number) for one in wanted], ctx.contracts.weth, meter
    )
    shown = {}
    for wallet, payment in paid.items():
        known = told.wallets[wallet]
        if before[wallet] or (payment is not None and payment.paid_wei < LEAST_FUNDING_WEI):
            shown[wallet] = replace(known, funder=None)
        elif payment is None and before[wallet] is None:
            # Neither how much it was nor what was there before it: it ties nobody.
            shown[wallet] = replace(known, funder=None, funder_known=False)
        else:
            shown[wallet] = replace(known, funded_tx=None if payment is None else payment.tx_hash)
    return replace(told, wallets={**told.wallets, **shown})


# --- what the index knows of them ------------------------------------------------------------------


async def _known_elsewhere(
    ctx: Context, told: HolderInputs, top: Sequence[Address], perhaps: Maker | None
) -> tuple[tuple[HolderWin, ...] | None, LaunchCrowd | None, Mapping[Address, int]]:
    """Who of all that ever had it wins elsewhere, and who of the top comes back to the deployer's launches
    (None: the index could not be asked); how many mark whom of the top, or who ``perhaps`` deployed it, as a
    scam."""
    maker = told.maker
    scams: Mapping[Address, int] = {}
    try:
        async with looking(ctx) as (connection, stands):
            scams = await public_names.scams(connection, [*top, *([perhaps.deployer] if perhaps else [])])
            if stands is None:
                return None, None, scams
            rows = await smart_money.winners(connection)
            met = sorted((row for wallet, row in rows.items() if has_bought(told, wallet)), key=_nearness)
            best = await smart_money.biggest_wins(connection, [row.wallet for row in met[:MOST_WINS]])
            crowd = None
            if maker is not None:
                deployer, token = maker.deployer, told.book.beginning.token
                found = await smart_money.repeat_buyers(connection, deployer, token, top)
                crowd = LaunchCrowd(found.launches_by_wallet, found.deployer_launches)
    except ServiceFull:
        return None, None, scams
    return tuple(_winner(row, best.get(row.wallet)) for row in met), crowd, scams


def _nearness(row: BoardRow) -> tuple[int, int]:
    return list(NEAREST).index(_window(row)), row.rank


def _window(row: BoardRow) -> Window:
    return next(one for one in NEAREST if one == row.span)


def _winner(row: BoardRow, best: KeptWin | None) -> HolderWin:
    win = None
    if best is not None:
        win = WinFinding(best.token, best.symbol, best.profit_wei, best.spent_wei, best.at_s)
    return HolderWin(row.wallet, _window(row), row.rank, row.profit_wei, row.won, row.closed, win)
