"""The proof of the newest check of a token: the evidence, and the exact requests behind it."""

import asyncio
import contextlib

import structlog

from roundtrip.chain.blocks.heads import read_header
from roundtrip.chain.rpc.client import NO_ANSWER, RpcCall, RpcError
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.types import Address
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.server.errors import DATABASE_FAULTS

from .handler import check
from .proof_schema import CheckProof, ProofBlock, present
from .schema import CheckParams, at

_READ_S = 5.0
log = structlog.get_logger(__name__)


async def check_proof(ctx: Context, params: CheckParams) -> UseCaseAnswer[CheckProof]:
    """The proof of the latest stored check if its block is still on the chain; else of a check that is made
    now. Concurrent requests share that check. The proof is not cached in memory, because it may be a
    megabyte. Raises NodeFault where the node does not answer which block is on the chain."""
    token, counted = params.token(), True
    proof = await _load_latest(ctx, token)
    if proof is None or not await _is_canonical(ctx, proof.block):
        counted = (await check(ctx, params)).counted
        proof = await _load_latest(ctx, token)
    if proof is None:
        raise ServiceFull("busy", "The proof of this check is no longer stored; ask again.", 1)
    return UseCaseAnswer(proof, counted=counted)


async def _load_latest(ctx: Context, token: Address) -> CheckProof | None:
    """The stored proof; None where there is none, or where its evidence has the shape of an earlier
    release."""
    try:
        async with ctx.pool.acquire(timeout=_READ_S) as connection:
            stored = await evidence_store.latest_proof(connection, token, at(ctx.now_s()))
    except DATABASE_FAULTS as error:
        log.warning("proof could not be read", error=repr(error))
        raise ServiceFull("busy", "Stored proofs are unavailable; retry in 5 s.", 5) from error
    with contextlib.suppress(ValueError):
        return None if stored is None else await asyncio.to_thread(present, stored)
    return None


async def _is_canonical(ctx: Context, block: ProofBlock) -> bool:
    """Whether the chain has this block at its number: a block that was reorged out, or that the node does not
    know, proves nothing. Raises NodeFault where the node does not answer."""
    # A batch of only nulls counts as no answer: the chain id is never null.
    calls = [RpcCall("eth_chainId", []), RpcCall("eth_getBlockByNumber", [hex(block.number), False])]
    _, header = await ctx.node.batch(calls)
    if not isinstance(header, RpcError):
        return read_header(header).hash.lower() == block.hash
    if header is NO_ANSWER or concern(header) in ("behind", "pruned"):
        return False
    raise NodeFault(f"the node did not return block {block.number} ({describe_error(header)})")
