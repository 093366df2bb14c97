"""Answers whether a token can be bought and sold, and what a round trip costs. Two batches to the node, one
more for a deep check."""

from collections.abc import Callable, Mapping

import structlog
from msgspec import Struct
from msgspec.structs import replace

from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.rpc.recorder import CallRecorder
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.figures import format_count
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Curve, Evidence, HolderSells, LaunchRecord, PoolLaunch
from roundtrip.domain.check.holder_sells import gaps, judge_holder_sells
from roundtrip.domain.check.owner_calls import node_kept_back
from roundtrip.domain.check.verdict import Judgement, judge
from roundtrip.domain.check.verdict_text import snipe_left_s
from roundtrip.services.runtime.check_steps import note_step
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import MOST_AHEAD, block_missing_error
from roundtrip.services.wallets.names import scam_text
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.community import public_names
from roundtrip.store.server.errors import DATABASE_FAULTS

from .buy_round import CheckInputs, run_buy_round
from .card import CheckCard, read_card
from .deep_round import run_later_rounds
from .pipeline import prepare_inputs, remember_launch
from .proof_schema import encode_proof_inputs
from .recalled import keep_recalled
from .schema import Check, CheckParams, at, present

_STORE_S = 5.0
ABSENCES = ("no_contract", "not_a_token", "no_pool", "empty_pool")
"""Codes that the next block may change, since it may launch the token."""
log = structlog.get_logger(__name__)


async def check(ctx: Context, params: CheckParams) -> UseCaseAnswer[Check]:
    """Runs a check and stores its evidence. Raises NodeFault when the node gave no usable answer."""
    return await run_check(ctx, params)


async def run_check(
    ctx: Context,
    params: CheckParams,
    requested: bool = True,
    keep_card: Callable[[CheckCard], None] | None = None,
) -> UseCaseAnswer[Check]:
    """Runs a check; ``requested`` False: a job makes it. ``keep_card`` gets its card, too. An absence is only
    answered at the node's newest block. Raises like ``check``, and ServiceFull (busy) for an absence on a
    node that is behind the index."""
    meter, probe_wei = Meter(), params.probe_wei()
    if probe_wei is not None:
        ctx = ctx.at_size(probe_wei)
    inputs = await prepare_inputs(ctx, params.token(), params.asks_deep())
    indexed_block = inputs.indexed_number
    with ctx.steps.follow(params.shared_as()):
        answer = await _check_at(ctx, inputs, params, requested, meter, keep_card)
        if answer.is_absence and (newest := await ctx.heads.refresh()).block != inputs.head.block:
            # The token may have been launched since the head was read.
            inputs = await prepare_inputs(ctx, params.token(), params.asks_deep(), head=newest)
            answer = await _check_at(ctx, inputs, params, requested, meter, keep_card)
    if answer.is_absence and answer.block < indexed_block <= answer.block + MOST_AHEAD:
        raise block_missing_error(indexed_block)
    return answer


class CheckAtSize(Struct, frozen=True):
    """A check at another size than the usual, and its card: its evidence is not stored."""

    check: Check
    card: CheckCard


async def check_at_size(ctx: Context, params: CheckParams) -> UseCaseAnswer[CheckAtSize]:
    """Runs a check with its card. Raises like ``run_check``."""
    cards: list[CheckCard] = []
    ran = await run_check(ctx, params, keep_card=cards.append)
    answer = CheckAtSize(ran.answer, cards[-1])
    return UseCaseAnswer(answer, ran.ttl_ms, ran.counted, ran.meter, ran.block, ran.is_absence)


async def _check_at(
    ctx: Context,
    inputs: CheckInputs,
    params: CheckParams,
    requested: bool,
    meter: Meter,
    keep_card: Callable[[CheckCard], None] | None,
) -> UseCaseAnswer[Check]:
    """Runs a check at one block: buy round, sell round, deep round, verdict, answer."""
    recorder = CallRecorder(ctx.node)
    note_step(f"Found {format_count(len(inputs.candidates.venues), 'pool or curve', 'pools and curves')}")
    bought = await run_buy_round(ctx.means(recorder), inputs, meter)
    note_step("Buys simulated")
    remember_launch(ctx, bought)
    evidence = await run_later_rounds(bought, meter)
    judgement = judge(evidence, ctx.policy)
    now_s = ctx.now_s()
    dialect = inputs.head.known_dialect()
    proof_inputs = encode_proof_inputs(ctx.contracts, dialect, judgement.verdict, inputs.for_proof())
    proof = proof_inputs, recorder.trips
    answer = present(evidence, judgement, ctx.policy, now_s)
    if keep_card is not None:
        keep_card(read_card(evidence, judgement, inputs.deep, ctx.policy))
    if params.probe_wei() is None:
        scam_marks = await _store(
            ctx, evidence, judgement, proof, now_s, requested, inputs, _loss_bps(answer)
        )
    else:
        # Stored, it would be the token's newest check for the proof, the history, alerts and the scorecard.
        scam_marks = await _read_scam_marks(ctx, evidence)
    node_fault = judgement.missing is not None and judgement.missing.fault == "node"
    return UseCaseAnswer(
        _add_scam_marks(answer, evidence, scam_marks),
        ttl_ms=_ttl_ms(evidence, node_fault, ctx.policy, inputs.deep),
        counted=not node_fault,
        meter=meter,
        block=inputs.head.block.number,
        is_absence=judgement.verdict.code in ABSENCES,
    )


