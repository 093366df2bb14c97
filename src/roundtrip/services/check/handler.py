"""Answers whether a token can be bought and sold, and what a round trip costs. Usually two batches to the
node; more where something deviates, and for a deep check."""

from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime

import structlog
from msgspec import Struct
from msgspec.structs import replace

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import Meter
from roundtrip.chain.rpc.recorder import CallRecorder
from roundtrip.domain.base.errors import ServiceFull
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import Address
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, HolderSells, LaunchRecord, PoolLaunch
from roundtrip.domain.check.holder_sells import gaps, judge_holder_sells
from roundtrip.domain.check.owner_calls import node_kept_back
from roundtrip.domain.check.verdict_text import snipe_tax_left_s
from roundtrip.services.engine.check_run import CheckResult
from roundtrip.services.engine.recalled import keep_caught, keep_recalled, wallets_to_recall
from roundtrip.services.engine.token_check import check_token
from roundtrip.services.runtime.check_steps import NoteStep
from roundtrip.services.runtime.context import Context, UseCaseAnswer
from roundtrip.services.runtime.newest_block import MAX_AHEAD, block_missing_error
from roundtrip.services.support.answer_fields import at, scam_text
from roundtrip.services.support.check_answer import Check, present
from roundtrip.store.check import evidence as evidence_store
from roundtrip.store.community import public_names
from roundtrip.store.server.connections import DATABASE_FAULTS

from .card import CheckCard, read_card
from .proof_schema import encode_proof_inputs
from .schema import AskedCheck, CheckParams

_STORE_S = 5.0
_UNSTATED_S = 60
"""How long a verdict counts where its curve taxes early buys (the snipe tax) and does not say until when."""
ABSENCES = ("no_contract", "not_a_token", "no_pool", "empty_pool")
"""Codes that the next block may change, since it may launch the token."""
log = structlog.get_logger(__name__)


async def check(ctx: Context, params: CheckParams) -> UseCaseAnswer[Check]:
    """Runs a check and stores its evidence. Raises CallerFault, ServiceFull (busy), and NodeFault when the
    node gave no usable answer."""
    return await check_and_store(ctx, params)


async def check_and_store(ctx: Context, params: CheckParams, requested: bool = True) -> UseCaseAnswer[Check]:
    """As ``check``; ``requested`` False: a job makes it."""
    return (await _check_at_newest(ctx, params, requested))[1]


class CheckAtSize(Struct, frozen=True):
    """A check at another size than the usual, and its card: its evidence is not stored."""

    check: Check
    card: CheckCard


async def check_at_size(ctx: Context, params: CheckParams) -> UseCaseAnswer[CheckAtSize]:
    """Runs a check with its card. Raises like ``check``."""
    run, answer = await _check_at_newest(ctx, params, requested=True)
    card = read_card(run.evidence, run.judgement, run.inputs.deep, run.policy())
    return UseCaseAnswer(
        CheckAtSize(answer.answer, card),
        answer.ttl_ms,
        answer.counted,
        answer.meter,
        answer.block,
        answer.is_absence,
    )


async def _check_at_newest(
    ctx: Context, params: CheckParams, requested: bool
) -> tuple[CheckResult, UseCaseAnswer[Check]]:
    """Runs a check; again if it found an absence at a block that is not the node's newest. Raises like
    ``check``, and ServiceFull (busy) for an absence on a node that is behind the index."""
    asked, meter = params.read(), Meter()
    if asked.probe_wei is not None:
        ctx = ctx.at_size(asked.probe_wei)
    with ctx.steps.follow(asked.shared_as()) as note_step:
        run, answer = await _check_once(ctx, asked, requested, meter, note_step)
        head, indexed_number = run.inputs.head, run.inputs.indexed_number
        if answer.is_absence and (newest := await ctx.heads.refresh()).block != head.block:
            # The token may have been launched since the head was read.
            run, answer = await _check_once(ctx, asked, requested, meter, note_step, newest)
    if answer.is_absence and answer.block < indexed_number <= answer.block + MAX_AHEAD:
        raise block_missing_error(indexed_number)
    return run, answer


