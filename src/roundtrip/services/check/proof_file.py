"""Reads a proof file and verifies what needs no node."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from roundtrip.chain.blocks import environments
from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.chain.rpc.client import READ_METHODS
from roundtrip.chain.rpc.data_fee import DataFee
from roundtrip.chain.rpc.dialect import BY_NAME, Dialect
from roundtrip.domain.base import names
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BURN_ADDRESSES, parse_address
from roundtrip.domain.base.venue import COMMON_MONEY, MAX_OTHERS_NAMED, Venue
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, LaunchRecord, PoolLaunch, QuoteHop, QuoteRate
from roundtrip.domain.check.proof_input import MAIN_WALLET, ProofInputs, RecalledWallet
from roundtrip.domain.check.verdict import judge
from roundtrip.services.engine.candidates import Candidates
from roundtrip.services.engine.inputs import CheckInputs
from roundtrip.services.engine.sell_results import EVIDENCE_SCHEMA
from roundtrip.store.check.token_index import MAX_RECALLED
from roundtrip.venues import BY_KIND, amm_v3
from roundtrip.venues.base import Contracts

from .proof_schema import CheckProof, name_contracts, present_verdict

MAX_FILE_BYTES = 8 * 2**20
_MAX_SHOWN = 300
_MAX_NESTED = 32
"""Four times what a check's requests need. How deep a reader of JSON goes depends on the interpreter."""
_HASH = re.compile(r"0x[0-9a-f]{64}")


class UnreadableProof(ValueError):
    """The file does not have the shape of a proof. The text is one sentence."""


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """One verified claim and whether it holds; None: not known."""

    what: str
    holds: bool | None
    seen: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A decoded proof. ``trips``: its requests as JSON values."""

    proof: CheckProof
    evidence: Evidence
    inputs: ProofInputs
    trips: list[list[list[dict[str, Any]]]]

    def dialect(self) -> Dialect | None:
        """The dialect of the check's node, with its fee for data and its gas pool; None: it is unknown."""
        known = BY_NAME.get(self.proof.dialect)
        fee = DataFee(self.proof.data_fee_wei)
        return None if known is None else replace(known, gas_pool=self.proof.gas_pool, data_fee=fee)

    def check_inputs(self) -> CheckInputs:
        """The inputs of the check. Raises ValueError where no check can have them."""
        evidence = self.evidence
        if not evidence.environments:
            raise ValueError("it has no wallets")
        head = ChainHead(
            block=evidence.block,
            base_fee_wei=evidence.block_base_fee_wei,
            coinbase=evidence.environments[0].coinbase,
            prev_randao="0x",
            market=replace(evidence.market, rates=()),
            heard_s=0.0,
            dialect=self.dialect(),
        )
        inputs = self.inputs
        candidates = Candidates(
            inputs.venues, inputs.others, evidence.left_out, evidence.candidates_complete, inputs.other_pools
        )
        return CheckInputs(
            head,
            evidence.token,
            bytes.fromhex(inputs.seed[2:]),
            candidates,
            inputs.deep,
            inputs.indexed,
            recalled=inputs.recalled,
        )


def read_claim(document: bytes) -> Claim:
    """Decodes the bytes of a proof file. Raises UnreadableProof."""
    if len(document) > MAX_FILE_BYTES:
        raise UnreadableProof(f"The file is larger than {MAX_FILE_BYTES // 2**20} MiB: it cannot be a proof.")
    try:
        proof = msgspec.json.decode(document, type=CheckProof)
        trips = [[[_entry(request) for request in batch] for batch in trip] for trip in proof.trips]
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        if refusal := _refusal(document):
            raise UnreadableProof(f"The file holds an error answer, not a proof: {refusal}") from None
        where = str(error).partition(" - at `")[2].rstrip("`")
        at = f" at {printable(where)}" if where else ""
        raise UnreadableProof(f"The file does not have the shape of a proof{at}.") from None
    try:
        schema = msgspec.json.decode(proof.evidence, type=_SchemaNumber).schema
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise UnreadableProof("The file holds no evidence.") from None
    if schema != EVIDENCE_SCHEMA:
        raise UnreadableProof(
            f"The evidence has schema {printable(schema)}; this release reads schema {EVIDENCE_SCHEMA}."
        )
    try:
        evidence = canonical_json.load(Evidence, bytes(proof.evidence))
        inputs = canonical_json.load(ProofInputs, bytes(proof.begun))
    except (ValueError, RecursionError):
        raise UnreadableProof("The evidence does not have the shape of a check's.") from None
    return Claim(proof, evidence, inputs, trips)