def _owner_and_deployer(evidence: Evidence) -> dict[Address, str]:
    """The owner and deployer of the token, each with its name in a sentence."""
    wallets, owner, launch = {}, evidence.facts.owner, evidence.launch
    if isinstance(owner, str):
        wallets[Address(owner)] = f"Its owner {owner}"
    if isinstance(launch, LaunchRecord | PoolLaunch):
        wallets[launch.deployer] = f"Its deployer {launch.deployer}"
    return wallets


def _add_scam_marks(answer: Check, evidence: Evidence, scam_marks: Mapping[Address, int]) -> Check:
    """The answer, with a sentence on the scam marks of the owner and the deployer. The verdict does not
    change."""
    sentences = [
        scam_text(words, scam_marks[wallet])
        for wallet, words in _owner_and_deployer(evidence).items()
        if wallet in scam_marks
    ]
    if not sentences:
        return answer
    return replace(answer, verdict=replace(answer.verdict, text=" ".join([answer.verdict.text, *sentences])))


def _ttl_ms(evidence: Evidence, node_fault: bool, policy: Policy, deep: bool = False) -> int:
    """How long the answer is shared: at most until the snipe tax in it ends."""
    most_ms = policy.deep_ttl_ms if deep else policy.answer_ttl_ms
    is_partial = any(gap.fault == "node" for gap in gaps(evidence.holder_sells))
    kept_back = node_kept_back(evidence.owner_calls) or node_kept_back(evidence.account_rights)
    if node_fault or is_partial or kept_back:
        most_ms = policy.node_fault_ttl_ms
    launch = evidence.launch
    curve = launch.curve_state if isinstance(launch, LaunchRecord) else None
    if not isinstance(curve, Curve) or curve.snipe_bps == 0:
        return most_ms
    left_s = snipe_left_s(curve, evidence.block.timestamp_s)
    return min(most_ms, 1000 * max(1, 1 if left_s is None else left_s))


async def _read_scam_marks(ctx: Context, evidence: Evidence) -> Mapping[Address, int]:
    """The number of scam marks of the owner and the deployer. Raises ServiceFull (busy)."""
    try:
        async with ctx.pool.acquire(timeout=_STORE_S) as connection:
            return await public_names.scams(connection, _owner_and_deployer(evidence))
    except DATABASE_FAULTS as error:
        raise ServiceFull("busy", "Marks of wallets are unavailable; retry in 5 s.", 5) from error


def _loss_bps(answer: Check) -> int | None:
    return None if answer.trade is None else answer.trade.round_trip_loss_bps


async def _store(
    ctx: Context,
    evidence: Evidence,
    judgement: Judgement,
    proof: tuple[bytes, list[bytes]],
    now_s: float,
    requested: bool,
    inputs: CheckInputs,
    loss_bps: int | None,
) -> Mapping[Address, int]:
    """Stores the evidence and its proof in one transaction. Returns the number of scam marks of the owner and
    the deployer. Raises ServiceFull (busy) where the database does not answer."""
    holder_sells = evidence.holder_sells
    stored = evidence_store.KeptEvidence(
        at(now_s),
        evidence.block.number,
        evidence.policy_version,
        judgement.verdict.code,
        judgement.verdict.level,
        canonical_json.dump(evidence),
        requested,
        inputs.deep,
        judge_holder_sells(holder_sells, ctx.policy).known if isinstance(holder_sells, HolderSells) else 0,
        loss_bps,
    )
    try:
        async with ctx.pool.acquire(timeout=_STORE_S) as connection, connection.transaction():
            row_id = await evidence_store.keep(connection, evidence.token, stored)
            await evidence_store.keep_proof(connection, row_id, *proof, stored.checked_at)
            await keep_recalled(connection, evidence, inputs, now_s, ctx.policy)
            return await public_names.scams(connection, _owner_and_deployer(evidence))
    except DATABASE_FAULTS as error:
        log.warning("evidence could not be kept", error=repr(error))
        raise ServiceFull(
            "busy", "The evidence of this check could not be stored; retry in 5 s.", 5
        ) from error
