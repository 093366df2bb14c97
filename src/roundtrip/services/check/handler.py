"""Can this token be bought and sold, and what does a round trip cost. Two trips to the node,
cold; one more where it is asked what could change it."""

from collections.abc import Mapping

import structlog
from msgspec.structs import replace

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.rpc.recorder import CallRecorder
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Curve, Evidence, HolderSells, LaunchRecord, PoolLaunch
from roundtrip.domain.check.holder_sells import gaps
from roundtrip.domain.check.holder_sells import judge_holder_sells as holders_found
from roundtrip.domain.check.owner_calls import node_kept_back
from roundtrip.domain.check.proof_input import ProofInputs
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.domain.check.verdict_text import snipe_left_s
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import MOST_AHEAD, block_missing_error, head_of_index
from roundtrip.services.wallets.names import scam_text
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.community import public_names
from roundtrip.store.server.errors import DATABASE_FAULTS

from .deep_round import finish_check
from .pipeline import prepare_inputs, remember_launch, run_buy_round
from .proof_schema import encode_beginning
from .schema import Check, CheckParams, at, present

_KEEP_S = 5.0
ABSENCES = ("no_contract", "not_a_token", "no_pool", "empty_pool")
"""What is said of a token that may be launched in the next block: true of the newest block alone."""
log = structlog.get_logger(__name__)


async def check(ctx: Context, params: CheckParams) -> UseCaseAnswer[Check]:
    """The whole check, its evidence kept. Raises NodeFault when the chain gave nothing usable."""
    return await run_check(ctx, params)


async def run_check(ctx: Context, params: CheckParams, asked: bool = True) -> UseCaseAnswer[Check]:
    """A check that somebody ``asked`` for, or that nobody did. Raises as ``check``, and ServiceFull (busy)
    where something is not there at a node that is a little behind the index."""
    meter = Meter()
    head, followed = await head_of_index(ctx)
    answered = await _check_at(ctx, head, params, asked, meter)
    if answered.is_absence and (newest := await ctx.heads.refresh()).block != head.block:
        # The head is as old as the last look at the node: what is launched meanwhile is there already.
        answered = await _check_at(ctx, newest, params, asked, meter)
    if answered.is_absence and answered.block < followed <= answered.block + MOST_AHEAD:
        raise block_missing_error(followed)
    return answered


async def _check_at(
    ctx: Context, head: ChainHead, params: CheckParams, asked: bool, meter: Meter
) -> UseCaseAnswer[Check]:
    token, deep = params.token(), params.asks_deep()
    begin, recording = await prepare_inputs(ctx, head, token, deep), CallRecorder(ctx.node)
    found = await run_buy_round(ctx.means(recording), begin, meter)
    remember_launch(ctx, found)
    evidence = await finish_check(found, meter)
    judgement = judge(evidence, ctx.policy)
    now_s = ctx.now_s()
    own = ProofInputs(
        "0x" + begin.seed.hex(), begin.candidates.venues, begin.candidates.others, deep, begin.indexed
    )
    began = encode_beginning(ctx.contracts, begin.head.known_dialect().name, judgement.verdict, own)
    marked = await _keep(ctx, evidence, judgement, (began, recording.trips), now_s, asked, deep)
    node_fault = judgement.missing is not None and judgement.missing.fault == "node"
    return UseCaseAnswer(
        _with_marks(present(evidence, judgement, ctx.policy, now_s), evidence, marked),
        ttl_ms=_ttl_ms(evidence, node_fault, ctx.policy, deep),
        counted=not node_fault,
        meter=meter,
        block=head.block.number,
        is_absence=judgement.verdict.code in ABSENCES,
    )


def _behind(evidence: Evidence) -> dict[Address, str]:
    """Whose token it is: who deployed it, and who owns it."""
    found, owner, launch = {}, evidence.facts.owner, evidence.launch
    if isinstance(owner, str):
        found[Address(owner)] = f"Its owner {owner}"
    if isinstance(launch, LaunchRecord | PoolLaunch):
        found[launch.deployer] = f"Its deployer {launch.deployer}"
    return found


def _with_marks(answer: Check, evidence: Evidence, marked: Mapping[Address, int]) -> Check:
    """The answer, whose text also tells what enough people say of who is behind the token. The verdict stays
    what the evidence shows."""
    said = [scam_text(who, marked[one]) for one, who in _behind(evidence).items() if one in marked]
    verdict = replace(answer.verdict, text=" ".join([answer.verdict.text, *said]))
    return replace(answer, verdict=verdict) if said else answer


def _ttl_ms(evidence: Evidence, node_fault: bool, policy: Policy, deep: bool = False) -> int:
    """How long the answer is shared: no longer than the tax it speaks of lasts."""
    most_ms = policy.deep_ttl_ms if deep else policy.answer_ttl_ms
    kept_back = any(gap.fault == "node" for gap in gaps(evidence.holder_sells))
    if node_fault or kept_back or node_kept_back(evidence.owner_calls):
        most_ms = policy.node_fault_ttl_ms
    launch = evidence.launch
    state = launch.curve_state if isinstance(launch, LaunchRecord) else None
    if not isinstance(state, Curve) or state.snipe_bps == 0:
        return most_ms
    left_s = snipe_left_s(state, evidence.block.timestamp_s)
    return min(most_ms, 1000 * max(1, 1 if left_s is None else left_s))


async def _keep(
    ctx: Context,
    evidence: Evidence,
    judgement: Judgement,
    proof: tuple[bytes, list[bytes]],
    now_s: float,
    asked: bool,
    deep: bool,
) -> Mapping[Address, int]:
    """How many people mark its owner, or deployer, as a scam."""
    held = evidence.holder_sells
    kept = evidence_store.KeptEvidence(
        at(now_s),
        evidence.block.number,
        evidence.policy_version,
        judgement.verdict.code,
        judgement.verdict.level,
        canonical_json.dump(evidence),
        asked,
        deep,
        holders_found(held, ctx.policy).told if isinstance(held, HolderSells) else 0,
    )
    try:
        async with ctx.pool.acquire(timeout=_KEEP_S) as connection, connection.transaction():
            row_id = await evidence_store.keep(connection, evidence.token, kept)
            await evidence_store.keep_proof(connection, row_id, *proof, kept.checked_at)
            return await public_names.scams(connection, _behind(evidence))
    except DATABASE_FAULTS as error:
        log.warning("evidence could not be kept", error=repr(error))
        raise ServiceFull("busy", "The evidence of this check cannot be kept just now.", 5) from error