class _RefusalDetail(msgspec.Struct):
    code: str
    message: str = ""


class _RefusalAnswer(msgspec.Struct):
    error: _RefusalDetail


def _refusal(document: bytes) -> str | None:
    """The error that the service returned in place of a proof: code and sentence."""
    try:
        error = msgspec.json.decode(document, type=_RefusalAnswer).error
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return f"{printable(error.code)}, {printable(error.message)}"


class _SchemaNumber(msgspec.Struct):
    schema: int


def _entry(request: Any) -> dict[str, Any]:
    params = msgspec.json.decode(request.params)
    if _is_deeper(params, _MAX_NESTED):
        raise ValueError("parameters are nested too deep")
    return {"jsonrpc": request.jsonrpc, "id": request.id, "method": request.method, "params": params}


def _is_deeper(value: object, limit: int) -> bool:
    """Whether JSON lists and objects are nested deeper than ``limit``."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            inner
            for value in level
            if isinstance(value, list | dict)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def printable(value: object) -> str:
    """An untrusted value, cleaned to one line."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return names.clean(text, _MAX_SHOWN) or "nothing"


def rejudge(claim: Claim, policy: Policy) -> ProofFinding:
    """Judges the evidence here, and compares the result and the other fields of the file with it."""
    evidence, proof = claim.evidence, claim.proof
    mismatch = _envelope_mismatch(claim)
    if mismatch is not None:
        return ProofFinding("verdict", False, mismatch)
    try:
        judged = present_verdict(judge(evidence, policy).verdict)
    except Exception as error:  # Evidence that no check makes may break any rule.
        return ProofFinding("verdict", False, f"the evidence cannot be judged ({type(error).__name__})")
    if judged == proof.verdict:
        policy_note = (
            ""
            if evidence.policy_version == policy.version
            else f" (judged here under policy {policy.version})"
        )
        return ProofFinding("verdict", True, f"{judged.code}, {judged.level}: {judged.text}{policy_note}")
    claimed = printable(f"{proof.verdict.code}, {proof.verdict.level}: {proof.verdict.text}")
    rejudged = printable(f"{judged.code}, {judged.level}: {judged.text}")
    if evidence.policy_version != policy.version:
        version = printable(evidence.policy_version)
        text = f"under policy {version}: {claimed} Under {policy.version}, the policy here: {rejudged}"
        return ProofFinding("verdict", None, text)
    return ProofFinding("verdict", False, f"the file says {claimed} Its evidence gives {rejudged}")


def _envelope_mismatch(claim: Claim) -> str | None:
    """The first field of the file that contradicts its evidence; None: none does."""
    evidence, proof = claim.evidence, claim.proof
    block = evidence.block
    try:
        time = datetime.fromtimestamp(block.timestamp_s, UTC)
    except (ValueError, OverflowError, OSError):
        return "the time in the evidence is not a block's time"
    for subject, claimed, expected in (
        ("address", proof.address.lower(), evidence.token),
        ("chainId", proof.chain_id, evidence.chain_id),
        ("block.number", proof.block.number, block.number),
        ("block.hash", proof.block.hash, block.hash),
        ("block.time", proof.block.time, time),
        ("policyVersion", proof.policy_version, evidence.policy_version),
    ):
        if claimed != expected:
            values = f"{printable(str(claimed))} in the file and {printable(str(expected))} in its evidence"
            return f"{subject} is {values}"
    return None


def find_mismatch(claim: Claim, chain_id: int, contracts: Contracts, policy: Policy) -> str | None:
    """Why no check on this network can have sent the requests; None: no reason found yet."""
    proof = claim.proof
    if proof.chain_id != chain_id:
        return (
            f"the proof is for chain {proof.chain_id}, and this command trusts contracts of chain {chain_id}"
        )
    ours = name_contracts(contracts)
    for name in sorted(ours.keys() | proof.contracts.keys()):
        if (claimed := proof.contracts.get(name, "none")) != (trusted := ours.get(name, "none")):
            values = f"{printable(claimed)} in the file and {trusted} here"
            return f"contract {printable(name)} is {values}, so the file proves nothing"
    for trip in claim.trips:
        for request in (entry for batch in trip for entry in batch):
            if request["method"] not in READ_METHODS:
                return f"the requests include {printable(request['method'])}, and a check only reads"
    try:
        return _inputs_mismatch(claim, contracts, policy) or _market_mismatch(claim, contracts)
    except (ValueError, OverflowError, AssertionError, TypeError) as error:
        return f"no check can start from these inputs ({printable(str(error))})"


