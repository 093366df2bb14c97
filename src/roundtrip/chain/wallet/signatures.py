"""Verifies signatures: a wallet's own (EIP-191), or one that a contract accepts (EIP-1271), deployed or not
yet (EIP-6492)."""

from collections.abc import Sequence
from dataclasses import dataclass

import coincurve

from roundtrip.chain.rpc.client import Answer, CodeFault, Meter, RpcCall, RpcError, RpcNode, hex_bytes
from roundtrip.chain.rpc.errors import concern
from roundtrip.domain.base.errors import NodeFault
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi

GAS_LIMIT = 1_000_000
"""Gas for a contract to check one signature: enough for several owners and passkeys, and it stops a loop
early."""
IS_VALID = "0x1626ba7e"
"""isValidSignature(bytes32,bytes): its selector, which it also returns for a valid signature."""

_VALID = bytes.fromhex(IS_VALID[2:]).ljust(abi.WORD, b"\0")
_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The order of secp256k1's group: from every signature (r, s) anyone can derive another one, (r, order -
s)."""
DEPLOY_GAS = 3_000_000
"""Gas for a wallet's deployment: enough for a proxy with its owners and modules."""
_CODE_GAS = 600_000
"""Gas for the creation that ``deploy_and_ask_code`` runs in, and its data."""
_GET_THRESHOLD = abi.selector("getThreshold()")
_WRAPPED = bytes.fromhex("6492" * 16)
_ASKER = Address("0x" + abi.keccak(b"roundtrip asks a wallet")[12:].hex())
"""The sender of the call, an address without a key. Not the zero address: some wallets accept every signature
when it calls, because it only does so in simulations."""
_YES = bytes(31) + b"\1"
"""What the program returns where the wallet accepts the signature."""
_NO = bytes.fromhex("600060005260206000f3")
"""Code: return 0."""
_FOUND = bytes.fromhex("5b600160005260206000f3")
"""Code: a jump destination, then return 1."""
_COPY_BYTES, _DEPLOY_BYTES, _ASK_BYTES = (
    11,
    11 + 4 + 4 + 4 + 21 + 4 + 2,
    33 + 5 + 4 + 4 + 2 + 21 + 4 + 6 + 4 + 34 + 2 + 5,
)
"""The bytes of the parts of ``deploy_and_ask_code``: a copy, the deployment, the question about one hash."""
_RECOVERY_IDS = {0: 0, 1: 1, 27: 0, 28: 1}
_SIZE, _COMPACT_SIZE = 65, 64


def hash_text(text: str) -> bytes:
    """The hash that a wallet signs for a text (EIP-191, version E)."""
    encoded = text.encode()
    return abi.keccak(b"\x19Ethereum Signed Message:\n" + str(len(encoded)).encode() + encoded)


def recover_signer(hashed: bytes, signature: bytes) -> Address | None:
    """The signer, from r, s and v, or from the 64 bytes of EIP-2098. None: no valid signature, or one with s
    in the upper half, which anyone can derive from another."""
    if len(signature) == _COMPACT_SIZE:
        # The highest bit of s is v.
        signature = (
            signature[:32] + bytes([signature[32] & 0x7F]) + signature[33:] + bytes([signature[32] >> 7])
        )
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
    node: RpcNode,
    at: BlockRef,
    wallet: Address,
    hashes: Sequence[bytes],
    signature: bytes,
    meter: Meter,
    must_be_secret: bool = False,
) -> bool:
    """Whether the contract at ``wallet`` accepts the signature for any of the hashes; with a signature
    wrapped as in EIP-6492 also a contract that is not deployed yet. ``must_be_secret``: the answer is False
    where others may know the approval. Takes three trips at most. Raises NodeFault when that cannot be
    read."""
    pinned, wrapped = {"blockHash": at.hash}, unwrap(signature)
    (code,) = await node.batch([RpcCall("eth_getCode", [wallet, pinned])], meter)
    if not hex_bytes(code):
        if wrapped is None or must_be_secret:
            # Whether others may know the approval cannot be asked of a contract that is not there yet.
            return False
        return await _deployed_accepts(node, pinned, wallet, hashes, wrapped, meter)
    inner = signature if wrapped is None else wrapped.signature
    calls = [_validity_call(wallet, hashed, inner, pinned) for hashed in hashes]
    answers = await _ask_contract(node, calls, meter)
    accepted = [hashed for hashed, answer in zip(hashes, answers, strict=False) if _is_valid(answer)]
    if accepted:
        return not must_be_secret or not await _is_public(node, pinned, wallet, accepted[0], inner, meter)
    _raise_if_unread(answers)
    return False


async def _ask_contract(node: RpcNode, calls: Sequence[RpcCall], meter: Meter) -> list[Answer]:
    """The answers; none where the contract made the node fail. Raises NodeFault."""
    try:
        return await node.batch(calls, meter)
    except CodeFault:
        return []


def _raise_if_unread(answers: Sequence[Answer]) -> None:
    for answer in answers:
        if isinstance(answer, RpcError) and concern(answer) != "call":
            raise NodeFault(f"error {answer.code}")


