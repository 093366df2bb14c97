"""eth_simulateV1: build a plan (pure), send it, read it (pure). Only sending touches the node.

Every block and call states number, time, gas, fees and coinbase: nodes differ in what they assume.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import structs

from roundtrip.chain.rpc.client import RpcCall, RpcError
from roundtrip.chain.rpc.dialect import CallError, Dialect, SimulatedBlock, SimulatedCall, SimulatedCallAnswer
from roundtrip.chain.rpc.errors import describe_error
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.domain.check.evidence import Environment, Missing
from roundtrip.venues import abi
from roundtrip.venues.base import Call

from .number_copies import NumberCopies
from .revert_reason import reason_in


class SimulatedStep(msgspec.Struct, frozen=True):
    """One call of a simulation. ``label`` is unique in its plan. ``gas_limit`` is for its execution, and the
    fee for its data is added; ``includes_data_fee``: it is in the limit already, as in a wallet's own limit.
    ``tip_wei`` None: the environment's."""

    label: str
    sender: Address
    call: Call
    gas_limit: int
    tip_wei: int | None = None
    includes_data_fee: bool = False

    def sent_gas(self, dialect: Dialect, base_fee_wei: int) -> int:
        """The gas limit as it is sent."""
        if self.includes_data_fee or not dialect.data_fee.wei:
            return self.gas_limit
        return self.gas_limit + dialect.data_fee.gas(self.call.data, base_fee_wei)


