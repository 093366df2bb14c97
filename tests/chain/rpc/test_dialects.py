"""What the scripted nodes of other kinds answer to raw requests that no recording holds."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from eth_utils.address import to_checksum_address

from roundtrip_development.devnet.sync_rpc import SyncRpc
from support.dialects import ARBOS_STATE, DialectNode, Kind
from support.mining import settle
from support.nitro_blocks import parent_number
from support.node_errors import REVERT_CODES, Json
from support.wallet import calldata

ETH = 10**18
SENDER, TELLER, REVERTER, BURNER = ("0x" + part * 20 for part in ("5a", "5b", "5c", "5d"))
TELLS = "0x436000524260205260406000f3"
"""NUMBER and TIMESTAMP, a word each."""
REVERTS = "0x366000600037366000fd"
"""With what it was called with."""
BURNS = "0x5b600056"
BALANCE, TELLS_BALANCE = "0x" + "5e" * 20, "0x333160005260206000f3"
"""The caller's."""
CHECKSUMMED = to_checksum_address(SENDER)
FEES = {"maxFeePerGas": hex(10**10), "maxPriorityFeePerGas": "0x0"}
OVERRIDES: Json = {
    SENDER: {"balance": hex(ETH), "nonce": "0x5"},
    TELLER: {"code": TELLS},
    REVERTER: {"code": REVERTS},
    BURNER: {"code": BURNS},
}
TRADING_NOT_OPEN = calldata("Error(string)", "trading not open")
OVERFLOWN = calldata("Panic(uint256)", 0x11)