async def _is_public(
    node: RpcNode, pinned: dict[str, str], wallet: Address, hashed: bytes, signature: bytes, meter: Meter
) -> bool:
    """Whether others may know what the contract accepts: it also accepts no signature or another one, because
    it approved the hash on the chain; or it is a Safe, whose owners' signatures are collected in public, or
    the signature names an approver as a Safe's does (an address, 32 bytes, and 0 or 1)."""
    if signature[:12] == bytes(12) and any(signature[12:24]) and signature[64:65] in (b"\0", b"\1"):
        return True
    other = bytes(byte ^ 0x5A for byte in signature)
    threshold = {"to": wallet, "data": _GET_THRESHOLD, "gas": hex(GAS_LIMIT)}
    calls = [_validity_call(wallet, hashed, tried, pinned) for tried in (b"", other)]
    answers = await _ask_contract(node, [*calls, RpcCall("eth_call", [threshold, pinned])], meter)
    _raise_if_unread(answers)
    if len(answers) < len(calls) + 1 or any(map(_is_valid, answers[:-1])):
        return True
    last = answers[-1]
    return not isinstance(last, RpcError) and len(hex_bytes(last)) == abi.WORD


def _validity_call(wallet: Address, hashed: bytes, signature: bytes, pinned: dict[str, str]) -> RpcCall:
    call = {"to": wallet, "data": _validity_data(hashed, signature), "gas": hex(GAS_LIMIT)}
    return RpcCall("eth_call", [call, pinned])


def _validity_data(hashed: bytes, signature: bytes) -> str:
    return IS_VALID + hashed.hex() + abi.word(2 * abi.WORD) + abi.bytes_tail("0x" + signature.hex())


def _is_valid(answer: Answer) -> bool:
    """Whether the answer is exactly the valid word; a revert, or running out of gas, means no."""
    return not isinstance(answer, RpcError) and hex_bytes(answer) == _VALID


# --- wallets that are not deployed yet (EIP-6492) --------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrappedSignature:
    """A signature with the call that deploys its wallet."""

    factory: Address
    factory_data: bytes
    signature: bytes


def unwrap(signature: bytes) -> WrappedSignature | None:
    """The parts of a signature wrapped as in EIP-6492; None: it is not wrapped, or not well."""
    if not signature.endswith(_WRAPPED):
        return None
    body = signature[: -len(_WRAPPED)]
    words = [int.from_bytes(body[at : at + abi.WORD], "big") for at in range(0, 3 * abi.WORD, abi.WORD)]
    if len(body) < 3 * abi.WORD or words[0] >= 1 << 160:
        return None
    factory_data, inner = _read_bytes(body, words[1]), _read_bytes(body, words[2])
    if factory_data is None or inner is None:
        return None
    return WrappedSignature(Address(f"0x{words[0]:040x}"), factory_data, inner)


def _read_bytes(body: bytes, offset: int) -> bytes | None:
    start = offset + abi.WORD
    size = int.from_bytes(body[offset:start], "big")
    return body[start : start + size] if start + size <= len(body) else None


async def _deployed_accepts(
    node: RpcNode,
    pinned: dict[str, str],
    wallet: Address,
    hashes: Sequence[bytes],
    wrapped: WrappedSignature,
    meter: Meter,
) -> bool:
    """Deploys the wallet and asks it about every hash, in one simulated call. Raises NodeFault."""
    gas = DEPLOY_GAS + len(hashes) * GAS_LIMIT + _CODE_GAS
    created = {
        "from": _ASKER,
        "data": "0x" + deploy_and_ask_code(wallet, hashes, wrapped).hex(),
        "gas": hex(gas),
    }
    answers = await _ask_contract(node, [RpcCall("eth_call", [created, pinned])], meter)
    _raise_if_unread(answers)
    return any(not isinstance(answer, RpcError) and hex_bytes(answer) == _YES for answer in answers)


def deploy_and_ask_code(wallet: Address, hashes: Sequence[bytes], wrapped: WrappedSignature) -> bytes:
    """Code of a creation: it calls the factory, then the wallet with each hash, and returns the word 1 if any
    answer is the valid word, else 0."""
    target, asked = bytes.fromhex(wallet[2:]), bytes.fromhex(_validity_data(bytes(32), wrapped.signature)[2:])
    factory_size, asked_size = _push(len(wrapped.factory_data)), _push(len(asked))
    answer_at = _push(-(-len(asked) // abi.WORD) * abi.WORD)
    size = _DEPLOY_BYTES + _COPY_BYTES + len(hashes) * _ASK_BYTES + len(_NO)
    yes_at, data_at = _push(size), size + len(_FOUND)
    # CODECOPY the factory's data to 0, CALL the factory with it, POP; CODECOPY the question to 0.
    code = factory_size + _push(data_at) + bytes.fromhex("600039")
    code += bytes.fromhex("60006000") + factory_size + bytes.fromhex("60006000")
    code += b"\x73" + bytes.fromhex(wrapped.factory[2:]) + _push(DEPLOY_GAS) + bytes.fromhex("f150")
    code += asked_size + _push(data_at + len(wrapped.factory_data)) + bytes.fromhex("600039")
    for hashed in hashes:
        # MSTORE the hash at 4, STATICCALL the wallet, JUMPI to _FOUND if it returns just the valid word.
        code += (
            b"\x7f" + hashed + bytes.fromhex("6004526020") + answer_at + asked_size + bytes.fromhex("6000")
        )
        code += b"\x73" + target + _push(GAS_LIMIT) + bytes.fromhex("fa3d60201416")
        code += answer_at + b"\x51\x7f" + _VALID + bytes.fromhex("1416") + yes_at + b"\x57"
    return code + _NO + _FOUND + wrapped.factory_data + asked


def _push(value: int) -> bytes:
    return b"\x62" + value.to_bytes(3, "big")
