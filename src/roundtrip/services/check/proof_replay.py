"""Repeats a check from its proof: the same requests, to the reader's own node."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from roundtrip.chain.blocks.heads import market_call, read_header, read_market
from roundtrip.chain.rpc.client import Meter, Node, RpcCall, RpcError, RpcNode, quantity
from roundtrip.chain.rpc.dialect import Dialect
from roundtrip.chain.rpc.dialect_probe import probe
from roundtrip.chain.rpc.recorder import CallComparer
from roundtrip.chain.simulate.rates import GivenRates, Rates
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.policy import Policy
from roundtrip.domain.base.types import BPS
from roundtrip.domain.check import canonical_json
from roundtrip.domain.check.evidence import Evidence, MarketRates
from roundtrip.services.engine.check_run import run_check
from roundtrip.services.runtime.check_context import CheckContext
from roundtrip.venues.base import Contracts

from .proof_file import Claim, ProofFinding, find_mismatch, printable, rejudge

_MAX_DIFFERENCES, _MAX_VALUE = 3, 60
"""The differences that a finding lists, and the characters of a value that it shows."""
NOT_ASKED = "not checked: name a node with --rpc"


class CannotReplayHere(Exception):
    """The proof cannot be verified at this node; the text says why."""


class NodeContradicts(Exception):
    """The node contradicts the file about the block or the market; the text says how."""


@dataclass(frozen=True, slots=True)
class TrustedSetting:
    """The reader's own contracts, policy and node; ``node`` None: none."""

    chain_id: int
    contracts: Contracts
    policy: Policy
    node: RpcNode | None = None


async def verify_claim(claim: Claim, trusted: TrustedSetting) -> list[ProofFinding]:
    """Verifies the verdict, the requests and, where these can be rebuilt, the answers."""
    return [rejudge(claim, trusted.policy), *await _verify_requests(claim, trusted)]


async def _verify_requests(claim: Claim, trusted: TrustedSetting) -> list[ProofFinding]:
    mismatch = find_mismatch(claim, trusted.chain_id, trusted.contracts, trusted.policy)
    other_policy = claim.evidence.policy_version != trusted.policy.version
    if mismatch is not None:
        return [
            _requests_finding(mismatch, other_policy),
            ProofFinding("answers", None, "not checked: see the requests"),
        ]
    if trusted.node is None:
        return [ProofFinding("requests", None, NOT_ASKED), ProofFinding("answers", None, NOT_ASKED)]
    try:
        await _check_node_agrees(claim, trusted, trusted.node)
        comparing = CallComparer(trusted.node, claim.trips)
        replayed = await _replay(claim, trusted, comparing)
    except CannotReplayHere as why:
        text = f"cannot be verified here: {why}"
        return [ProofFinding("requests", None, text), ProofFinding("answers", None, text)]
    except NodeContradicts as why:
        return [
            ProofFinding("requests", None, "not rebuilt: see the answers"),
            ProofFinding("answers", False, str(why)),
        ]
    comparing.end()
    if isinstance(replayed, str):
        return [
            _requests_finding(replayed, other_policy),
            ProofFinding("answers", None, "not checked: see the requests"),
        ]
    same = f"all {comparing.calls} in {comparing.trip} rounds are the requests that a check sends"
    requests = ProofFinding("requests", True, same)
    if comparing.difference is not None:
        requests = _requests_finding(f"the file differs: {comparing.difference}", other_policy)
    answers = _compare_answers(claim.evidence, replayed, other_policy)
    if comparing.failed is None:
        return [requests, answers]
    # A missing answer changes the next requests.
    reason = f"your node did not answer all requests ({printable(comparing.failed)})"
    return [
        finding if finding.holds else replace(finding, holds=None, seen=f"{reason}: {finding.seen}")
        for finding in (requests, answers)
    ]


def _requests_finding(mismatch: str, other_policy: bool) -> ProofFinding:
    if other_policy:
        return ProofFinding(
            "requests", None, f"made under a policy that this release does not have ({mismatch})"
        )
    return ProofFinding("requests", False, mismatch)


async def _replay(claim: Claim, trusted: TrustedSetting, node: CallComparer) -> Evidence | str:
    """Repeats the check from the same inputs; returns the evidence, or why no check can have these inputs.
    Only requests that are built here are sent, never the file's. Raises CannotReplayHere."""
    rates, meter = GivenRates(claim.evidence.market.rates), Meter()
    context = CheckContext(trusted.chain_id, trusted.contracts, node, trusted.policy, rates)
    try:
        return (await run_check(context, claim.check_inputs(), meter)).evidence
    except RoundtripError as fault:
        raise CannotReplayHere(fault.message) from fault
    except Exception as error:  # Numbers that no check has may break any rule.
        return f"no check can start from these inputs ({type(error).__name__})"