class NodeClient:
    """Raw requests to one node, which stand on the newest block."""

    def __init__(self, node: DialectNode, rpc: SyncRpc, session: aiohttp.ClientSession) -> None:
        self.node, self._session = node, session
        newest = rpc.call("eth_getBlockByNumber", "latest", False)
        self.number, self.time_s = int(newest["number"], 16), int(newest["timestamp"], 16)

    def block(self, number: int, time_s: int, *calls: Json, **overrides: str) -> Json:
        """``number`` and ``time_s``: so much after the newest block's."""
        given = {"number": hex(self.number + number), "time": hex(self.time_s + time_s)}
        given |= {"baseFeePerGas": hex(10**9), **overrides}
        return {"stateOverrides": OVERRIDES, "blockOverrides": given, "calls": list(calls)}

    async def post(self, body: object) -> Any:
        async with self._session.post(self.node.url, json=body) as answer:
            return await answer.json()

    async def call(self, method: str, *params: object) -> Json:
        answer: Json = await self.post({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        assert (answer.pop("jsonrpc"), answer.pop("id")) == ("2.0", 7)
        return answer

    async def simulate(self, *blocks: Json, validation: bool = True) -> Json:
        options = {"blockStateCalls": blocks, "validation": validation}
        return await self.call("eth_simulateV1", options, hex(self.number))

    async def blocks(self, *blocks: Json) -> list[Json]:
        found: list[Json] = (await self.simulate(*blocks))["result"]
        return found

    async def one(self, call: Json) -> Json:
        """A single call's result."""
        (block,) = await self.blocks(self.block(1, 1, call))
        (result,) = block["calls"]
        return dict(result)


def to(address: str, gas: int = 100_000, **given: str) -> Json:
    return {"from": SENDER, "to": address, "gas": hex(gas), **FEES, **given}


@contextlib.asynccontextmanager
async def asking(rpc: SyncRpc, kind: Kind) -> AsyncIterator[NodeClient]:
    node = DialectNode(rpc.url, kind)
    async with aiohttp.ClientSession() as session, node.running():
        yield NodeClient(node, rpc, session)


@pytest.fixture(params=["geth", "nitro"])
async def asked(rpc: SyncRpc, request: pytest.FixtureRequest) -> AsyncIterator[NodeClient]:
    async with asking(rpc, request.param) as found:
        yield found


@pytest.fixture
async def nitro(rpc: SyncRpc) -> AsyncIterator[NodeClient]:
    async with asking(rpc, "nitro") as found:
        yield found


# --- calls and their errors ------------------------------------------------------------------------


REVERTING = [
    (TRADING_NOT_OPEN, "execution reverted: trading not open"),
    (OVERFLOWN, "execution reverted: arithmetic underflow or overflow"),
    (OVERFLOWN[:-2] + "77", "execution reverted: unknown panic code: 0x77"),
    ("0x08c379a0ff", "execution reverted"),
    ("0xaabbccdd", "execution reverted"),
    ("0x", "execution reverted"),
]


@pytest.mark.parametrize(("data", "message"), REVERTING)
async def test_a_revert_has_its_bytes_in_the_error(asked: NodeClient, data: str, message: str) -> None:
    result = await asked.one(to(REVERTER, input=data))
    code = REVERT_CODES[asked.node.dialect]
    assert (result["returnData"], result["error"]) == ("0x", {"code": code, "message": message, "data": data})


async def test_a_request_has_only_so_much_gas(asked: NodeClient) -> None:
    """The data fee is of it, too: at a base fee of 1 gwei a tenth of the recorded one."""
    asked.node.gas_cap = 300_000
    (block,) = await asked.blocks(asked.block(1, 1, to(BURNER, gas=200_000), to(BURNER, gas=200_000)))
    assert [call["gasUsed"] for call in block["calls"]] == [hex(200_000), hex(100_000)]
    for left, geth, nitro in (
        (20_000, *2 * ("have 20000, want 21000 (supplied gas 20000)",)),
        (21_000, None, "(supplied gas 21000)"),
    ):
        asked.node.gas_cap = 200_000 + left
        answer = await asked.simulate(asked.block(1, 1, to(BURNER, gas=200_000), to(BURNER, gas=200_000)))
        refused = {"geth": geth, "nitro": nitro}[asked.node.dialect]
        assert ("result" in answer) == (refused is None)
        if refused is not None:
            assert answer["error"]["code"] == -38013
            assert answer["error"]["message"].endswith(refused)


async def test_nitros_blocks_have_no_gas_limit_that_matters(nitro: NodeClient) -> None:
    many = [to(BURNER, gas=20_000_000), to(TELLER, gas=12_000_000)]
    (block,) = await nitro.blocks(nitro.block(1, 1, *many))
    assert (block["gasLimit"], block["calls"][1]["status"]) == ("0x4000000000000", "0x1")


async def test_the_sender_pays_nitros_data_fee(nitro: NodeClient) -> None:
    """At the price of gas: what it has before a call, and what it has left."""
    answer = {BALANCE: {"code": TELLS_BALANCE}, **OVERRIDES}
    calls = [to(BALANCE), to(TELLER), to(BALANCE, maxFeePerGas=hex(10**9))]
    nitro.node.data_price_wei = 5 * 10**8
    block = {**nitro.block(1, 1, *calls), "stateOverrides": answer}
    first, second, third = (await nitro.blocks(block))[0]["calls"]
    have_wei = [int(call["returnData"], 16) for call in (first, third)]
    used = [int(call["gasUsed"], 16) for call in (first, second)]
    limits_wei = 10**9 * 100_000
    assert have_wei == [ETH - limits_wei, ETH - limits_wei - 10**9 * sum(used)]
    assert used[1] - 21_028 == (16 * 118 + 256) * 101 // 100 // 2


async def test_nitros_single_calls_need_gas_for_the_data_fee(nitro: NodeClient) -> None:
    """At its least base fee a call without data pays for some 22,000 gas."""
    sent = {"from": SENDER, "to": TELLER}
    answer = await nitro.call("eth_call", {**sent, "gas": hex(40_000)}, "latest", OVERRIDES)
    assert answer == {"error": {"code": -32000, "message": "err: intrinsic gas too low (supplied gas 40000)"}}
    assert "result" in await nitro.call("eth_call", {**sent, "gas": hex(50_000)}, "latest", OVERRIDES)
    nitro.node.data_price_wei = 0
    assert "result" in await nitro.call("eth_call", {**sent, "gas": hex(40_000)}, "latest", OVERRIDES)


async def test_an_overwritten_version_of_the_rules_has_no_newer_opcodes(nitro: NodeClient) -> None:
    """PUSH0 is one; the recorded request reached none."""
    pushes = {REVERTER: {"code": "0x5f5ff3"}, SENDER: {"balance": hex(ETH)}}
    for randao, status in (("0x" + "00" * 32, "0x0"), ("0x" + "22" * 32, "0x1")):
        block = {**nitro.block(1, 1, to(REVERTER), prevRandao=randao), "stateOverrides": pushes}
        (call,) = (await nitro.blocks(block))[0]["calls"]
        assert call["status"] == status


async def test_nitros_own_transaction_is_first_in_every_block(nitro: NodeClient, rpc: SyncRpc) -> None:
    sent = rpc.call(
        "eth_sendTransaction", {"from": rpc.call("eth_accounts")[0], "to": SENDER, "value": "0x1"}
    )
    settle(rpc)
    receipt = (await nitro.call("eth_getTransactionReceipt", sent))["result"]
    number = receipt["blockNumber"]
    receipts = (await nitro.call("eth_getBlockReceipts", number))["result"]
    block = (await nitro.call("eth_getBlockByNumber", number, True))["result"]
    hashes = (await nitro.call("eth_getBlockByHash", block["hash"], False))["result"]["transactions"]
    assert (
        [item["hash"] for item in block["transactions"]]
        == hashes
        == [item["transactionHash"] for item in receipts]
    )
    assert [(item["type"], item["transactionIndex"]) for item in block["transactions"]] == [
        ("0x6a", "0x0"),
        ("0x2", "0x1"),
    ]
    assert receipts[1] == receipt
    assert hashes[1] == sent


SHORT = {SENDER: {"balance": hex(10**15)}}


async def test_who_cannot_pay_gets_no_answer_at_all(asked: NodeClient) -> None:
    """Gas at its highest price, and the value: 100,000 gas for 10 gwei are 10**15 wei."""
    paid = {**asked.block(1, 1, to(TELLER)), "stateOverrides": SHORT}
    assert "result" in await asked.simulate(paid)
    for call, gas, want_wei in (
        (to(TELLER, gas=100_001), 100_001, 10**15 + 10**10),
        (to(TELLER, value="0x1"), 100_000, 10**15 + 1),
    ):
        short = {**asked.block(2, 2, call), "stateOverrides": SHORT}
        have = f"address {CHECKSUMMED} have {10**15} want {want_wei} (supplied gas {gas})"
        message = f"err: insufficient funds for gas * price + value: {have}"
        assert await asked.simulate(paid, short) == {"error": {"code": -38014, "message": message}}


VALID = [
    (to(TELLER, nonce="0x4"), -38010,
     f"err: nonce too low: address {CHECKSUMMED}, tx: 4 state: 5 (supplied gas 100000)"),
    (to(TELLER, maxFeePerGas=hex(10**9 - 1)), -38012,
     "err: max fee per gas less than block base fee: maxFeePerGas: 999999999, baseFee: 1000000000"),
    (to(TELLER, maxPriorityFeePerGas=hex(10**10 + 1)), -32602,
     "err: max priority fee per gas higher than max fee per gas"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "code", "message"), VALID)
async def test_calls_are_validated(asked: NodeClient, call: Json, code: int, message: str) -> None:
    assert await asked.simulate(asked.block(1, 1, call)) == {"error": {"code": code, "message": message}}
    assert "result" in await asked.simulate(
        asked.block(1, 1, to(TELLER, nonce="0x5"), to(TELLER, nonce="0x6"))
    )
    if code != -32602:
        assert "result" in await asked.simulate(asked.block(1, 1, call), validation=False)


# --- blocks ----------------------------------------------------------------------------------------


async def test_numbers_and_times_rise(asked: NodeClient) -> None:
    n, s = asked.number, asked.time_s
    sample = {"code": -38020, "message": f"block numbers must be in order: {n + 1} <= {n + 2}"}
    assert await asked.simulate(asked.block(2, 13), asked.block(1, 14)) == {"error": sample}
    sample = {"code": -38021, "message": f"block timestamps must be in order: {s + 4} <= {s + 5}"}
    assert await asked.simulate(asked.block(1, 5), asked.block(2, 4)) == {"error": sample}
    assert "result" in await asked.simulate(asked.block(3, 25))


async def test_gaps_are_filled_with_empty_blocks(asked: NodeClient) -> None:
    blocks = await asked.blocks(asked.block(1, 1), asked.block(4, 40, to(TELLER)))
    assert [len(block["calls"]) for block in blocks] == [0, 0, 0, 1]
    assert len({block["hash"] for block in blocks}) == 4
    assert [block["parentHash"] for block in blocks[1:]] == [block["hash"] for block in blocks[:-1]]


async def test_at_most_256_blocks_filled_ones_counted(asked: NodeClient) -> None:
    assert len(await asked.blocks(asked.block(1, 1), asked.block(256, 4000))) == 256
    sample = {"error": {"code": -38026, "message": "too many blocks"}}
    assert await asked.simulate(asked.block(1, 1), asked.block(257, 4000)) == sample
    assert await asked.simulate(*[asked.block(n, n) for n in range(1, 258)]) == sample
    assert await asked.simulate() == {"error": {"code": -32602, "message": "empty input"}}


@pytest.mark.parametrize("kind", ["geth", "nitro"])
async def test_what_a_contract_sees_of_its_block(rpc: SyncRpc, kind: Kind) -> None:
    async with asking(rpc, kind) as node:
        first, *_, last = await node.blocks(
            node.block(1, 1, to(TELLER)), node.block(301 - 50, 3600, to(TELLER))
        )
        seen = [one["calls"][0]["returnData"] for one in (first, last)]
        numbers, times_s = [int(one[:66], 16) for one in seen], [int(one[66:], 16) for one in seen]
        assert times_s == [node.time_s + 1, node.time_s + 3600]
        assert int(last["number"], 16) == node.number + 251
        if kind == "geth":
            assert numbers == [node.number + 1, node.number + 251]
            assert "l1BlockNumber" not in last
        else:
            estimate = 23_000_000 + node.number // 120
            assert numbers == [estimate, estimate]
            assert (first["l1BlockNumber"], last["l1BlockNumber"]) == (hex(estimate), hex(estimate))


# --- other methods ---------------------------------------------------------------------------------


async def test_nitros_headers(nitro: NodeClient, rpc: SyncRpc) -> None:
    header = (await nitro.call("eth_getBlockByNumber", "latest", False))["result"]
    assert header["l1BlockNumber"] == hex(parent_number(nitro.number))
    assert header["gasLimit"] == "0x4000000000000"
    real = rpc.call("eth_getBlockByNumber", "latest", False)
    assert header["hash"] == real["hash"]
    assert "l1BlockNumber" not in real


async def test_a_range_that_is_too_wide(nitro: NodeClient) -> None:
    wanted = {"fromBlock": "0x1", "toBlock": "latest", "address": SENDER}
    assert await nitro.call("eth_getLogs", wanted) == {"result": []}
    nitro.node.max_log_blocks = nitro.number - 1
    sample = {"code": -32005, "message": f"block range exceeds the limit of {nitro.number - 1}"}
    assert await nitro.call("eth_getLogs", wanted) == {"error": sample}
    assert await nitro.call("eth_getLogs", {**wanted, "fromBlock": "0x2"}) == {"result": []}


async def test_a_reverted_eth_call_and_an_unknown_block(asked: NodeClient) -> None:
    answer = await asked.call("eth_call", {"to": REVERTER, "input": TRADING_NOT_OPEN}, "latest", OVERRIDES)
    sample = {"code": 3, "message": "execution reverted: trading not open", "data": TRADING_NOT_OPEN}
    assert answer == {"error": sample}
    options = {"blockStateCalls": [asked.block(1, 1)]}
    answer = await asked.call("eth_simulateV1", options, {"blockHash": "0x" + "9" * 64})
    assert answer == {"error": {"code": -32000, "message": "header not found"}}


ARBOS_WORDS = {"code": -32000, "message": f"overriding address {ARBOS_STATE}  not allowed"}


@pytest.mark.parametrize("address", [ARBOS_STATE, ARBOS_STATE.lower()])
@pytest.mark.parametrize("method", ["eth_simulateV1", "eth_createAccessList", "eth_call", "eth_estimateGas"])
async def test_nitro_refuses_to_override_what_has_the_parent_chains_number(
    nitro: NodeClient, rpc: SyncRpc, method: str, address: str
) -> None:
    """In its whole state, and in a single slot of it; geth knows no such account."""
    slot = {"0x" + "0" * 64: "0x" + "0" * 63 + "1"}
    for override in ({"balance": "0x1"}, {"stateDiff": slot}):
        asked = _overriding(nitro, method, {address: override})
        assert await nitro.call(method, *asked) == {"error": ARBOS_WORDS}
    allowed = await nitro.call(method, *_overriding(nitro, method, {}))
    assert "result" in allowed
    async with asking(rpc, "geth") as geth:
        answer = await geth.call(method, *_overriding(geth, method, {address: {"balance": "0x1"}}))
        assert "result" in answer


def _overriding(node: NodeClient, method: str, overrides: Json) -> list[Any]:
    """The parameters of a call to a contract that tells NUMBER, with more overrides."""
    overrides = {**OVERRIDES, **overrides}
    if method == "eth_simulateV1":
        # A later block of several is refused, too, and with it the whole request.
        first, second = node.block(1, 1, to(TELLER)), node.block(2, 2, to(TELLER))
        return [{"blockStateCalls": [first, {**second, "stateOverrides": overrides}]}, hex(node.number)]
    sent = {"from": SENDER, "to": TELLER, **FEES}
    return [sent, hex(node.number), overrides]
