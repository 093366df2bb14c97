"""A check up to its evidence: its inputs, with what the index knows, and its rounds."""

from dataclasses import replace
from datetime import timedelta

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.blocks.venue_index import ListedVenues
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.check.evidence import Evidence
from roundtrip.domain.check.proof_input import MAIN_WALLET, IndexInputs, RecalledWallet
from roundtrip.services.runtime.context import Context
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.store.check.token_index import HolderDraw, TokenIndex, read_token_index

from .buy_round import BuyRoundResult, CheckInputs, role_of, run_buy_round
from .candidates import Candidates, KnownVenues, join_venues, list_candidates
from .deep_round import run_later_rounds
from .schema import at


async def gather_evidence(ctx: Context, token: Address, meter: Meter, *, deep: bool = False) -> Evidence:
    """Runs a check at the followed head, up to its evidence. Raises NodeFault when the buy round has no
    usable answer."""
    bought = await start_check(ctx, ctx.heads.current(), token, meter, deep, crowd=True)
    return await run_later_rounds(bought, meter)


async def start_check(
    ctx: Context, head: ChainHead, token: Address, meter: Meter, deep: bool = False, *, crowd: bool = False
) -> BuyRoundResult:
    """Prepares the inputs and runs the buy round. ``crowd``: for a verdict; prices need no crowd. Raises like
    ``gather_evidence``."""
    inputs = await prepare_inputs(ctx, token, deep, head=head)
    return await open_check(ctx, replace(inputs, crowd=crowd), meter)


async def open_check(ctx: Context, inputs: CheckInputs, meter: Meter) -> BuyRoundResult:
    """Runs the buy round. Raises like ``gather_evidence``."""
    bought = await run_buy_round(ctx.means(), inputs, meter)
    remember_launch(ctx, bought)
    return bought


async def prepare_inputs(
    ctx: Context, token: Address, deep: bool = False, *, head: ChainHead | None = None, fresh: bool = False
) -> CheckInputs:
    """The inputs of a new check, with a new seed. ``head`` None: the followed one; the node's newest if the
    index has a later block, so that a user who was alerted of an event gets no answer from before it.
    ``fresh``: the node's newest in any case. Raises NodeFault."""
    given, seed = head, ctx.entropy()
    head = given or ctx.heads.current()
    reading = read_index(ctx, token, seed, deep)
    if fresh:
        head, index = await at_once(ctx.heads.read_now(), reading)
    else:
        index = await reading
    newest_number = 0 if index is None else index.newest_number
    if given is None and newest_number > head.block.number:
        head = await ctx.heads.refresh()
    if role_of(token, ctx.contracts) != "token":
        # Money has no candidates.
        return CheckInputs(head, token, seed, Candidates((), 0, 0, True), deep, indexed_number=newest_number)
    return CheckInputs(
        head,
        token,
        seed,
        list_candidates(known_venues(ctx, token, index), ctx.contracts, token, ctx.policy.most_scouted),
        deep,
        IndexInputs(unread=deep) if index is None else index.facts,
        recalled=() if index is None else _recalled(index, sum(ctx.policy.crowd_counts)),
        indexed_number=newest_number,
    )


def remember_launch(ctx: Context, bought: BuyRoundResult) -> None:
    """Adds the launchpad's venues to the venue index, for later checks."""
    if bought.new_venues and ctx.heads.venue_index is not None:
        ctx.heads.venue_index.add(bought.run.token, bought.new_venues)


# --- what the index knows of the token ---------------------------------------------------------------


async def read_index(ctx: Context, token: Address, seed: bytes, holders: bool) -> TokenIndex | None:
    """What the index knows of the token, in one snapshot. ``holders``: also wallets that hold it, some of
    them drawn by ``seed`` (32 bytes). None where the database does not answer in time."""
    left_out = BURN_ADDRESSES | ctx.contracts.all_addresses()
    draw = HolderDraw(ctx.policy.most_holders, seed, left_out) if holders else None
    since = at(ctx.now_s()) - timedelta(seconds=ctx.policy.recalled_s)
    return await read_token_index(ctx.pool, token, ctx.index_patience_s, since, draw)


def known_venues(ctx: Context, token: Address, index: TokenIndex | None) -> KnownVenues:
    """The token's venues by the logs of this process and by the index."""
    listed = ListedVenues() if ctx.heads.venue_index is None else ctx.heads.venue_index.listed(token)
    if index is not None and role_of(token, ctx.contracts) != "token":
        # Nobody sells money for money.
        index = replace(index, pools=())
    return join_venues(listed, index, ctx.contracts)


def _recalled(index: TokenIndex, crowd: int) -> tuple[RecalledWallet, ...]:
    """The recalled wallets; the policy of another release may draw a larger crowd."""
    return tuple(
        RecalledWallet(wallet.at, "0x" + wallet.seed.hex(), wallet.number)
        for wallet in index.recalled
        if wallet.number in range(MAIN_WALLET, crowd)
    )
