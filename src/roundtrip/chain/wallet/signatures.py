"""Verifies signatures: a wallet's own (EIP-191), or one that a contract accepts (EIP-1271)."""

from collections.abc import Sequence

import coincurve

from roundtrip.chain.rpc.client import Answer, CodeFault, Meter, RpcCall, RpcError, RpcNode, hex_bytes
from roundtrip.chain.rpc.errors import concern
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi

GAS_LIMIT = 1_000_000
"""For a contract to check one signature: enough for several owners and passkeys, and it stops a loop
early."""
IS_VALID = "0x1626ba7e"
"""isValidSignature(bytes32,bytes): its selector, which it also returns for a valid signature."""

_VALID = bytes.fromhex(IS_VALID[2:]).ljust(abi.WORD, b"\0")
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The order of secp256k1's group: from every signature (r, s) anyone can derive another one, (r, order -
s)."""
_RECOVERY_IDS = {0: 0, 1: 1, 27: 0, 28: 1}
_SIZE = 65


def hash_text(text: str) -> bytes:
    """The hash that a wallet signs for a text (EIP-191, version E)."""
    encoded = text.encode()
    return abi.keccak(b"\x19Ethereum Signed Message:\n" + str(len(encoded)).encode() + encoded)


def recover_signer(hashed: bytes, signature: bytes) -> Address | None:
    """The signer, from r, s and v. None: no valid signature, or one that could be derived from another (s in
    the upper half)."""
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
    """Whether the contract at ``wallet`` accepts the signature for any of the hashes. Takes two trips at
    most, one where there is no contract. Raises NodeFault when that cannot be read."""
    pinned = {"blockHash": at.hash}
    (code,) = await node.batch([RpcCall("eth_getCode", [wallet, pinned])], meter)
    if not hex_bytes(code):
        return False
    calls = [
        RpcCall(
            "eth_call",
            [{"to": wallet, "data": _validity_call(hashed, signature), "gas": hex(GAS_LIMIT)}, pinned],
        )
        for hashed in hashes
    ]
    try:
        answers = await node.batch(calls, meter)
    except CodeFault:
        # The contract caused the fault.
        return False
    if any(_is_valid(answer) for answer in answers):
        return True
    for answer in answers:
        if isinstance(answer, RpcError) and concern(answer) != "call":
            raise NodeFault(f"error {answer.code}")
    return False


def _validity_call(hashed: bytes, signature: bytes) -> str:
    return IS_VALID + hashed.hex() + abi.word(2 * abi.WORD) + abi.bytes_tail("0x" + signature.hex())


def _is_valid(answer: Answer) -> bool:
    """Whether the answer is exactly the valid word; a revert, or running out of gas, means no."""
    return not isinstance(answer, RpcError) and hex_bytes(answer) == _VALID
