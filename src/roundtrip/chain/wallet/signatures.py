"""Whose signature it is: a wallet's own (EIP-191), or what a contract says is its own (EIP-1271)."""

from collections.abc import Sequence

import coincurve
import msgspec

from roundtrip.chain.rpc.client import CodeFault, Meter, RpcCall, RpcError, RpcNode, hex_bytes
from roundtrip.chain.rpc.errors import concern
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi

GAS_LIMIT = 1_000_000
"""For a contract to look at one signature: several owners fit, and passkeys; a loop soon ends."""
IS_VALID = "0x1626ba7e"
"""isValidSignature(bytes32,bytes): its selector, and what it answers where it is valid."""

_VALID = bytes.fromhex(IS_VALID[2:]).ljust(abi.WORD, b"\0")
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Of secp256k1's group: beside every signature (r, s) anybody can make another one, (r, order - s)."""
_RECOVERY_IDS = {0: 0, 1: 1, 27: 0, 28: 1}
_SIZE = 65


def hash_of(text: str) -> bytes:
    """What is signed where a wallet signs a text (EIP-191, version E)."""
    told = text.encode()
    return abi.keccak(b"\x19Ethereum Signed Message:\n" + str(len(told)).encode() + told)


def signer(hashed: bytes, signature: bytes) -> Address | None:
    """Who made it, of r, s and v. None: it is no such signature, or one that somebody else could have made of
    another (s in the upper half)."""
    if len(signature) != _SIZE or signature[64] not in _RECOVERY_IDS:
        return None
    if int.from_bytes(signature[32:64], "big") > _ORDER // 2:
        return None
    plain = signature[:64] + bytes([_RECOVERY_IDS[signature[64]]])
    try:
        key = coincurve.PublicKey.from_signature_and_message(plain, hashed, hasher=None)
    except ValueError:
        return None
    return Address("0x" + abi.keccak(key.format(compressed=False)[1:])[12:].hex())


async def contract_accepts(
    node: RpcNode, at: BlockRef, wallet: Address, hashes: Sequence[bytes], signature: bytes, meter: Meter
) -> bool:
    """Whether the contract at an address takes it for its own, of any of the hashes. Two trips at most, one
    where there is no contract. Raises NodeFault when that could not be found out."""
    pinned = {"blockHash": at.hash}
    (code,) = await node.batch([RpcCall("eth_getCode", [wallet, pinned])], meter)
    if not hex_bytes(code):
        return False
    calls = [
        RpcCall(
            "eth_call",
            [{"to": wallet, "data": _validity_call(one, signature), "gas": hex(GAS_LIMIT)}, pinned],
        )
        for one in hashes
    ]
    try:
        answers = await node.batch(calls, meter)
    except CodeFault:
        # That is the contract's doing.
        return False
    if any(_is_yes(answer) for answer in answers):
        return True
    for answer in answers:
        if isinstance(answer, RpcError) and concern(answer) != "call":
            raise NodeFault(f"error {answer.code}")
    return False


def _validity_call(hashed: bytes, signature: bytes) -> str:
    return IS_VALID + hashed.hex() + abi.word(2 * abi.WORD) + abi.bytes_tail("0x" + signature.hex())


def _is_yes(answer: msgspec.Raw | RpcError) -> bool:
    """Exactly one word; a revert, or gas that ran out, is a no."""
    return not isinstance(answer, RpcError) and hex_bytes(answer) == _VALID
