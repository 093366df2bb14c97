"""Collects everything known of who holds a token at one block: its book, the balances that it reports, the
origins of its wallets, and which of them win elsewhere."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace

from roundtrip.chain.holders.views import (
    FirstFunding,
    find_entry_point_txs,
    find_funding_txs,
    had_before,
    was_made_in,
)
from roundtrip.chain.holders.wallet_views import code_calls, read_codes
from roundtrip.chain.rpc.client import Meter, RpcCall, RpcError, quantity
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.names import text_in
from roundtrip.domain.base.types import BPS, Address, BlockRef
from roundtrip.domain.check.evidence import Missing
from roundtrip.domain.check.price import USDG_UNIT
from roundtrip.domain.holders.balance_drift import exceeds_supply
from roundtrip.domain.holders.book import HolderBook, LaunchBuys
from roundtrip.domain.holders.deployer import Maker
from roundtrip.domain.holders.findings import (
    MIN_BOUGHT_PART,
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
from roundtrip.domain.holders.launch_groups import BuyerGroup
from roundtrip.domain.holders.purses import funder_groups
from roundtrip.domain.holders.read_state import ReadStatus, read_status
from roundtrip.domain.holders.ties import disagreement
from roundtrip.services.runtime.book_cache import OpenBook
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.index_reader import looking
from roundtrip.store.community import public_names
from roundtrip.store.holders import smart_money
from roundtrip.store.holders.smart_money import BoardRow, SmartCrowd, WinningClose
from roundtrip.store.index.cursor import may_trade_beyond

from .balances import MAX_BUYERS, Balances, read_balances
from .book_reader import read_book
from .findings import HolderRecord, Why, nearness
from .funding import BUSY_NONCE, FunderFamilies, trace_wallets
from .late_venues import late_venues
from .sources import MAX_VENUES, TokenSource, read_source

MIN_TIED = 2
"""Two wallets with one funder are reported as a pair."""
MIN_FUNDING_WEI = 10**12
"""Less cannot pay for a transaction: its sender only wants to be taken for the funder."""
MAX_BY_LOGS = 60
"""How many wallets with the largest balances by the logs are asked for their balance, pools among them, and
how many with a balance below zero."""
MAX_BELOW_ZERO = 20
MANY_WALLETS = 50_000
"""From so many wallets on, concentration is not computed for every answer: it takes 30 ms."""
MAX_WINS = 40
"""Winners whose biggest win is read: for a wallet with many thousand closings that takes 3 ms."""


async def gather_holders(
    ctx: Context, token: Address, meter: Meter, also: Sequence[Address] = ()
) -> HolderRecord:
    """Collects the record, reading transfers first as far as that is quick. ``also``: accounts of which as
    much is read as of the biggest holders. Raises CallerFault (not_a_token), NodeFault, ReadFailed,
    ServiceFull."""
    source = await read_source(ctx, token, meter)
    open_book = ctx.books.get(token)
    if open_book is not None and open_book.state == "reading" and ctx.books.is_locked(token):
        # A job is reading the token at the moment.
        return await _collect_launch(ctx, source, open_book, meter)
    async with ctx.books.alone(token):
        open_book = await read_book(ctx, source)
        if open_book.state == "reading":
            return await _collect_launch(ctx, source, open_book, meter)
        return await _collect_all(ctx, source, open_book, also, meter)


def _collect_record(
    ctx: Context,
    source: TokenSource,
    at: BlockRef,
    inputs: HolderInputs,
    launch: LaunchBuys | None,
    status: ReadStatus,
    why: tuple[Why, ...] = (),
) -> HolderRecord:
    symbol = source.buy_round.data.facts.symbol_data
    usd = source.usd_a_unit(ctx.policy)
    return HolderRecord(
        chain_id=ctx.chain_id,
        token=source.token,
        symbol=text_in(bytes.fromhex(symbol[2:])) if isinstance(symbol, str) else None,
        decimals=source.decimals,
        supply_raw=inputs.supply_raw,
        block=at,
        checked_s=int(ctx.now_s()),
        status="partial" if why and status == "complete" else status,
        transfers_read=inputs.book.transfers,
        why=why,
        inputs=inputs,
        launch=launch,
        market_cap_micro_usd=None if usd is None else usd * inputs.supply_raw * USDG_UNIT,
    )


# --- while it is being read ------------------------------------------------------------------------


async def _collect_launch(
    ctx: Context, source: TokenSource, open_book: OpenBook, meter: Meter
) -> HolderRecord:
    """Only the launch, once its block is final and all its buyers are known; their balances are read from the
    token. A job may read on at the same time, even to the end; this answer uses nothing of that."""
    at, book = source.head, open_book.book
    is_known = not open_book.pruned and book.launching.window is not None and book.launch_is_over()
    is_known = is_known and not await _may_lack_trades(ctx, source, open_book)
    launch = book.launch() if is_known else None
    is_certain = launch is not None and await _is_maker_certain(ctx, book, meter)
    inputs = HolderInputs(
        book, source.supply_raw, {}, False, book.beginning.maker if is_certain else None, {}
    )
    if launch is None:
        return _collect_record(ctx, source, at, inputs, None, "reading")
    balances = await read_balances(ctx, book, at, source.supply_raw, (), meter)
    inputs = replace(inputs, supply_raw=balances.supply_raw, balances=balances.by_wallet)
    inputs, launch, large_buy = await _trace_launch(ctx, inputs, launch, (), balances, meter)
    return replace(_collect_record(ctx, source, at, inputs, launch, "reading"), large_buy=large_buy)


# --- when it is read -------------------------------------------------------------------------------


async def _collect_all(
    ctx: Context, source: TokenSource, open_book: OpenBook, also: Sequence[Address], meter: Meter
) -> HolderRecord:
    book = open_book.book
    assert book.block is not None
    # A capped book stays behind, so its balances are read at the head.
    at = source.head if open_book.state == "capped" else book.block
    maker = book.beginning.maker
    is_certain = await _is_maker_certain(ctx, book, meter)
    moved = open_book.standing.moved
    moved_count = None if moved is None else len(moved)
    leaders, negative = open_book.standing.look(book.wallets)
    wallets_to_read = {
        *_special_addresses(source, open_book),
        *leaders[:MAX_BY_LOGS],
        *negative[:MAX_BELOW_ZERO],
        *also,
    }
    balances = await read_balances(ctx, book, at, source.supply_raw, wallets_to_read, meter)
    launch = None if open_book.pruned else book.launch()
    certain_maker = maker if is_certain else None
    inputs = HolderInputs(
        book,
        balances.supply_raw,
        balances.by_wallet,
        balances.drifts,
        certain_maker,
        {},
        leaders=tuple(leaders),
    )
    top = [wallet for wallet, _ in biggest(inputs, TOP)]
    inputs, launch, large_buy = await _trace_launch(ctx, inputs, launch, [*top, *also], balances, meter)
    winners, biggest_wins, crowd, scams = await _read_winners(ctx, inputs, top, maker)
    inputs = replace(inputs, winners=frozenset(win.wallet for win in winners or ()))
    why = _partial_reasons(open_book, balances, await _may_lack_trades(ctx, source, open_book))
    status = "partial" if why else read_status(open_book.state, open_book.pruned)
    return replace(
        _collect_record(ctx, source, at, inputs, launch, status, why),
        large_buy=large_buy,
        winners=winners,
        biggest_wins=biggest_wins,
        crowd=crowd,
        disagreement=disagreement(inputs) if book.block == at and not open_book.pruned else None,
        concentration=_read_concentration(open_book, inputs, moved_count),
        unsure_maker=None if is_certain else maker,
        scams=scams,
    )


async def _is_maker_certain(ctx: Context, book: HolderBook, meter: Meter) -> bool:
    """Whether the token was made in the block where its maker was looked for. Without an archive that is the
    block of its first log: the real maker may have made it long before, without a log."""
    start = book.beginning
    if start.maker is None or start.maker.source != "launch_tx":
        return True
    return bool(await was_made_in(ctx.node, start.token, start.first_number, meter))


def _read_concentration(open_book: OpenBook, inputs: HolderInputs, moved: int | None) -> Concentration | None:
    """How concentrated the holdings are: computed for every answer, but from ``MANY_WALLETS`` on only once
    more than a hundredth of the wallets ``moved``."""
    wallets, moved_before = len(inputs.book.wallets), open_book.spread_moved
    open_book.spread_moved = None if moved_before is None or moved is None else moved_before + moved
    is_old = open_book.spread_moved is None or open_book.spread_moved * 100 > wallets
    if wallets < MANY_WALLETS or is_old or inputs.drifts:
        open_book.spread, open_book.spread_moved = concentration(inputs), 0
    return open_book.spread


def _special_addresses(source: TokenSource, open_book: OpenBook) -> set[Address]:
    """Addresses that may hold tokens that no transfer reported."""
    facts, maker = source.buy_round.data.facts, open_book.book.beginning.maker
    addresses = {facts.owner, facts.proxy_admin, source.token}
    addresses |= set() if maker is None else {maker.deployer, *maker.creators}
    return {address for address in addresses if address is not None and not isinstance(address, Missing)}


async def _may_lack_trades(ctx: Context, source: TokenSource, open_book: OpenBook) -> bool:
    """Whether trades may be missing: at venues that are not known, became known late, are no longer known, or
    exceed the limit."""
    if open_book.unread_venues or late_venues(source, open_book):
        return True
    if len(source.log_sources.venues) < MAX_VENUES:
        return (
            not source.buy_round.candidates.complete or not open_book.book.lost_venues.keys() <= source.absent
        )
    try:
        async with looking(ctx) as (connection, _):
            return await may_trade_beyond(connection, source.token, source.log_sources.venues)
    except ServiceFull:
        return True


def _partial_reasons(open_book: OpenBook, balances: Balances, is_unread: bool) -> tuple[Why, ...]:
    """Why the answer is partial; empty if it is complete."""
    reasons: dict[Why, bool] = {
        "oversupplied": exceeds_supply(balances.by_wallet, balances.supply_raw),
        "capped": open_book.state == "capped",
        "pruned": open_book.pruned,
        # Without the oldest transfers, logs never add up to the balances.
        "drifts": balances.drifts and not open_book.pruned,
        "unverified": bool(balances.unread),
        "venues_unread": is_unread,
        "claims": 0 < balances.supply_raw <= open_book.book.claimed_raw * BPS,
    }
    return tuple(why for why, applies in reasons.items() if applies)


# --- origins and ties ----------------------------------------------------------------------------------


async def _trace_launch(
    ctx: Context,
    inputs: HolderInputs,
    launch: LaunchBuys | None,
    top: Sequence[Address],
    balances: Balances,
    meter: Meter,
) -> tuple[HolderInputs, LaunchBuys | None, LaunchBuys | None]:
    """Adds the origins. Returns the launch, and the first large buy after it, as they are with the origins
    known: the early buy of a wallet that the deployer funded is not the launch."""
    early, traced = inputs.book.launching.quiet, inputs
    if launch is None:
        return await _add_origins(ctx, inputs, None, top, balances, meter), None, None
    inputs = await _add_origins(ctx, traced, launch, top, balances, meter, tuple(early))
    related = {wallet for wallet in early if is_funded_by_deployer(inputs, wallet)}
    actual_launch = inputs.book.launch(related)
    if actual_launch is not None and actual_launch.block_number != launch.block_number:
        launch = actual_launch
        inputs = await _add_origins(ctx, traced, launch, top, balances, meter, tuple(early))
    return inputs, launch, inputs.book.launching.first_large_buy(related)


async def _add_origins(
    ctx: Context,
    inputs: HolderInputs,
    launch: LaunchBuys | None,
    top: Sequence[Address],
    balances: Balances,
    meter: Meter,
    early: Sequence[Address] = (),
) -> HolderInputs:
    """Adds the origins of ``top``, the biggest holders, of ``early`` buyers and of the launch's, and what
    ties them."""
    buys = () if launch is None else launch.buys
    largest_buys = heapq.nlargest(MAX_BUYERS, buys, key=lambda buy: buy.bought_raw)
    makers = [] if inputs.maker is None else [inputs.maker.deployer, *inputs.maker.creators]
    low_priority = [*makers, *early, *(buy.wallet for buy in largest_buys)]
    families = await trace_wallets(
        ctx, inputs.book, balances.at, top, low_priority, balances.contracts, meter
    )
    inputs = replace(inputs, wallets=families.wallets, families=families.families)
    launch = launch or LaunchBuys(0, 0, ())
    inputs = await _verify_fundings(ctx, inputs, launch, families, meter)
    never_group, unknown = await _find_never_group(ctx, inputs, launch, balances.at, meter)
    hidden = {
        wallet: replace(inputs.wallets.get(wallet, UNKNOWN), funder=None, funder_known=False)
        for group in _tied_groups(inputs, launch)
        if {group.funder, group.tx_hash} & unknown
        for wallet in group.wallets
    }
    return replace(inputs, wallets={**inputs.wallets, **hidden}, never_group=never_group)


def _tied_groups(inputs: HolderInputs, launch: LaunchBuys) -> list[BuyerGroup]:
    """Everything that may tie two wallets."""
    return [*launch_groups(inputs, launch, MIN_TIED), *funder_groups(inputs)]


async def _find_never_group(
    ctx: Context, inputs: HolderInputs, launch: LaunchBuys, at: BlockRef, meter: Meter
) -> tuple[frozenset[str], frozenset[str | None]]:
    """Funders that are contracts, a deployer as busy as an exchange, and transactions of entry points; and
    those that could not be decided, which do not group either and leave open who belongs together."""
    groups = _tied_groups(inputs, launch)
    funders = sorted({group.funder for group in groups if group.funder is not None})
    txs = sorted({group.tx_hash for group in groups if group.tx_hash is not None})
    never: set[str] = set()
    unknown: set[str | None] = set()
    if funders:
        answers = await ctx.node.batch(code_calls(funders, at), meter)
        codes = read_codes(answers, funders, ctx.chain_id)
        never |= {funder for funder in funders if codes[funder] is not False}
        unknown |= {funder for funder in funders if codes[funder] is None}
    if inputs.maker is not None and any(is_funded_by_deployer(inputs, wallet) for wallet in inputs.wallets):
        deployer = inputs.maker.deployer
        call = RpcCall("eth_getTransactionCount", [deployer, {"blockHash": at.hash}])
        (answer,) = await ctx.node.batch([call], meter)
        if isinstance(answer, RpcError) or quantity(answer) >= BUSY_NONCE:
            never.add(deployer)
    if txs:
        by_entry_point = await find_entry_point_txs(ctx.node, txs, meter)
        never |= {tx_hash for tx_hash in txs if by_entry_point[tx_hash] is not False}
        unknown |= {tx_hash for tx_hash in txs if by_entry_point[tx_hash] is None}
    return frozenset(never), frozenset(unknown)


async def _verify_fundings(
    ctx: Context, inputs: HolderInputs, launch: LaunchBuys, families: FunderFamilies, meter: Meter
) -> HolderInputs:
    """Adds the transaction that shows each tie to a funder, and removes false ties: a wallet that had eth
    before that payment was funded by another, and a tiny payment is no funding."""
    # The most important ties come first, as the number of blocks read is limited.
    tied = [wallet for wallet in inputs.wallets if is_funded_by_deployer(inputs, wallet)]
    groups = [*launch_groups(inputs, launch), *_tied_groups(inputs, launch)]
    tied += [wallet for group in groups if group.funder is not None for wallet in group.wallets]
    fundings = [
        FirstFunding(funder, wallet, families.funded[wallet].block_number)
        for wallet in dict.fromkeys(tied)
        if wallet in families.funded and (funder := inputs.wallets[wallet].funder) is not None
    ]
    if not fundings:
        return inputs
    payments = await find_funding_txs(ctx.node, fundings, meter)
    had_eth = await had_before(
        ctx.node, [(funding.wallet, funding.block_number) for funding in fundings], ctx.contracts.weth, meter
    )
    verified = {}
    for wallet, payment in payments.items():
        known = inputs.wallets[wallet]
        if had_eth[wallet] or (payment is not None and payment.paid_wei < MIN_FUNDING_WEI):
            verified[wallet] = replace(known, funder=None)
        elif payment is None and had_eth[wallet] is None:
            # Neither the amount nor the earlier balance is known: no tie.
            verified[wallet] = replace(known, funder=None, funder_known=False)
        else:
            verified[wallet] = replace(known, funded_tx=None if payment is None else payment.tx_hash)
    return replace(inputs, wallets={**inputs.wallets, **verified})


# --- winners and the crowd ------------------------------------------------------------------


async def _read_winners(
    ctx: Context, inputs: HolderInputs, top: Sequence[Address], possible_maker: Maker | None
) -> tuple[
    tuple[BoardRow, ...] | None, Mapping[Address, WinningClose], SmartCrowd | None, Mapping[Address, int]
]:
    """The winners among all that ever bought it, the biggest wins of the first ``MAX_WINS``, the top holders
    that bought other launches of the deployer, and how many people mark a top holder, or the
    ``possible_maker``, as a scam. The first and the third are None where the index was not available, the
    third also where the deployer is not known."""
    maker = inputs.maker
    scams: Mapping[Address, int] = {}
    try:
        async with looking(ctx) as (connection, cursor):
            scams = await public_names.scams(
                connection, [*top, *([possible_maker.deployer] if possible_maker else [])]
            )
            if cursor is None:
                return None, {}, None, scams
            rows = await smart_money.load_winners(connection)
            sent = [wallet for wallet in rows if has_bought(inputs, wallet)]
            token, min_raw = inputs.book.beginning.token, max(1, inputs.supply_raw // MIN_BOUGHT_PART)
            own = await smart_money.load_own_buyers(connection, token, sent, min_raw)
            winners = sorted((rows[wallet] for wallet in own), key=nearness)
            biggest_wins = await smart_money.load_biggest_wins(
                connection, [row.wallet for row in winners[:MAX_WINS]]
            )
            crowd = None
            if maker is not None:
                crowd = await smart_money.load_repeat_buyers(connection, maker.deployer, token, top)
    except ServiceFull:
        return None, {}, None, scams
    return tuple(winners), biggest_wins, crowd, scams