# --- chain, block and market -----------------------------------------------------------------------


async def _check_node_agrees(claim: Claim, trusted: TrustedSetting, node: RpcNode) -> None:
    """Checks that the node is of the chain, has the block and its state, and agrees with the file on the
    block, the fee for data and the prices; and that it has the dialect and the gas of the check's node.
    Raises CannotReplayHere and NodeContradicts."""
    block = claim.evidence.block
    try:
        await _check_block(claim, trusted, node)
        if await _state_is_gone(claim, node):
            raise CannotReplayHere(f"your node no longer has the state of block {block.number}")
        probed = await probe(node, block, claim.evidence.block_base_fee_wei)
        if isinstance(node, Node):
            node.note_data_fee(probed.dialect.data_fee)
        if probed.dialect.name != claim.proof.dialect:
            raise CannotReplayHere(
                f"your node is of kind {probed.dialect.name}, and the check was made on one of kind "
                f"{printable(claim.proof.dialect)}, for which the requests are different"
            )
        _check_data_fee(claim, probed.dialect)
        await _check_market(claim, trusted, node)
    except RoundtripError as fault:
        raise CannotReplayHere(fault.message) from fault


def _check_data_fee(claim: Claim, dialect: Dialect) -> None:
    """Checks that the file's fee for data, measured some seconds before its block, is near the block's own:
    it raises every gas limit. Checks that the node gives a request as much gas as the check's: requests are
    planned by it. Raises NodeContradicts, CannotReplayHere."""
    claimed, actual = claim.proof.data_fee_wei, dialect.data_fee.wei
    # The claimed fee may be between two thirds of the actual one and twice it.
    if not actual <= claimed * 3 // 2 <= 3 * actual:
        raise NodeContradicts(f"a call's data cost {claimed} wei by the file and {actual} wei on the chain")
    if claim.proof.gas_pool != dialect.gas_pool:
        raise CannotReplayHere(
            f"your node gives a request {dialect.gas_pool} gas, and the check's gave {claim.proof.gas_pool}"
        )


async def _check_block(claim: Claim, trusted: TrustedSetting, node: RpcNode) -> None:
    evidence, block = claim.evidence, claim.evidence.block
    chain, by_hash, by_number = await node.batch(
        [
            RpcCall("eth_chainId", []),
            RpcCall("eth_getBlockByHash", [block.hash, False]),
            RpcCall("eth_getBlockByNumber", [hex(block.number), False]),
        ]
    )
    if quantity(chain) != trusted.chain_id:
        raise CannotReplayHere(
            f"your node is on chain {quantity(chain)}, and the proof is for chain {trusted.chain_id}"
        )
    if isinstance(by_hash, RpcError):
        if not isinstance(by_number, RpcError):
            other = read_header(by_number).hash
            raise NodeContradicts(
                f"block {block.number} is {other} on the chain and {block.hash} in the file"
            )
        raise CannotReplayHere(f"your node does not know block {block.number}")
    header = read_header(by_hash)
    actual = header.head(evidence.market, 0.0)
    for subject, claimed, expected in (
        ("hash", block.hash, actual.block.hash.lower()),
        ("number", block.number, actual.block.number),
        ("time", block.timestamp_s, actual.block.timestamp_s),
        ("base fee", evidence.block_base_fee_wei, actual.base_fee_wei),
        ("miner", evidence.environments[0].coinbase, actual.coinbase),
    ):
        if claimed != expected:
            raise NodeContradicts(
                f"the block's {subject} is {printable(claimed)} in the file"
                f" and {printable(expected)} on the chain"
            )
    if isinstance(by_number, RpcError) or read_header(by_number).hash.lower() != block.hash:
        raise NodeContradicts(f"block {block.hash} was reorged out: another block has its number")


async def _state_is_gone(claim: Claim, node: RpcNode) -> bool:
    request = RpcCall("eth_getBalance", [claim.evidence.token, {"blockHash": claim.evidence.block.hash}])
    (answer,) = await node.batch([request])
    return isinstance(answer, RpcError)