def _inputs_mismatch(claim: Claim, contracts: Contracts, policy: Policy) -> str | None:
    """Why no check can start with these inputs: address, wallets, holders; None: it can."""
    evidence, inputs = claim.evidence, claim.check_inputs()
    if parse_address(evidence.token) != evidence.token or not _HASH.fullmatch(evidence.block.hash):
        return "the token's address or the block's hash is malformed"
    if len(inputs.seed) != 32 or environments.draw(inputs.seed, inputs.head, policy) != evidence.environments:
        return "the wallets were not drawn from the seed"
    if max(len(inputs.candidates.venues), len(evidence.market.rates)) > 4 * policy.most_scouted:
        # Most: twice ``most_scouted``, the standard ones, and one of a launch.
        return "it tries more venues than a check does"
    if len(inputs.candidates.other_pools) > min(MAX_OTHERS_NAMED, inputs.candidates.others):
        return "it names more pools than a check does"
    if not _is_recallable(inputs.recalled, policy):
        return "it recalls wallets that no check keeps"
    holders = inputs.indexed.holders
    if (inputs.indexed.deployer is None) != (inputs.indexed.record is None):
        return "a check has a deployer and its launches together, and the file has one of them"
    if inputs.indexed.unread and holders:
        return "it tries holders and says that they could not be read"
    if len(set(holders)) != len(holders) or len(holders) > policy.drawn_holders:
        return "it tries more holders than a check does, or one of them twice"
    for holder in holders:
        if parse_address(holder) != holder or holder in BURN_ADDRESSES | contracts.all_addresses() | {
            evidence.token
        }:
            return f"{printable(holder)} cannot be a holder of the token"
    return None


def _is_recallable(recalled: tuple[RecalledWallet, ...], policy: Policy) -> bool:
    """True for at most as many wallets as a check reads, each drawn by a seed."""
    numbers = range(MAIN_WALLET, sum(policy.crowd_counts) + 1)
    return len(recalled) <= MAX_RECALLED and all(
        _HASH.fullmatch(wallet.seed) and wallet.number in numbers for wallet in recalled
    )


def _market_mismatch(claim: Claim, contracts: Contracts) -> str | None:
    """Why no check can start with these rates and venues; None: it can."""
    evidence, inputs = claim.evidence, claim.check_inputs()
    for rate in evidence.market.rates:
        if not _is_check_route(rate, evidence, contracts):
            return f"{printable(rate.asset)} is priced by a route that a check does not use"
    if evidence.market.pool_fee_pips not in (None, *amm_v3.FEE_TIERS_PIPS):
        return "usdg is priced by a route that a check does not use"
    for venue in inputs.candidates.venues:
        if not is_genuine(venue, evidence, contracts):
            return (
                f"{printable(venue.pool or venue.pool_id or venue.kind)} is not an {venue.kind} of this token"
            )
        if not _is_paid_in_money(venue, evidence):
            return f"{printable(venue.quote_address)} is not money that a check trades for"
    return None


def _is_paid_in_money(venue: Venue, evidence: Evidence) -> bool:
    """A check skips pools against other quotes, because anyone can make one against a token of their own. The
    launchpad's quote is proven with the answers."""
    launch = evidence.launch
    if isinstance(launch, LaunchRecord | PoolLaunch) and launch.quote_address == venue.quote_address:
        return True
    return venue.quote in COMMON_MONEY


def _is_check_route(rate: QuoteRate, evidence: Evidence, contracts: Contracts) -> bool:
    """True for a route straight from weth, or over usdg by its price pool; never over another token."""
    parse_address(rate.asset)
    last = rate.route[-1] if rate.route else None
    if last is None or last.to != rate.asset or last.fee_pips not in amm_v3.FEE_TIERS_PIPS:
        return False
    over_usdg = QuoteHop(contracts.usdg, evidence.market.pool_fee_pips or 0)
    return rate.route[:-1] in ((), (over_usdg,))


def is_genuine(venue: Venue, evidence: Evidence, contracts: Contracts) -> bool:
    """Whether a venue is genuine: a pool's address or id must follow from its key. A curve must be the one of
    the launchpad's record, which is proven with the answers."""
    token, quote, fee = evidence.token, venue.quote_address, venue.fee_pips
    if any(at is not None and parse_address(at) != at for at in (quote, venue.pool, venue.hook)):
        return False
    if token == quote or not 0 <= fee < 2**24 or not 0 <= venue.tick_spacing < 2**24:
        return False
    launch = evidence.launch if isinstance(evidence.launch, LaunchRecord) else None
    return BY_KIND[venue.kind].rebuild(venue, token, launch, contracts) == venue
