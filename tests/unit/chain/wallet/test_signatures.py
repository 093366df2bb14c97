"""Whose signature it is."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import _hash_eip191_message, encode_defunct
from eth_utils.address import to_checksum_address
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.chain.rpc.client import NO_ANSWER, Meter, NodeAnswerTooLarge, RpcCall, RpcError
from roundtrip.chain.wallet.signatures import (
    WrappedSignature,
    contract_accepts,
    hash_text,
    recover_signer,
    unwrap,
)
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import ZERO_ADDRESS, Address, BlockRef
from roundtrip.venues.abi import checksum_address
from support.keys import ORDER, Person
from support.one_batch import OneBatchNode
from unit.venues.network import address

BLOCK = BlockRef(7, "0x" + "77" * 32, 700)
YES, NO = "0x1626ba7e" + "0" * 56, "0x" + "f" * 8 + "0" * 56
REVERTED = RpcError(3, "execution reverted")


def signed(person: Person, text: str) -> bytes:
    return bytes.fromhex(person.sign(text)[2:])


@pytest.mark.parametrize("text", ["", "a", "a text\nof lines", "é \u202e 🤖", "x" * 5000])
def test_the_hash_is_the_one_that_wallets_sign(text: str) -> None:
    assert hash_text(text) == _hash_eip191_message(encode_defunct(text=text))


def test_the_signer_is_found_with_either_way_to_write_v() -> None:
    for number in range(8):
        person = Person()
        signature = signed(person, f"text {number}")
        assert signature[64] in (27, 28)
        for v in (signature[64], signature[64] - 27):
            assert recover_signer(hash_text(f"text {number}"), signature[:64] + bytes([v])) == person.address
        assert recover_signer(hash_text("another"), signature) != person.address


@settings(max_examples=30)
@given(st.binary(max_size=40), st.integers(1, ORDER - 1))
def test_of_every_signature_only_the_low_half_counts(text: bytes, secret: int) -> None:
    account = Account.from_key(secret.to_bytes(32, "big"))
    hashed = hash_text(text.hex())
    signature = bytes(account.unsafe_sign_hash(hashed).signature)
    r, s, v = signature[:32], int.from_bytes(signature[32:64], "big"), signature[64]
    twin = r + (ORDER - s).to_bytes(32, "big") + bytes([27 + 28 - v])
    assert Account._recover_hash(hashed, signature=twin) == account.address
    assert recover_signer(hashed, signature) == account.address.lower()
    assert recover_signer(hashed, twin) is None


def test_what_is_no_signature() -> None:
    person, hashed = Person(), hash_text("text")
    good = signed(person, "text")
    r, s, v = good[:32], good[32:64], good[64:]
    zero, order, most = bytes(32), ORDER.to_bytes(32, "big"), b"\xff" * 32
    wrong = [b"", good[:63], good[:-2], good + b"\0", r + s + v + v, bytes(65), most + most + v]
    wrong += [zero + s + v, r + zero + v, order + s + v, r + order + v, most + s + v]
    wrong += [r + s + bytes([other]) for other in (2, 3, 26, 29, 30, 35, 36, 37, 128, 255)]
    # The compact form of EIP-2098 with s in the upper half.
    wrong += [r + (ORDER // 2 + 1).to_bytes(32, "big"), r + (2**255 - 1).to_bytes(32, "big"), bytes(64)]
    assert [one.hex() for one in wrong if recover_signer(hashed, one) is not None] == []


def test_the_compact_form_of_eip_2098() -> None:
    for number in range(8):
        person, text = Person(), f"text {number}"
        r, s, v = (good := signed(person, text))[:32], good[32:64], good[64] - 27
        assert recover_signer(hash_text(text), r + bytes([s[0] | v << 7]) + s[1:]) == person.address
        assert recover_signer(hash_text(text), r + bytes([s[0] | (1 - v) << 7]) + s[1:]) != person.address


FACTORY = "0x" + "fa" * 20


def wrap(signature: bytes, data: bytes = b"\x01\x02", factory: str = FACTORY) -> bytes:
    return encode(["address", "bytes", "bytes"], [factory, data, signature]) + bytes.fromhex("6492" * 16)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_wrapped_signature_is_unwrapped(signature: bytes, data: bytes) -> None:
    assert unwrap(wrap(signature, data)) == WrappedSignature(Address(FACTORY), data, signature)
    assert unwrap(wrap(signature, data)[:-1]) is None
    assert unwrap(signature) is None


@given(st.binary(max_size=200) | st.lists(st.integers(0, 200), max_size=9).map(lambda words: b"".join(
    word.to_bytes(32, "big") for word in words)))  # fmt: skip
def test_no_wrapping_breaks_it(body: bytes) -> None:
    found = unwrap(body + bytes.fromhex("6492" * 16))
    assert found is None or len(found.signature) + len(found.factory_data) <= 2 * len(body)


async def test_a_deployed_wallet_is_asked_for_what_is_wrapped() -> None:
    node = CodeNode("0x00", YES)
    assert await contract_accepts(node, BLOCK, address(9), [bytes(32)], wrap(b"\x07"), Meter())
    asked: Any = node.sent[1][0].params[0]
    assert asked["data"].endswith(f"{64:064x}{1:064x}" + "07".ljust(64, "0"))


async def test_one_that_is_not_deployed_is_deployed_in_one_call() -> None:
    for text, accepted in ((f"0x{1:064x}", True), (f"0x{0:064x}", False), ("0x", False), (REVERTED, False)):
        node = CodeNode("0x", text)
        hashes = [bytes(32), bytes(32)]
        assert await contract_accepts(node, BLOCK, address(9), hashes, wrap(b"\x07"), Meter()) is accepted
        ((call,),) = node.sent[1:]
        asked: Any = call.params[0]
        assert "to" not in asked
        assert int(asked["gas"], 16) < 2**24
        assert asked["from"] not in (ZERO_ADDRESS, address(9))


async def test_a_public_approval_is_no_secret() -> None:
    """After the contract's yes it is asked for no signature, for another one, and whether it is a Safe."""
    for answers, accepted in (
        ((NO, NO, REVERTED), True), ((NO, NO, "0x"), True), ((YES, NO, REVERTED), False),
        ((NO, YES, REVERTED), False), ((NO, NO, f"0x{1:064x}"), False),
    ):  # fmt: skip
        node = CodeNode("0x00", YES)
        node.then = answers
        kept = await contract_accepts(node, BLOCK, address(9), [bytes(32)], b"\x01" * 65, Meter(), True)
        assert kept is accepted
    node = CodeNode("0x00", YES)
    node.then = NO, NO, RpcError(-32603, "internal")
    with pytest.raises(NodeFault):
        await contract_accepts(node, BLOCK, address(9), [bytes(32)], b"\x01" * 65, Meter(), True)
    approver = bytes(12) + b"\x11" * 20 + bytes(32) + b"\x01"
    node = CodeNode("0x00", YES)
    assert not await contract_accepts(node, BLOCK, address(9), [bytes(32)], approver, Meter(), True)


