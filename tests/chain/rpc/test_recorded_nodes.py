"""The scripted nodes against what a real geth and a real nitro answered to the same requests.

``recorded_nodes.json`` says when and on which versions it was measured.
"""

import json
import re
from pathlib import Path
from typing import Any, Literal

import aiohttp
import pytest

from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.dialects import DialectNode
from support.faulty_node import Batch
from support.node_errors import Json

RECORDING = json.loads(Path(__file__).with_name("recorded_nodes.json").read_text())
Recorded = Literal["geth", "nitro"]
NODES: tuple[Recorded, ...] = ("geth", "nitro")

_FEES = "the service does not ask: it takes the base fee of a header"
_CREATE = "anvil's simulations take no transaction that creates a contract"
UNSERVED: dict[Recorded, dict[str, str]] = {
    "geth": {
        "create": _CREATE,
        "safe": "anvil's is another block",
        "finalized": "measured without a beacon chain, which public nodes have",
        "bad parameter": "the text is of the node's own parser",
        "eth_gasPrice": _FEES,
        "eth_maxPriorityFeePerGas": _FEES,
        "eth_feeHistory": _FEES,
    },
    "nitro": {
        "create": _CREATE,
        "block hash of the number before": "the parent chain's hashes are not on the local chain",
        "ArbSys.arbBlockNumber()": "the local chain has no precompiles of ArbOS",
        "bad parameter": "the text is of the node's own parser",
        "eth_gasPrice": _FEES,
        "eth_maxPriorityFeePerGas": _FEES,
        "eth_feeHistory": _FEES,
    },
}
"""Recorded requests that the scripted nodes do not answer as recorded, and why."""
BATCHES = ("batch of 1001", "empty batch")
SERVED = [
    (node, name)
    for node in NODES
    for name in RECORDING["cases"]
    if name not in BATCHES and name not in UNSERVED[node]
]
GAS_LIMITS = (30_000_000, 2**50)
"""GASLIMIT on scripted nitro is the local chain's, which its contracts know; the header's is as recorded."""
CALLDATA_FLOOR_GAS = 96
"""Of four bytes of calldata: geth had Osaka's rules, the local chain has Cancun's, without EIP-7623."""
FLOORED = ("call to an address without code", "ArbSys.arbBlockNumber()")
ESTIMATE_TOLERANCE = 0.015
"""Real nodes end their search for the least gas when it is known to 1.5 %."""


