"""The blocks and calls of a simulation: their numbers and times, their gas, and what their senders pay."""

import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from support.data_fee import intrinsic_gas
from support.node_errors import (
    INTRINSIC_GAS,
    NUMBERS,
    PARAMS,
    TIMES,
    TOO_MANY_BLOCKS,
    Json,
    Refused,
    intrinsic_text,
    no_funds,
)

FEE_SINK = "0x" + "a4b0" * 10
"""Receives the data fees."""
FILLER_S = 12
"""How much later than the block before it a filled block stands."""


@dataclass(frozen=True)
class BlockSpot:
    """A block of a simulation: one that was asked for, or (None) one that fills a gap."""

    number: int
    time_s: int
    asked: Json | None


@dataclass
class SimulatedCall:
    """A call of a simulation. ``gas``: its limit, None: what the block has left. ``supplied``: as far as the
    request's gas reaches. ``price_wei``: what its sender pays for gas."""

    call: Json
    gas: int | None
    supplied: int
    data_gas: int
    price_wei: int
    max_run_gas: int | None

    @property
    def run_gas(self) -> int:
        """What anvil runs it with."""
        left = self.supplied - self.data_gas
        return left if self.max_run_gas is None else min(left, self.max_run_gas)

    def validate_gas(self) -> None:
        """Raises Refused."""
        intrinsic = intrinsic_gas(self.call)
        if self.supplied < intrinsic:
            raise Refused(INTRINSIC_GAS, intrinsic_text(self.supplied, intrinsic))
        if self.supplied < intrinsic + self.data_gas:
            raise Refused(INTRINSIC_GAS, f"err: intrinsic gas too low (supplied gas {self.supplied})")

    def sent(self) -> list[Json]:
        """As anvil is asked: the sender pays the data fee by a transfer before the call."""
        fee_wei = self.data_gas * self.price_wei
        free = {"gas": hex(21_000), "maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0"}
        transfer = {"from": self.call.get("from"), "to": FEE_SINK, "value": hex(fee_wei), **free}
        return [*([transfer] if fee_wei else []), {**self.call, "gas": hex(self.run_gas)}]


def sender_of(call: Json) -> str:
    sender: str = call.get("from", "0x" + "0" * 40)
    return sender.lower()


def nonce_of(call: Json) -> int:
    return int(call.get("nonce", "0x0"), 16)


def max_fee_wei(call: Json) -> int:
    return int(call.get("maxFeePerGas") or call.get("gasPrice") or "0x0", 16)


def refuse_poor_senders(
    asked: list[Json], steps: list[list[SimulatedCall]], state: dict[str, tuple[int, int]]
) -> None:
    """Names a sender that cannot pay its call, as far as its balance is known before anything is run: in the
    first call, and in its own first call after the request set its balance. Raises Refused."""
    known = {sender: balance for sender, (_, balance) in state.items()}
    overridden: dict[str, int] = {}
    for block, block_steps in zip(asked, steps, strict=True):
        for account, override in block.get("stateOverrides", {}).items():
            if "balance" in override:
                overridden[account.lower()] = int(override["balance"], 16)
        for step in block_steps:
            sender = sender_of(step.call)
            value_wei = int(step.call.get("value", "0x0"), 16)
            want_wei = step.supplied * max_fee_wei(step.call) + value_wei
            have_wei = overridden.pop(sender, known.get(sender, want_wei))
            if have_wei < want_wei:
                raise no_funds(sender, have_wei, want_wei, step.supplied)
            known.clear()
            overridden.pop((step.call.get("to") or "").lower(), None)


def drop_transfers(block: Json, steps: list[SimulatedCall]) -> None:
    """Leaves out the transfers of data fees, and counts transactions and logs again."""
    sizes = [len(step.sent()) for step in steps]
    last = [sum(sizes[: n + 1]) - 1 for n in range(len(sizes))]
    block["calls"] = [block["calls"][place] for place in last]
    block["transactions"] = [block["transactions"][place] for place in last]
    logs: Iterator[tuple[int, Json]] = (
        (index, log) for index, call in enumerate(block["calls"]) for log in call["logs"]
    )
    for number, (index, log) in enumerate(logs):
        log |= {"transactionIndex": hex(index), "logIndex": hex(number)}


def chain(asked: list[Json], pinned: Json, most: int, equal_times: bool) -> list[BlockSpot]:
    """Numbers and timestamps of every block of a simulation, gaps filled. ``equal_times``: several blocks may
    have the same. Raises Refused."""
    if not asked:
        raise Refused(PARAMS, "empty input")
    if len(asked) > most:
        raise Refused(TOO_MANY_BLOCKS, "too many blocks")
    spots: list[BlockSpot] = []
    base = number = int(pinned["number"], 16)
    time_s = int(pinned["timestamp"], 16)
    for block in asked:
        overrides = block.get("blockOverrides", {})
        wanted = int(overrides.get("number", hex(number + 1)), 16)
        if wanted <= number:
            raise Refused(NUMBERS, f"block numbers must be in order: {wanted} <= {number}")
        if wanted - base > most:
            raise Refused(TOO_MANY_BLOCKS, "too many blocks")
        for between in range(number + 1, wanted):
            time_s += FILLER_S
            spots.append(BlockSpot(between, time_s, None))
        wanted_s = int(overrides.get("time", hex(time_s + FILLER_S)), 16)
        if wanted_s < time_s or (wanted_s == time_s and not equal_times):
            raise Refused(TIMES, f"block timestamps must be in order: {wanted_s} <= {time_s}")
        number, time_s = wanted, wanted_s
        spots.append(BlockSpot(number, time_s, block))
    return spots


def written_out(spot: BlockSpot, pinned: Json, validation: bool, is_nitro: bool) -> Json:
    """A block as the real node is asked for it: nothing left to what it assumes. On nitro the parent chain's
    number stands still, and PREVRANDAO is the difficulty, of which geth takes no notice. GASLIMIT is the
    local chain's, which its contracts know."""
    block = copy.deepcopy(spot.asked or {})
    overrides = block.get("blockOverrides", {})
    difficulty = int(overrides.pop("difficulty", "0x1"), 16)
    assumed = {
        "prevRandao": f"0x{difficulty if is_nitro else 0:064x}",
        "baseFeePerGas": pinned["baseFeePerGas"] if validation else "0x0",
        "feeRecipient": pinned["miner"],
    }
    number = pinned["l1BlockNumber"] if is_nitro else hex(spot.number)
    block["blockOverrides"] = {**assumed, **overrides, "number": number, "time": hex(spot.time_s)}
    block["calls"] = block.get("calls") or []
    return {field: block[field] for field in ("stateOverrides", "blockOverrides", "calls") if field in block}


def filled(spot: BlockSpot, pinned: Json) -> Json:
    """An empty block between two that were asked for."""
    name = hashlib.sha256(f"{spot.number} {spot.time_s}".encode()).hexdigest()
    return {
        "hash": "0x" + name,
        "baseFeePerGas": pinned["baseFeePerGas"],
        "gasUsed": "0x0",
        "transactions": [],
        "uncles": [],
        "calls": [],
    }
