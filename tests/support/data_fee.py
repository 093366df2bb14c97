"""Nitro's data fee: what a transaction pays for its bytes on the parent chain, as gas.

Nitro prices a made-up transaction with the call's fields (OffchainLabs/nitro, arbos/l1pricing): its size after
compression, padded, at ``price`` wei a unit. Sizes here follow RLP; calldata is compressed by zlib, not brotli.
"""

import zlib
from typing import Any

SEQUENCER = "0xa4b000000000000000000073657175656e636572"
"""Blocks of other producers carry no bytes: only the padding is charged."""
MIN_BASE_FEE_WEI = 10**8
PRICE_WEI = 10**9
_UNITS_PER_BYTE = 16
_PADDING_UNITS, _PADDING_PERCENT = 256, 101
_ESTIMATE_PERCENT = 110
"""An estimate of gas is made at a higher price."""
_RANDOM_NONCE, _RANDOM_FEE = 2**64 - 1, 2**32 - 1
"""They stand for a nonce and fees of 0."""
_SIGNATURE_BYTES = 4 + 33 + 33
_COMPRESSION_BYTES = 4


def data_gas(call: dict[str, Any], nonce: int, producer: str, base_fee_wei: int, price_wei: int) -> int:
    """The gas that a call pays for its data; 0 without a base fee."""
    if base_fee_wei == 0:
        return 0
    units = _UNITS_PER_BYTE * _compressed_bytes(call, nonce) if producer.lower() == SEQUENCER else 0
    return (units + _PADDING_UNITS) * _PADDING_PERCENT // 100 * price_wei // base_fee_wei


def estimated_data_gas(call: dict[str, Any], nonce: int, base_fee_wei: int, price_wei: int) -> int:
    """The same in an estimate of gas: at a higher price, and whatever the limit is."""
    unlimited = {**call, "gas": hex(_RANDOM_FEE)}
    return data_gas(unlimited, nonce, SEQUENCER, base_fee_wei, price_wei * _ESTIMATE_PERCENT // 100)


def _compressed_bytes(call: dict[str, Any], nonce: int) -> int:
    tip_wei, max_fee_wei, gas, value_wei = (
        int(call.get(field) or "0x0", 16)
        for field in ("maxPriorityFeePerGas", "maxFeePerGas", "gas", "value")
    )
    data = calldata(call)
    compressed = min(len(data), len(zlib.compress(data, 1)))
    prefix = 1 if len(data) < 56 else 3
    payload = (
        1  # the chain's id, 0
        + _rlp_bytes(nonce or _RANDOM_NONCE)
        + _rlp_bytes(tip_wei or _RANDOM_FEE)
        + _rlp_bytes(max_fee_wei or _RANDOM_FEE)
        + _rlp_bytes(gas or _RANDOM_FEE)
        + (21 if call.get("to") else 1)
        + _rlp_bytes(value_wei)
        + prefix
        + compressed
        + 1  # no access list
        + _SIGNATURE_BYTES
    )
    return 1 + (2 if payload < 256 else 3) + payload + _COMPRESSION_BYTES


def _rlp_bytes(number: int) -> int:
    return 1 if number < 128 else 1 + (number.bit_length() + 7) // 8


def calldata(call: dict[str, Any]) -> bytes:
    """A call's input."""
    return bytes.fromhex((call.get("input") or call.get("data") or "0x")[2:])


def intrinsic_gas(call: dict[str, Any]) -> int:
    """What a transaction costs before any code runs, without the data fee; by the rules of Shanghai."""
    data = calldata(call)
    gas = 21_000 + sum(16 if byte else 4 for byte in data)
    return gas if call.get("to") else gas + 32_000 + 2 * ((len(data) + 31) // 32)
