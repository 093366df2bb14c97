"""The inputs of a check: the block, the candidate venues, and what the index knows of the token."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.blocks.venue_index import ListedVenues
from roundtrip.domain.base.types import BURN_ADDRESSES, Address
from roundtrip.domain.check.proof_input import MAIN_WALLET, NOTHING, IndexInputs, ProofInputs, RecalledWallet
from roundtrip.services.runtime.context import Context
from roundtrip.services.runtime.newest_block import head_of_index
from roundtrip.services.support.answer_fields import at
from roundtrip.services.support.cancel_on_error import at_once
from roundtrip.store.check.token_index import HolderDraw, TokenIndex, read_token_index
from roundtrip.venues.base import Contracts

from .candidates import Candidates, KnownVenues, join_venues, list_candidates

Role = Literal["token", "weth", "usdg"]


@dataclass(frozen=True, slots=True)
class CheckInputs:
    """The inputs of a check. The same inputs and the same ``CheckContext`` send the same requests again.

    ``seed``: 32 bytes from which the wallets are drawn. ``candidates``: venues that may trade the token.
    ``indexed``: the index's facts about the token. ``deep``: also try owner calls and holders' sells.
    ``crowd``: also let drawn wallets trade; without it only the main wallet does. ``recalled``: wallets of
    earlier checks that trade, too, the newest first. ``indexed_number``: the newest indexed block; 0: none is
    known.
    """

    head: ChainHead
    token: Address
    seed: bytes
    candidates: Candidates
    deep: bool = False
    indexed: IndexInputs = NOTHING
    crowd: bool = True
    recalled: tuple[RecalledWallet, ...] = ()
    indexed_number: int = 0

    def for_proof(self) -> ProofInputs:
        """The inputs as a proof stores them; its evidence has the head and the token."""
        known = self.candidates
        seed = "0x" + self.seed.hex()
        return ProofInputs(
            seed, known.venues, known.others, self.deep, self.indexed, self.recalled, known.other_pools
        )


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
    if role_of(token, ctx.contracts) != "token":
        # Money has no candidates, and the index has too much of it.
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
    # The policy of another release may draw a larger crowd.
    numbers = range(MAIN_WALLET, sum(ctx.policy.crowd_counts))
    recalled = () if index is None else tuple(kept for kept in index.recalled if kept.number in numbers)
    return CheckInputs(
        head,
        token,
        seed,
        list_candidates(known_venues(ctx, token, index), ctx.contracts, token, ctx.policy.most_scouted),
        deep,
        IndexInputs(unread=deep) if index is None else index.facts,
        crowd,
        recalled,
        newest_number,
    )


def role_of(token: Address, contracts: Contracts) -> Role:
    """The role of an address: a token to judge, or money."""
    roles: dict[Address, Role] = {contracts.weth: "weth", contracts.usdg: "usdg"}
    return roles.get(token, "token")


async def read_index(ctx: Context, token: Address, seed: bytes, holders: bool) -> TokenIndex | None:
    """What the index knows of the token, in one snapshot. ``holders``: also wallets that hold it, some of
    them drawn by ``seed`` (32 bytes). None where the database does not answer in time."""
    left_out = BURN_ADDRESSES | ctx.contracts.all_addresses()
    draw = HolderDraw(ctx.policy.most_holders, seed, left_out) if holders else None
    since = at(ctx.now_s()) - timedelta(seconds=ctx.policy.recalled_s)
    return await read_token_index(ctx.pool, token, ctx.index_patience_s, since, draw)


def known_venues(ctx: Context, token: Address, index: TokenIndex | None) -> KnownVenues:
    """The token's venues by the logs of this process and by the index."""
    listed = ListedVenues() if ctx.heads.venue_index is None else ctx.heads.venue_index.list_venues(token)
    return join_venues(listed, index, ctx.contracts)