class Frame:
    """Where a node stands: numbers, times and hashes are compared relative to its newest block."""

    def __init__(self, head: Json) -> None:
        self.number, self.time_s = int(head["number"], 16), int(head["timestamp"], 16)
        self.hash: str = head["hash"]

    def moved(self, value: Any, to: "Frame", field: str = "") -> Any:
        """A request as it is to be sent where ``to`` stands."""
        if isinstance(value, dict):
            if "accounts" in value:
                return {**RECORDING["accounts"], **value["accounts"]}
            return {name: self.moved(inner, to, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.moved(inner, to, field) for inner in value]
        if value == "accounts":
            return RECORDING["accounts"]
        if value == self.hash:
            return to.hash
        if field in ("number", "fromBlock", "toBlock"):
            return hex(int(value, 16) - self.number + to.number)
        if field == "time":
            return hex(int(value, 16) - self.time_s + to.time_s)
        return hex(to.number + 1000) if value == hex(self.number + 1000) else value

    def word(self, value: int, parents: set[int]) -> object:
        """A word that a contract returned."""
        if abs(value - self.time_s) < 10**7:
            return f"time {value - self.time_s}"
        if abs(value - self.number) <= 1000:
            return f"number {value - self.number}"
        if value in GAS_LIMITS:
            return "the gas limit"
        if value in parents:
            return "the parent chain's number"
        is_hash = value > 2**200 and len(set(value.to_bytes(32, "big"))) > 1
        return "hash" if is_hash else value

    def words(self, data: str, parents: set[int]) -> list[object] | str:
        if len(data) <= 2 or (len(data) - 2) % 64:
            return data
        return [self.word(int(data[at : at + 64], 16), parents) for at in range(2, len(data), 64)]

    def error(self, error: Json) -> Json:
        message = re.sub("0x[0-9a-f]{64}", "<hash>", error["message"])
        for start, origin in (("block numbers", self.number), ("block timestamps", self.time_s)):
            if message.startswith(start):
                message = re.sub(r"\d+", lambda match: str(int(match[0]) - origin), message)  # noqa: B023
        return {**error, "message": message}


def comparable_block(block: Json, frame: Frame) -> Json:
    """A simulated block."""
    parents = {int(block["l1BlockNumber"], 16)} if "l1BlockNumber" in block else set()
    fields = ("gasLimit", "gasUsed", *(("baseFeePerGas", "miner") if block["calls"] else ()))
    return {field: block[field] for field in fields} | {
        "number": int(block["number"], 16) - frame.number,
        "time_s": int(block["timestamp"], 16) - frame.time_s,
        "transactions": len(block["transactions"]),
        "has parent number": bool(parents),
        "calls": [comparable_call(call, frame, parents) for call in block["calls"]],
    }


def comparable_call(call: Json, frame: Frame, parents: set[int]) -> Json:
    error = {"error": frame.error(call["error"])} if "error" in call else {}
    log_fields = ("address", "topics", "data", "transactionIndex", "logIndex")
    return {
        **call,
        **error,
        "returnData": frame.words(call["returnData"], parents),
        "logs": [{field: log[field] for field in log_fields} for log in call["logs"]],
    }


def comparable_own(item: Json) -> Json:
    """nitro's own transaction in a block, or its receipt."""
    changing = ("blockHash", "blockNumber", "hash", "transactionHash", "l1BlockNumber")
    return {
        name: name if name in changing else value[:10] if name == "input" else value
        for name, value in item.items()
    }


def comparable(answer: Any, method: str, frame: Frame, node: Recorded) -> Any:
    """What of an answer has to be equal."""
    if "error" in answer:
        return frame.error(answer["error"])
    result = answer["result"]
    if method == "eth_simulateV1":
        return [comparable_block(block, frame) for block in result]
    if method == "eth_call":
        words = frame.words(result, set())
        return ["the parent chain's number", *words[1:]] if node == "nitro" else words
    if method == "eth_getBlockReceipts":
        return [comparable_own(receipt) for receipt in result]
    if method == "eth_getBlockByNumber" and result is not None:
        has_parent = "l1BlockNumber" in result
        fields = ("gasLimit", "difficulty", *(("baseFeePerGas",) if has_parent else ()))
        own = [comparable_own(item) for item in result["transactions"]]
        return {"own": own, "has parent": has_parent, **{field: result[field] for field in fields}}
    if method == "eth_createAccessList" and node == "nitro":
        # The real list has false slots of ArbOS, and their gas.
        return sorted(result)
    return result


@pytest.fixture
def head(rpc: SyncRpc) -> Frame:
    """On an empty block, as recorded."""
    rpc.call("evm_mine")
    return Frame(rpc.call("eth_getBlockByNumber", "latest", False))


async def answer_of(rpc: SyncRpc, node: Recorded, body: object) -> Any:
    scripted = DialectNode(rpc.url, node)
    async with (
        scripted.running(),
        aiohttp.ClientSession() as session,
        session.post(scripted.url, json=body) as answer,
    ):
        return await answer.json()


@pytest.mark.parametrize(("node", "name"), SERVED)
async def test_a_recorded_request_gets_the_recorded_answer(
    rpc: SyncRpc, head: Frame, node: Recorded, name: str
) -> None:
    case, recorded_head = RECORDING["cases"][name][node], Frame(RECORDING["heads"][node])
    request = recorded_head.moved(case["request"], head)
    answer = await answer_of(rpc, node, {"jsonrpc": "2.0", "id": 1, **request})
    method, expected = request["method"], case["answer"]
    if method == "eth_estimateGas":
        recorded, came = int(expected["result"], 16), int(answer["result"], 16)
        assert recorded * (1 - ESTIMATE_TOLERANCE) <= came <= recorded
        return
    came, real = (
        comparable(given, method, frame, node) for given, frame in ((answer, head), (expected, recorded_head))
    )
    if node == "geth" and name in FLOORED:
        for gas in ((block := real[0]), block["calls"][0]):
            for field in {"gasUsed", "maxUsedGas"} & set(gas):
                gas[field] = hex(int(gas[field], 16) - CALLDATA_FLOOR_GAS)
    assert came == real


@pytest.mark.parametrize("node", NODES)
async def test_recorded_batches(rpc: SyncRpc, node: Recorded) -> None:
    call = {"jsonrpc": "2.0", "method": "eth_chainId", "params": []}
    bodies: tuple[Batch, ...] = ([{**call, "id": n} for n in range(1001)], [])
    for name, body in zip(BATCHES, bodies, strict=True):
        assert await answer_of(rpc, node, body) == RECORDING["cases"][name][node]["answer"]


def test_every_unserved_request_is_recorded() -> None:
    assert all(set(unserved) <= set(RECORDING["cases"]) for unserved in UNSERVED.values())