async def _check_market(claim: Claim, trusted: TrustedSetting, node: RpcNode) -> None:
    """Checks that the file's price of an eth, which may be up to a minute old, is near the block's
    own."""
    evidence, contracts = claim.evidence, trusted.contracts
    claimed, block = evidence.market, evidence.block
    (answer,) = await node.batch([market_call(contracts, block)])
    actual = read_market(answer, contracts, block)
    assets = [rate.asset for rate in claimed.rates]
    actual = await Rates(node, contracts).join(actual, assets, block, Meter())
    if claimed.block_number > block.number:
        raise NodeContradicts("the file's prices are of a later block")
    _check_routes(claimed, actual)
    known = {(rate.asset, rate.decimals): rate.units_per_eth_raw for rate in actual.rates}
    prices: list[tuple[str, object, object]] = [
        (f"units of {printable(rate.asset)}", rate.units_per_eth_raw, known.get((rate.asset, rate.decimals)))
        for rate in claimed.rates
    ]
    prices.append(("units of usdg", claimed.usdg_per_eth_raw, actual.usdg_per_eth_raw))
    prices.append(("dollars (e8) by the feed", claimed.feed_usd_e8, actual.feed_usd_e8))
    for subject, claimed_raw, actual_raw in prices:
        # Where the file has no price, it claims nothing.
        if isinstance(claimed_raw, int) and not _is_near(claimed_raw, actual_raw, trusted.policy):
            actual_text = actual_raw if isinstance(actual_raw, int) else "nothing"
            raise NodeContradicts(
                f"an eth is worth {printable(claimed_raw)} {subject} in the file,"
                f" and {actual_text} at that block"
            )


def _check_routes(claimed: MarketRates, actual: MarketRates) -> None:
    """Checks that usdg and the other quote assets were bought in the pools that are best at this block.
    Raises CannotReplayHere: when the file's prices were read, others may have been the best."""
    routes = {rate.asset: rate.route for rate in actual.rates}
    claimed_fee_pips = claimed.pool_fee_pips
    if claimed_fee_pips is not None and claimed_fee_pips != actual.pool_fee_pips:
        raise CannotReplayHere("usdg was bought in another pool than the best one at that block")
    for rate in claimed.rates:
        if routes.get(rate.asset) != rate.route:
            raise CannotReplayHere(
                f"{printable(rate.asset)} was bought in other pools than the best ones at that block"
            )


def _is_near(claimed_raw: int, actual_raw: object, policy: Policy) -> bool:
    """Whether two prices, read at different times, differ by no more than a pool and a feed may."""
    return (
        isinstance(actual_raw, int)
        and abs(claimed_raw - actual_raw) * BPS <= actual_raw * policy.price_disagreement_bps
    )


# --- differences of two documents ------------------------------------------------------------------


def _compare_answers(claimed: Evidence, replayed: Evidence, other_policy: bool) -> ProofFinding:
    """Compares the file's evidence with the evidence from the answers here."""
    replayed = replace(replayed, policy_version=claimed.policy_version)
    if canonical_json.dump(replayed) == canonical_json.dump(claimed):
        return ProofFinding("answers", True, "they give the evidence of the file, byte for byte")
    found_differences = list(
        differences(json.loads(canonical_json.dump(claimed)), json.loads(canonical_json.dump(replayed)))
    )
    text = "; ".join(str(difference) for difference in found_differences[:_MAX_DIFFERENCES])
    further = len(found_differences) - _MAX_DIFFERENCES
    text += f"; and {further} more" if further > 0 else ""
    if other_policy:
        return ProofFinding("answers", None, f"made under a policy that this release does not have: {text}")
    return ProofFinding("answers", False, text)


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two documents differ."""

    path: str
    claimed: object
    actual: object

    def __str__(self) -> str:
        return f"{self.path} is {_short(self.claimed)} in the file and {_short(self.actual)} at the node"


def differences(claimed: object, actual: object, path: str = "") -> Iterator[Difference]:
    """Yields every place where two canonical documents differ, from the root down."""
    if (
        isinstance(claimed, dict)
        and isinstance(actual, dict)
        and claimed.get("kind_of") == actual.get("kind_of")
    ):
        for key in actual:
            yield from differences(claimed[key], actual[key], f"{path}.{key}" if path else key)
    elif isinstance(claimed, list) and isinstance(actual, list) and len(claimed) == len(actual):
        for number, (element, actual_element) in enumerate(zip(claimed, actual, strict=True)):
            yield from differences(element, actual_element, f"{path}[{number}]")
    elif claimed != actual:
        yield Difference(path, claimed, actual)


def _short(value: object) -> str:
    if isinstance(value, dict) and "kind_of" in value:
        inner = ", ".join(f"{key} {_plain(value[key])}" for key in value if key != "kind_of")
        value = f"{value['kind_of']} ({inner})"
    elif isinstance(value, list):
        return f"a list of {len(value)}"
    text = printable(value)
    return text if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + "..."


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
