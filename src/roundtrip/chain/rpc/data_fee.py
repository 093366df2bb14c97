"""What nitro charges for a transaction's data: the parent chain's fee, in gas. It is within the intrinsic gas
and the gas used. Pure."""

from dataclasses import dataclass

_PLAIN_BYTES = 128
"""At most the size of a compressed call without calldata, to which the measured fee belongs. Recorded answers
suggest 142."""
_MARGIN_BPS = 15_000
"""The fee may rise between its measurement and its use."""


@dataclass(frozen=True, slots=True)
class DataFee:
    """``wei``: the fee of a call without calldata; 0: the chain charges none. ``base_fee_wei``: of the block
    that it was measured on."""

    wei: int = 0
    base_fee_wei: int = 1

    def gas(self, calldata: str, base_fee_wei: int = 0) -> int:
        """At least the gas that a call with this calldata (``0x`` hex) pays for its data; 0 where the chain
        charges none. ``base_fee_wei`` 0: as when it was measured."""
        if not self.wei:
            return 0
        data = bytes.fromhex(calldata[2:])
        # Nitro charges by the compressed size: zero bytes, most of a usual calldata, take almost none.
        size = _PLAIN_BYTES + len(data) - data.count(0) + len(data) // 16
        wei = self.wei * size * _MARGIN_BPS // (_PLAIN_BYTES * 10_000)
        return wei // (base_fee_wei or self.base_fee_wei) + 1


NO_DATA_FEE = DataFee()
