"""A check of a token over the service's context: its inputs from head and index, and its rounds."""

from dataclasses import replace
from datetime import timedelta

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.blocks.venue_index import ListedVenues
from roundtrip.chain.rpc.client import Meter, RpcNode
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS, BURN_ADDRESSES, Address
from roundtrip.domain.check.proof_input import MAIN_WALLET, IndexInputs, TokenIndex
from roundtrip.services.runtime.check_steps import NoteStep, ignore_step
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.newest_block import head_of_index
from roundtrip.services.support.answer_fields import at
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.store.check.token_index import LEAST_CAUGHT, HolderDraw, read_token_index

from .buy_round import BuyRoundResult, run_buy_round
from .candidates import Candidates, KnownVenues, join_venues, list_candidates
from .check_run import CheckResult, run_check
from .inputs import CheckInputs


async def check_token(
    ctx: Context,
    token: Address,
    meter: Meter,
    deep: bool = False,
    *,
    head: ChainHead | None = None,
    crowd: bool = True,
    node: RpcNode | None = None,
    note_step: NoteStep = ignore_step,
) -> CheckResult:
    """Checks a token. ``head``, ``crowd``: as ``prepare_inputs``; ``node``: replaces the context's own;
    ``note_step``: called with each step done. Raises NodeFault when the node gave no usable answer."""
    inputs = await prepare_inputs(ctx, token, deep, head=head, crowd=crowd)
    run = await run_check(ctx.means(node), inputs, meter, note_step=note_step)
    remember_launch(ctx, run.bought)
    return run


async def start_check(
    ctx: Context, head: ChainHead, token: Address, meter: Meter, *, crowd: bool = False
) -> BuyRoundResult:
    """Prepares the inputs and runs the buy round alone. Raises as ``check_token``."""
    return await open_check(ctx, await prepare_inputs(ctx, token, head=head, crowd=crowd), meter)


async def open_check(ctx: Context, inputs: CheckInputs, meter: Meter) -> BuyRoundResult:
    """Runs the buy round alone. Raises as ``check_token``."""
    bought = await run_buy_round(ctx.means(), inputs, meter)
    remember_launch(ctx, bought)
    return bought


def remember_launch(ctx: Context, bought: BuyRoundResult) -> None:
    """Adds the launchpad's venues to the venue index, for later checks."""
    if bought.new_venues and ctx.heads.venue_index is not None:
        ctx.heads.venue_index.add(bought.run.token, bought.new_venues)


async def prepare_inputs(
    ctx: Context,
    token: Address,
    deep: bool = False,
    *,
    head: ChainHead | None = None,
    fresh: bool = False,
    crowd: bool = True,
) -> CheckInputs:
    """The inputs of a new check, with a new seed. ``head`` None: the followed one; the node's newest if the
    index has a later block, so that a user who was alerted of an event gets no answer from before it.
    ``fresh``: the node's newest in any case. ``crowd``: for a verdict; prices need no crowd. Raises
    NodeFault."""
    follows, seed = head is None and not fresh, ctx.entropy()
    head = head or ctx.heads.current()
    if token in (ctx.contracts.weth, ctx.contracts.usdg):
        # Money (weth, usdg) has no candidates, and the index holds too much of it to read.
        newest_number = 0
        if fresh:
            head = await ctx.heads.read_now()
        elif follows:
            head, newest_number = await head_of_index(ctx)
        nothing = Candidates((), 0, 0, True)
        return CheckInputs(head, token, seed, nothing, deep, crowd=crowd, indexed_number=newest_number)
    if fresh:
        head, index = await at_once(ctx.heads.read_now(), read_index(ctx, token, seed, deep))
    else:
        index = await read_index(ctx, token, seed, deep)
    newest_number = 0 if index is None else index.newest_number
    if follows and newest_number > head.block.number:
        head = await ctx.heads.refresh()
    # A release whose policy draws a larger crowd may have stored numbers that this one does not draw.
    numbers = range(MAIN_WALLET, sum(ctx.policy.crowd_counts) + 1)
    recalled = () if index is None else tuple(kept for kept in index.recalled if kept.number in numbers)
    known = known_venues(ctx, token, index)
    # What only real holders meet must not come and go with what a caller asks for.
    deep = deep or (index is not None and len(index.caught) >= LEAST_CAUGHT)
    return CheckInputs(
        head,
        token,
        seed,
        list_candidates(known, ctx.contracts, token, ctx.policy.most_scouted),
        deep,
        IndexInputs(unread=deep) if index is None else order_holders(index, deep, ctx.policy),
        crowd,
        recalled,
        newest_number,
    )


def order_holders(index: TokenIndex, deep: bool, policy: Policy) -> IndexInputs:
    """The facts with the holders in the order in which they are tried: in turns some of each third of the
    draw, and near the start those that could not sell lately."""
    if not deep:
        return index.facts
    drawn, own = index.facts.holders, set(index.caught)
    # So few at a turn that some of each third are among those that are tried, also beside the caught ones.
    third, few = policy.drawn_holders // 3, max(1, policy.most_holders // 6)
    thirds = [
        [holder for holder in drawn[start : start + third] if holder not in own]
        for start in range(0, len(drawn), third)
    ]
    turns = [holder for turn in range(0, third, few) for some in thirds for holder in some[turn : turn + few]]
    # The first two are those that hold most, whom other accounts' calls are tried for.
    holders = (*turns[:2], *index.caught, *turns[2:])[: policy.drawn_holders]
    return replace(index.facts, holders=holders)


async def read_index(ctx: Context, token: Address, seed: bytes, holders: bool) -> TokenIndex | None:
    """What the index knows of the token, in one snapshot. ``holders``: also wallets that hold it, some of
    them drawn by ``seed`` (32 bytes); else only where real holders were found caught lately. None where the
    database does not answer in time."""
    left_out = BURN_ADDRESSES | ctx.contracts.all_addresses()
    least_wei = ctx.policy.probe_wei * ctx.policy.sliver_bps // BPS
    draw = HolderDraw(ctx.policy.drawn_holders, seed, left_out, least_wei, only_caught=not holders)
    since = at(ctx.now_s()) - timedelta(seconds=ctx.policy.recalled_s)
    return await read_token_index(ctx.pool, token, ctx.index_patience_s, since, draw)


def known_venues(ctx: Context, token: Address, index: TokenIndex | None) -> KnownVenues:
    """The token's venues by the logs of this process and by the index."""
    listed = ListedVenues() if ctx.heads.venue_index is None else ctx.heads.venue_index.list_venues(token)
    return join_venues(listed, index, ctx.contracts)