class PlannedBlock(msgspec.Struct, frozen=True):
    """A block ``delay_s`` seconds after the one before it, and the calls in it.

    ``balances`` (wei), ``nonces``, ``storage`` (contract, key, word) and ``codes`` (``0x`` hex) are set
    before its first call.
    """

    delay_s: int
    steps: tuple[SimulatedStep, ...]
    balances: tuple[tuple[Address, int], ...] = ()
    nonces: tuple[tuple[Address, int], ...] = ()
    storage: tuple[tuple[Address, str, int], ...] = ()
    codes: tuple[tuple[Address, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole simulation on one pinned block, in one environment. ``passes_numbers``: as many block numbers
    pass as in its seconds on the chain; else each block has the next number. Numbers that are skipped cost
    geth and nitro a block each, so they pass only for code that may read them."""

    environment: Environment
    blocks: tuple[PlannedBlock, ...]
    passes_numbers: bool = False

    def delays_s(self) -> tuple[int, ...]:
        """The seconds before each block."""
        return tuple(block.delay_s for block in self.blocks)


def join_plans(plans: Mapping[str, Plan]) -> Plan:
    """One simulation of several plans, one after the other, in the first one's environment. The name of its
    plan opens every label (``results_of``)."""
    blocks = tuple(
        structs.replace(
            block, steps=tuple(structs.replace(step, label=f"{name}/{step.label}") for step in block.steps)
        )
        for name, plan in plans.items()
        for block in plan.blocks
    )
    return Plan(next(iter(plans.values())).environment, blocks)


def merge_blocks(blocks: Iterable[PlannedBlock]) -> PlannedBlock:
    """One block with the calls of several, in their order."""
    first, *rest = blocks
    for block in rest:
        first = PlannedBlock(
            first.delay_s,
            first.steps + block.steps,
            first.balances + block.balances,
            first.nonces + block.nonces,
            first.storage + block.storage,
            first.codes + block.codes,
        )
    return first


class StepResult(msgspec.Struct, frozen=True):
    """The result of one call. ``data``: its return or revert data."""

    ok: bool
    gas_used: int
    data: bytes
    out_of_gas: bool
    logs: bytes = b"[]"
    """Its events as raw JSON from the node."""

    def reason(self) -> str | None:
        """Why it failed, uncleaned; None when it gave no reason."""
        return "out of gas" if self.out_of_gas else reason_in(self.data)


Results = dict[str, StepResult]
"""Results by the label of their step."""


def results_of(results: Results, name: str) -> Results:
    """The results of one plan of ``join_plans``."""
    prefix = f"{name}/"
    return {
        label.removeprefix(prefix): result for label, result in results.items() if label.startswith(prefix)
    }


def build(plan: Plan, pinned: BlockRef, dialect: Dialect, copies: NumberCopies | None = None) -> RpcCall:
    """The request that runs ``plan`` on the state of ``pinned``. ``copies``: code that runs in place of the
    originals and reads each block's number elsewhere."""
    clock = _clock(plan, pinned, dialect)
    blocks = [_block(plan, index, spot, dialect) for index, spot in enumerate(clock)]
    if copies is not None:
        _place_copies(blocks, plan, clock, dialect, copies)
    options = {"blockStateCalls": blocks, "validation": True, "traceTransfers": False}
    return RpcCall("eth_simulateV1", [options, {"blockHash": pinned.hash}])


def _place_copies(
    blocks: list[dict[str, Any]],
    plan: Plan,
    clock: list[tuple[int, int]],
    dialect: Dialect,
    copies: NumberCopies,
) -> None:
    """Puts the copies where the plan sets no code of its own, and the number into every block."""
    numbers = copies.numbers(plan.delays_s(), (number for number, _ in clock), dialect)
    for block, number in zip(blocks, numbers, strict=True):
        block["blockOverrides"] |= copies.block_override(number, dialect)
    for address, code in copies.copies:
        blocks[0]["stateOverrides"].setdefault(address, {}).setdefault("code", code)


def prev_randao(environment: Environment, index: int) -> str:
    """The prevRandao of block ``index`` of a plan. It differs per block, as on a chain: a token could
    recognise a simulation by a constant value."""
    seed = bytes.fromhex(environment.prev_randao[2:])
    return "0x" + abi.keccak(seed + index.to_bytes(4, "big")).hex()


def _clock(plan: Plan, pinned: BlockRef, dialect: Dialect) -> list[tuple[int, int]]:
    """Number and timestamp of each planned block."""
    times = []
    number, time_s = pinned.number, pinned.timestamp_s
    steps = dialect.numbers(plan.delays_s(), plan.passes_numbers)
    for block, step in zip(plan.blocks, steps, strict=True):
        number += step
        # geth refuses equal timestamps.
        time_s += max(1, block.delay_s)
        times.append((number, time_s))
    return times


def _block(plan: Plan, index: int, spot: tuple[int, int], dialect: Dialect) -> dict[str, Any]:
    block, (number, time_s) = plan.blocks[index], spot
    environment = plan.environment
    most_wei, usual_wei = environment.max_fee_wei, environment.tip_wei
    overrides: dict[str, dict[str, Any]] = {a: {"balance": hex(wei)} for a, wei in block.balances}
    for address, nonce in block.nonces:
        overrides.setdefault(address, {})["nonce"] = hex(nonce)
    for address, key, value in block.storage:
        overrides.setdefault(address, {}).setdefault("stateDiff", {})[key] = "0x" + abi.word(value)
    for address, code in block.codes:
        overrides.setdefault(address, {})["code"] = code
    return {
        "stateOverrides": overrides,
        "blockOverrides": {
            "number": hex(number),
            "time": hex(time_s),
            "baseFeePerGas": hex(environment.base_fee_wei),
            "feeRecipient": environment.coinbase,
            **({"prevRandao": prev_randao(environment, index)} if dialect.sets_randomness else {}),
        },
        "calls": [
            {
                "from": step.sender,
                "to": step.call.to,
                "gas": hex(step.sent_gas(dialect, environment.base_fee_wei)),
                "input": step.call.data,
                **({"value": hex(step.call.value_wei)} if step.call.value_wei else _NOTHING),
                **_fees(most_wei, usual_wei, step.tip_wei),
            }
            for step in block.steps
        ],
    }


_NOTHING: dict[str, str] = {}


@lru_cache(maxsize=1024)
def _fees(most_wei: int, usual_wei: int, tip_wei: int | None) -> dict[str, str]:
    """The fees of a call with this tip, of an environment with these ones."""
    tip_wei = usual_wei if tip_wei is None else tip_wei
    return {"maxFeePerGas": hex(most_wei - usual_wei + tip_wei), "maxPriorityFeePerGas": hex(tip_wei)}


GAS_POOL_SPENT = Missing("token", "its trades use more gas than a node gives one request")
"""The result of a simulation that met the end of the node's gas pool: it was not run to its end, which says
nothing about the token. A smaller request may tell."""
_INTRINSIC_GAS, _BLOCK_GAS = -38013, -38015
"""Errors of eth_simulateV1: a call with less than its intrinsic gas, or beyond the block's gas limit."""
_SUPPLIED_GAS = re.compile(r"supplied gas (\d{1,20})\)")


def read(plan: Plan, answer: msgspec.Raw | RpcError, pinned: BlockRef, dialect: Dialect) -> Results | Missing:
    """The results by label; Missing when the node did not run the plan, or ran another one;
    ``GAS_POOL_SPENT`` when its gas did not suffice for the plan."""
    if isinstance(answer, RpcError):
        if _is_gas_spent(plan, answer, dialect):
            return GAS_POOL_SPENT
        return Missing("node", f"the node did not run the simulation ({describe_error(answer)})")
    try:
        blocks = msgspec.json.decode(answer, type=list[SimulatedBlock])
        return _results(plan, blocks, pinned, dialect)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return Missing("node", f"the simulation's answer does not match the request ({str(error)[:60]})")


def _is_gas_spent(plan: Plan, error: RpcError, dialect: Dialect) -> bool:
    """Whether the node refused the plan because its calls before one used up the pool's or a block's gas. A
    call gets what is left, which is not the gas that was asked for, and less than its intrinsic gas."""
    if error.code == _BLOCK_GAS or "gas limit reached" in error.message:
        return True
    supplied = _SUPPLIED_GAS.search(error.message) if error.code == _INTRINSIC_GAS else None
    base_fee_wei = plan.environment.base_fee_wei
    sent = {step.sent_gas(dialect, base_fee_wei) for block in plan.blocks for step in block.steps}
    return supplied is not None and int(supplied[1]) not in sent


def _results(
    plan: Plan, blocks: list[SimulatedBlock], pinned: BlockRef, dialect: Dialect
) -> Results | Missing:
    results: Results = {}
    clock = _clock(plan, pinned, dialect)
    pool_gas, base_fee_wei = dialect.gas_pool, plan.environment.base_fee_wei
    for (number, time_s), planned, block in zip(
        clock, plan.blocks, _requested_blocks(clock, blocks), strict=True
    ):
        if int(block.number, 16) != number or int(block.timestamp, 16) != time_s:
            raise ValueError("another block")
        if len(block.calls) != len(planned.steps):
            raise ValueError("another number of calls")
        for step, call in zip(planned.steps, block.calls, strict=True):
            result = results[step.label] = _step_result(step, call, dialect)
            if pool_gas is None:
                continue
            # A call that was given less than its limit may fail for that alone.
            if not result.ok and pool_gas < step.sent_gas(dialect, base_fee_wei):
                return GAS_POOL_SPENT
            pool_gas -= result.gas_used
    return results


def _requested_blocks(clock: list[tuple[int, int]], blocks: list[SimulatedBlock]) -> list[SimulatedBlock]:
    """The requested blocks, without the empty ones that some nodes insert between their numbers."""
    if len(blocks) == len(clock):
        return blocks
    numbers = {number for number, _ in clock}
    filled = [block for block in blocks if int(block.number, 16) not in numbers]
    requested = [block for block in blocks if int(block.number, 16) in numbers]
    if len(requested) != len(clock) or any(block.calls for block in filled):
        raise ValueError("another number of blocks")
    return requested


def _step_result(step: SimulatedStep, call: SimulatedCall, dialect: Dialect) -> StepResult:
    gas_used = int(call.gas_used, 16)
    returned = _bytes(call.return_data)
    if call.status == "0x1":
        return StepResult(True, gas_used, returned, False, bytes(call.logs))
    if call.status != "0x0":
        raise ValueError("a call's status is neither success nor failure")
    error = call.error or CallError()
    error_data = _bytes(error.data) if error.data else None
    call_read = SimulatedCallAnswer(gas_used, returned, error.code, error.message, error_data)
    return StepResult(
        False, gas_used, dialect.revert_data(call_read), dialect.out_of_gas(call_read, step.gas_limit)
    )


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:] if text.startswith("0x") else text)
