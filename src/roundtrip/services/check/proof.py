"""The proof of the newest check of a token: the evidence, and the exact requests behind it."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import structlog

from roundtrip.chain.blocks.heads import read_header
from roundtrip.chain.rpc.client import NO_ANSWER, RpcCall, RpcError
from roundtrip.chain.rpc.errors import concern, describe_error
from roundtrip.domain.base.errors import NodeFault, ServiceFull
from roundtrip.domain.base.policy import POLICY
from roundtrip.domain.base.types import Address, parse_address
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.support.answer_fields import AddressText, at
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.server.connections import DATABASE_FAULTS

from .handler import check
from .proof_schema import CheckProof, ProofBlock, RpcRequest, present
from .schema import CheckParams

_READ_S = 5.0
_LATEST = 1.2
"""A sell comes after at most this many times the planned delay, and ``_SOME_S`` more: some wallets sell late,
and those of a crowd wait for the last of its buys."""
_SOME_S = 60 + (POLICY.crowd_buy_blocks + 1) * POLICY.crowd_gaps_s[1]
log = structlog.get_logger(__name__)


async def check_proof(ctx: Context, params: CheckParams) -> UseCaseAnswer[CheckProof]:
    """The proof of the latest stored check if its block is still on the chain; else of a check that is made
    now. Concurrent requests share that check. The proof is not cached in memory, because it may be a
    megabyte. Raises NodeFault where the node does not answer which block is on the chain."""
    token, counted = params.token(), True
    proof = await load_proof(ctx, token)
    if proof is None or not await _is_canonical(ctx, proof.block):
        counted = (await check(ctx, params)).counted
        proof = await load_proof(ctx, token)
    if proof is None:
        raise ServiceFull("busy", "The proof of this check is no longer stored; ask again.", 1)
    return UseCaseAnswer(proof, counted=counted)


async def load_proof(ctx: Context, token: Address) -> CheckProof | None:
    """The newest stored proof; None where there is none, or where its evidence has the shape of an earlier
    release. Raises ServiceFull (busy)."""
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


class ProofRequestsParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which wallet, and how long after its first trade the last one was."""

    address: AddressText
    wallet: AddressText
    after: Annotated[int, msgspec.Meta(ge=0, le=10**7)]


class ProofRequests(msgspec.Struct, frozen=True):
    """``requests``: JSON texts. Empty: the newest proof has none of this wallet, or there is no proof."""

    block: int | None
    requests: list[str]


async def proof_requests(ctx: Context, params: ProofRequestsParams) -> UseCaseAnswer[ProofRequests]:
    """The simulations of the newest proof in which the wallet sells about that much later than it buys, or
    than the block. Raises CallerFault (bad_address), ServiceFull."""
    proof = await load_proof(ctx, parse_address(params.address))
    if proof is None:
        return UseCaseAnswer(ProofRequests(None, []))
    # A proof may be a megabyte.
    found = await asyncio.to_thread(lambda: list(_find(proof, params.wallet.lower(), params.after)))
    return UseCaseAnswer(ProofRequests(proof.block.number, found))


def _find(proof: CheckProof, wallet: str, after_s: int) -> Iterator[str]:
    pinned_s, most_s = int(proof.block.time.timestamp()), int(after_s * _LATEST) + _SOME_S
    for request in (request for trip in proof.trips for batch in trip for request in batch):
        if request.method == "eth_simulateV1":
            params = json.loads(bytes(request.params))
            acts_s = _acts_s(params[0]["blockStateCalls"], wallet)
            # A wallet that was sent the tokens makes no buy: its time counts from the block's.
            if any(
                after_s <= acts_s[-1] - start_s <= most_s for start_s in (*acts_s[:1], pinned_s) if acts_s
            ):
                yield _write(request, params)


def _acts_s(blocks: list[dict[str, Any]], wallet: str) -> list[int]:
    """The times of the blocks in which the wallet sends a call."""
    return [
        int(block["blockOverrides"]["time"], 16)
        for block in blocks
        if any(call.get("from", "").lower() == wallet for call in block.get("calls", ()))
    ]


def _write(request: RpcRequest, params: list[Any]) -> str:
    fields = {"jsonrpc": request.jsonrpc, "id": request.id, "method": request.method, "params": params}
    return json.dumps(fields, indent=1)