@settings(max_examples=200)
@given(st.binary(max_size=70) | st.binary(min_size=65, max_size=65))
def test_no_bytes_break_it(signature: bytes) -> None:
    found = recover_signer(hash_text("text"), signature)
    assert found is None or len(found) == 42


@given(st.binary(min_size=20, max_size=20))
def test_addresses_have_the_capitals_of_eip_55(raw: bytes) -> None:
    assert checksum_address(Address("0x" + raw.hex())) == to_checksum_address(raw)


class CodeNode(OneBatchNode):
    """A node that says what it is told to: first to the question for code, then to all others."""

    def __init__(self, code: str | RpcError, *answers: str | RpcError | NodeFault) -> None:
        self._code, self._answers = code, answers
        self.sent: list[list[RpcCall]] = []
        self.then: Sequence[str | RpcError] = ()

    async def batch(
        self,
        calls: Sequence[RpcCall],
        meter: Meter | None = None,
        timeout_s: float | None = None,
        budgeted: bool = True,
    ) -> list[Any]:
        self.sent.append(list(calls))
        rows = ((self._code,), self._answers, self.then)[len(self.sent) - 1]
        for one in rows:
            if isinstance(one, NodeFault):
                raise one
        return [one if isinstance(one, RpcError) else msgspec.Raw(msgspec.json.encode(one)) for one in rows]


async def accepts(node: CodeNode, hashes: int = 2) -> bool:
    asked = [bytes([number]) * 32 for number in range(hashes)]
    return await contract_accepts(node, BLOCK, address(9), asked, b"\x01\x02\x03", Meter())


async def test_an_address_without_code_is_asked_nothing_more() -> None:
    node = CodeNode("0x")
    assert not await accepts(node)
    assert len(node.sent) == 1


async def test_a_contract_is_asked_of_every_text_in_one_trip() -> None:
    node = CodeNode("0x00", NO, YES)
    assert await accepts(node)
    (_, calls) = node.sent
    for number, call in enumerate(calls):
        asked, block = call.params
        assert block == {"blockHash": BLOCK.hash}
        assert isinstance(asked, dict)
        answer = "0x1626ba7e" + f"{number:02x}" * 32 + f"{64:064x}{3:064x}" + "010203".ljust(64, "0")
        assert asked == {"to": address(9), "gas": hex(1_000_000), "data": answer}


@pytest.mark.parametrize(
    "expected",
    [
        NO, "0x", "0x1626ba7e", "0x" + "0" * 56 + "1626ba7e", "0x" + f"{1:064x}", YES[:-1] + "1",
        YES + "0" * 64, YES[:-2], REVERTED, RpcError(-32000, "out of gas"),
    ],
)  # fmt: skip
async def test_what_is_no_yes(expected: str | RpcError) -> None:
    assert not await accepts(CodeNode("0x00", expected), 1)


@pytest.mark.parametrize("fault", [NO_ANSWER, RpcError(-32005, "limited"), RpcError(-32603, "internal")])
async def test_what_could_not_be_asked_is_no_no(fault: RpcError) -> None:
    for node in (CodeNode(fault), CodeNode("0x00", NO, fault)):
        with pytest.raises(NodeFault):
            await accepts(node)
    assert await accepts(CodeNode("0x00", fault, YES))


async def test_what_is_no_hex_is_the_nodes_fault() -> None:
    with pytest.raises(NodeFault):
        await accepts(CodeNode("0x00", "0xzz"), 1)


async def test_a_contract_that_says_too_much_said_no() -> None:
    """Else whoever has one could ask without being counted."""
    assert not await accepts(CodeNode("0x00", NodeAnswerTooLarge("the node's answer is too large to read")))
