"""What an error concerns: the call, or the node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundtrip.chain.rpc.client import RpcError
from roundtrip.chain.rpc.errors import Concern, concern

ERRORS: list[tuple[Concern, int, str]] = [
    ("call", 3, "execution reverted: header not found"),
    ("call", 3, "rate limit"),
    ("call", -32000, "execution reverted"),
    ("call", -32000, "execution reverted: too many requests"),
    ("call", -32603, "VM Exception while processing transaction: revert method not found"),
    ("call", -32602, "invalid argument 0: hex string has length 3"),
    ("call", -32015, "out of gas"),
    ("call", -38014, "err: insufficient funds for gas * price + value: address 0x1"),
    ("call", -38026, "too many blocks"),
    ("call", -32603, "Out of gas: gas required exceeds allowance: 21005"),
    ("call", -32000, "insufficient funds for transfer"),
    ("call", -32000, "something nobody knows"),
    ("behind", -32000, "header not found"),
    ("behind", -32000, "Unknown block"),
    ("behind", -32602, "BlockOutOfRangeError: block height is 1279 but requested was 16777215"),
    ("behind", -32001, "resource not found"),
    ("behind", -32602, "block range extends beyond current head block"),
    ("behind", -32000, "invalid block range params"),
    ("behind", -32000, "header for hash not found"),
    ("pruned", -32000, "missing trie node 12ab (path ) state 0x1 is not available, not found"),
    ("pruned", -32000, "required historical state unavailable (reexec=128)"),
    ("pruned", 4444, "pruned history unavailable"),
    ("pruned", 4444, ""),
    ("pruned", -32701, "History has been pruned for this block"),
    ("pruned", -32000, "old data not available due to pruning"),
    ("pruned", -32000, "seek with txNum=196 but data before txNum=266 is not available: blockNum=1"),
    ("pruned", -32000, "Receipt not available for From block 14319330."),
    ("pruned", -32000, "failed to get logs for block #0 (0xd4e567..cb8fa3)"),
    ("method", -32601, "the method eth_simulateV1 does not exist/is not available"),
    ("method", -32601, ""),
    ("method", -32004, "not here"),
    ("method", -32000, "Method not supported"),
    ("limited", -32005, "daily request count exceeded"),
    ("limited", 429, "slow down"),
    ("limited", -32000, "your app has exceeded its compute units per second capacity"),
    ("limited", -32603, "Too Many Requests"),
    ("batch", -32600, "batch too large"),
    ("batch", 31, "Batch of more than 3 requests are not allowed on free tier"),
    ("range", -32005, "block range exceeds the limit of 10000"),
    ("range", -32003, "response too large"),
    ("node", -32603, "method handler crashed"),
    ("node", 0, "the node sent no answer to this call"),
]


@pytest.mark.parametrize(("about", "code", "message"), ERRORS)
def test_what_an_error_concerns(about: Concern, code: int, message: str) -> None:
    assert concern(RpcError(code, message)) == about


@given(st.text(max_size=100), st.sampled_from([3, -32000, -32603]))
def test_what_a_contract_says_is_never_read_as_the_nodes_word(said: str, code: int) -> None:
    assert concern(RpcError(code, f"execution reverted: {said}")) == "call"
