"""What a token says of itself, read from a node's answers."""

import msgspec
import pytest

from roundtrip.chain.holders.token_views import MAX_CHARACTERS, TokenViews, read_views, view_calls
from roundtrip.chain.rpc.client import NO_ANSWER, RpcError
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi

TOKEN = Address("0x" + "11" * 20)
REVERTED = RpcError(3, "execution reverted: no")


def raw(data: bytes) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode("0x" + data.hex()))


def string(text: bytes) -> msgspec.Raw:
    padded = text + bytes(-len(text) % 32)
    return raw(bytes.fromhex(abi.word(32) + abi.word(len(text))) + padded)


def number(value: int) -> msgspec.Raw:
    return raw(value.to_bytes(32, "big"))


PLAIN = [string(b"PLN"), string(b"Plain"), number(18), number(10**27)]


def with_answer(index: int, answer: msgspec.Raw | RpcError) -> list[msgspec.Raw | RpcError]:
    return [*PLAIN[:index], answer, *PLAIN[index + 1 :]]


def test_the_reads_are_pinned_and_bounded() -> None:
    calls = view_calls(TOKEN, BlockRef(7, "0x" + "ab" * 32, 1), 300_000)
    assert [call.method for call in calls] == ["eth_call"] * 4
    heads = [call.params[0]["data"] for call in calls]  # type: ignore[index]
    signatures = ("symbol()", "name()", "decimals()", "totalSupply()")
    assert heads == [abi.selector(signature) for signature in signatures]
    for call in calls:
        assert call.params[0]["gas"] == hex(300_000)  # type: ignore[index]
        assert call.params[1] == {"blockHash": "0x" + "ab" * 32}


def test_a_plain_token() -> None:
    assert read_views(PLAIN) == TokenViews("PLN", "Plain", 18, 10**27)


def test_texts_in_one_word_are_read_too() -> None:
    assert read_views(with_answer(0, raw(b"OLD".ljust(32, b"\0")))).symbol == "OLD"


def test_texts_are_cut_and_without_nul_and_else_as_they_are() -> None:
    text = "\0\u202e" + "x\0" * 1000
    views = read_views(with_answer(1, string(text.encode())))
    assert views.name == "\u202e" + "x" * (MAX_CHARACTERS - 1)
    assert read_views(with_answer(0, string(b"\xff\xfe"))).symbol == "\ufffd\ufffd"
    assert read_views(with_answer(0, string(b""))).symbol == ""


def test_what_the_token_does_not_tell_is_none() -> None:
    assert read_views([REVERTED] * 4) == TokenViews(None, None, None, None)
    assert read_views([raw(b"")] * 4) == TokenViews(None, None, None, None)
    assert read_views(with_answer(2, number(256))).decimals is None
    assert read_views(with_answer(3, number(2**256 - 1))).supply_raw == 2**256 - 1


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize(
    "answer",
    [
        NO_ANSWER,
        RpcError(-32000, "header not found"),
        RpcError(-32005, "limit exceeded"),
        RpcError(-32603, "internal error"),
        msgspec.Raw(b"7"),
        msgspec.Raw(b'"0xzz"'),
    ],
)
def test_what_the_node_leaves_open_is_its_fault(index: int, answer: msgspec.Raw | RpcError) -> None:
    with pytest.raises(NodeFault):
        read_views(with_answer(index, answer))
