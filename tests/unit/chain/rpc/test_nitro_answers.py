"""Answers of nitro nodes, from public documents, read by the client and by those who decode them.

Each file of ``nitro/`` names its source.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from roundtrip.chain.blocks.bloom import log_bits
from roundtrip.chain.blocks.full_blocks import read_receipt
from roundtrip.chain.blocks.heads import read_header
from roundtrip.chain.blocks.spans import CHAINS_OWN_TYPES, SpanRefused, SpanTx, ask, no_logs, read_ref
from roundtrip.chain.rpc.client import Answer, NodeRefused, RpcCall, RpcError
from roundtrip.chain.rpc.errors import Concern, concern
from unit.chain.rpc_nodes import Session, node

FOLDER = Path(__file__).with_name("nitro")
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode((FOLDER / f"{name}.json").read_bytes())
    return found


def call_of(name: str) -> RpcCall:
    method, params = recorded(name)["request"]
    return RpcCall(method, params)


async def answer_of(name: str) -> Answer:
    """What the client gives of the recorded response."""
    (found,) = await node(Session([recorded(name)["response"]])).batch([call_of(name)])
    return found


async def result_of(name: str) -> tuple[msgspec.Raw, Any]:
    """The answer, which is no error, and the same as JSON."""
    found = await answer_of(name)
    assert isinstance(found, msgspec.Raw)
    return found, msgspec.json.decode(found)


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_names_its_source(name: str) -> None:
    assert "https://" in recorded(name)["source"]
    assert recorded(name)["about"]


async def test_a_header_is_read_with_its_fields_of_the_parent_chain() -> None:
    answer, header = await result_of("header_arbitrum_one")
    read = read_header(answer)
    assert read.block().number == 0x5206D53 == int(header["number"], 16)
    assert (read.block().hash, read.block().timestamp_s) == (header["hash"], 0x644F0242)
    assert int(read.base_fee_per_gas, 16) == 10**8
    assert read_ref(answer, 0x5206D53) == (read.block(), header["parentHash"])
    assert header["extraData"] == header["sendRoot"]
    words = [int(header["mixHash"][2:][at : at + 16], 16) for at in (0, 16)]
    assert words == [int(header["sendCount"], 16), int(header["l1BlockNumber"], 16)]
    assert header["transactions"], "nitro begins each block with a transaction"


async def test_the_receipts_of_a_block_begin_with_the_chains_own_transaction() -> None:
    """This service asks for receipts by their transactions; both methods give the same fields."""
    (first,) = recorded("block_receipts_robinhood")["response"]["result"]
    response = {"jsonrpc": "2.0", "id": 0, "result": first}
    call = RpcCall("eth_getTransactionReceipt", [first["transactionHash"]])
    (answer,) = await node(Session([response])).batch([call])
    read = read_receipt(answer, first["transactionHash"])
    assert (read.block_hash, read.logs) == (first["blockHash"], ())
    assert int(first["type"], 16) >= CHAINS_OWN_TYPES
    assert (first["gasUsed"], first["gasUsedForL1"]) == ("0x0", "0x0")


async def test_a_receipt_with_gas_of_the_parent_chain_is_read_and_its_bloom_is_ours() -> None:
    answer, receipt = await result_of("receipt_with_l1_gas")
    read = read_receipt(answer, receipt["transactionHash"])
    assert read.block_hash == receipt["blockHash"]
    (log,) = read.logs
    assert log_bits(log) == int(receipt["logsBloom"], 16)
    assert 0 < int(receipt["gasUsedForL1"], 16) < int(receipt["gasUsed"], 16)


async def test_the_chains_own_transaction_is_no_transfer() -> None:
    answer, _ = await result_of("internal_transaction")
    read = msgspec.json.decode(answer, type=SpanTx)
    assert int(read.type, 16) == 0x6A
    assert not read.is_transfer()
    assert not read.has_value()


@pytest.mark.parametrize(
    ("name", "about"), [("simulate_crashes", "node"), ("state_pruned", "pruned"), ("range_limited", "range")]
)
async def test_an_error_is_told_of_the_node_or_of_the_call(name: str, about: Concern) -> None:
    error = await answer_of(name)
    assert isinstance(error, RpcError)
    assert concern(error) == about


async def test_a_range_that_is_too_wide_is_asked_for_in_parts() -> None:
    error = await answer_of("range_limited")
    assert isinstance(error, RpcError)
    assert isinstance(no_logs(error, 10), SpanRefused)
    response = recorded("range_limited")["response"]
    with pytest.raises(SpanRefused) as refused:
        await ask(node(Session(response, 413)), [call_of("range_limited")])
    assert isinstance(refused.value.__cause__, NodeRefused)
