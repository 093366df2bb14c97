"""A check up to its evidence: its inputs, with what the index knows, and its rounds."""

from dataclasses import replace

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.domain.base.types import Address
from roundtrip.domain.check.evidence import Evidence
from roundtrip.services.runtime.context import Context

from .buy_round import BuyRoundResult, CheckInputs, role_of, run_buy_round
from .candidates import Candidates, list_candidates
from .deep_round import run_later_rounds
from .index_facts import read_index_facts, read_known_venues
from .recalled import read_recalled


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
    inputs = replace(await prepare_inputs(ctx, head, token, deep), crowd=crowd)
    bought = await run_buy_round(ctx.means(), inputs, meter)
    remember_launch(ctx, bought)
    return bought


async def prepare_inputs(ctx: Context, head: ChainHead, token: Address, deep: bool = False) -> CheckInputs:
    """The inputs of a new check, with a new seed. Money has no candidates."""
    seed = ctx.entropy()
    if role_of(token, ctx.contracts) != "token":
        return CheckInputs(head, token, seed, Candidates((), 0, 0, True), deep)
    known = await read_known_venues(
        ctx.heads.venue_index, ctx.pool, ctx.contracts, token, ctx.index_patience_s
    )
    candidates = list_candidates(known, ctx.contracts, token, ctx.policy.most_scouted)
    most_holders = ctx.policy.most_holders if deep else 0
    indexed = await read_index_facts(ctx.pool, ctx.contracts, token, seed, most_holders, ctx.index_patience_s)
    recalled = await read_recalled(ctx.pool, token, ctx.now_s(), ctx.policy, ctx.index_patience_s)
    return CheckInputs(head, token, seed, candidates, deep, indexed, recalled=recalled)


def remember_launch(ctx: Context, bought: BuyRoundResult) -> None:
    """Adds the launchpad's venues to the venue index, for later checks."""
    if bought.new_venues and ctx.heads.venue_index is not None:
        ctx.heads.venue_index.add(bought.run.token, bought.new_venues)