async def _check_once(
    ctx: Context,
    asked: AskedCheck,
    requested: bool,
    meter: Meter,
    note_step: NoteStep,
    head: ChainHead | None = None,
) -> tuple[CheckResult, UseCaseAnswer[Check]]:
    """Runs a check, stores it and answers. ``head`` None: the followed one."""
    recorder = CallRecorder(ctx.node)
    run = await check_token(
        ctx, asked.token, meter, asked.deep, head=head, node=recorder, note_step=note_step
    )
    evidence, judgement, now_s = run.evidence, run.judgement, ctx.now_s()
    answer = present(evidence, judgement, ctx.policy, now_s)
    if asked.probe_wei is None:
        scam_marks = await _store(ctx, run, recorder.trips, now_s, requested, _loss_bps(answer))
    else:
        # Stored, it would be the token's newest check for the proof, the history, alerts and the scorecard.
        scam_marks = await _read_scam_marks(ctx, evidence)
    node_fault = judgement.missing is not None and judgement.missing.fault == "node"
    reply = UseCaseAnswer(
        _add_scam_marks(answer, evidence, scam_marks),
        ttl_ms=_ttl_ms(evidence, node_fault, ctx.policy, asked.deep),
        counted=not node_fault,
        meter=meter,
        block=run.inputs.head.block.number,
        is_absence=judgement.verdict.code in ABSENCES,
    )
    return run, reply


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
    """How long the answer is shared: at most until the snipe tax in it ends, and a second where its end is
    not stated."""
    most_ms = policy.deep_ttl_ms if deep else policy.answer_ttl_ms
    is_partial = any(gap.fault == "node" for gap in gaps(evidence.holder_sells))
    kept_back = node_kept_back(evidence.owner_calls) or node_kept_back(evidence.account_rights)
    if node_fault or is_partial or kept_back:
        most_ms = policy.node_fault_ttl_ms
    left_s = snipe_tax_left_s(evidence)
    return most_ms if left_s is None else min(most_ms, 1000 * max(1, left_s))


def _ends_at(evidence: Evidence, code: str, now_s: float) -> datetime | None:
    """When a stored verdict no longer counts: when its snipe tax ends, late by the age of the block at
    ``now_s``; ``_UNSTATED_S`` later where that end is not stated. None: there is no such tax, or the token
    cannot be sold, which does not depend on it."""
    left_s = snipe_tax_left_s(evidence)
    return None if left_s is None or code == "cannot_sell" else at(now_s + (left_s or _UNSTATED_S))


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
    ctx: Context, run: CheckResult, trips: list[bytes], now_s: float, requested: bool, loss_bps: int | None
) -> Mapping[Address, int]:
    """Stores the evidence and its proof, by one statement, or one transaction where wallets are recalled or
    holders were caught. ``trips``: the requests sent to the node, each trip packed. Returns the number of
    scam marks of the owner and the deployer. Raises ServiceFull (busy) where the database does not answer."""
    inputs, evidence, verdict = run.inputs, run.evidence, run.judgement.verdict
    holder_sells = evidence.holder_sells
    stored = evidence_store.KeptEvidence(
        checked_at=at(now_s),
        block_number=evidence.block.number,
        policy_version=evidence.policy_version,
        verdict_code=verdict.code,
        verdict_level=verdict.level,
        document=canonical_json.dump(evidence),
        asked=requested,
        deep=inputs.deep,
        holders=judge_holder_sells(holder_sells, ctx.policy).known
        if isinstance(holder_sells, HolderSells)
        else 0,
        loss_bps=loss_bps,
        ends_at=_ends_at(evidence, verdict.code, now_s),
    )
    dialect = inputs.head.known_dialect()
    inputs_json = encode_proof_inputs(ctx.contracts, dialect, verdict, inputs.for_proof())
    recalled = wallets_to_recall(evidence, run.judgement.readings, inputs, ctx.policy)
    is_one = not recalled and not isinstance(holder_sells, HolderSells)
    try:
        async with ctx.pool.acquire(timeout=_STORE_S) as connection:
            scam_marks = await public_names.scams(connection, _owner_and_deployer(evidence))
            async with nullcontext() if is_one else connection.transaction():
                proof = evidence_store.NewProof(inputs_json, trips)
                row_id = await evidence_store.keep(connection, evidence.token, stored, proof)
                await keep_recalled(connection, evidence.token, recalled, now_s, ctx.policy)
                if isinstance(holder_sells, HolderSells):
                    await keep_caught(connection, evidence.token, holder_sells, now_s, ctx.policy)
            try:
                await evidence_store.prune_proofs(connection, row_id, stored.checked_at)
            except DATABASE_FAULTS as error:
                log.warning("old proofs could not be deleted", error=repr(error))
            return scam_marks
    except DATABASE_FAULTS as error:
        log.warning("evidence could not be kept", error=repr(error))
        raise ServiceFull(
            "busy", "The evidence of this check could not be stored; retry in 5 s.", 5
        ) from error
