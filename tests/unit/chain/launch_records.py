"""What the launchpad's factory answers of a token."""

from eth_abi.abi import encode

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from unit.venues.network import BELOW, address

TOKEN, CURVE, DEPLOYER = BELOW, address(0xC0), address(0xDE)


RECORD = (
    "address", "address", "address", "address", "address", "uint256", "uint24", "int24", "uint256", "bool",
    "uint8", "uint256", "uint256", "uint256", "bool",
)  # fmt: skip


def record(phase: int = 0, token: Address = TOKEN, exists: bool = True) -> bytes:
    text = (
        token,
        CURVE,
        DEPLOYER,
        DEPLOYER,
        ZERO_ADDRESS,
        10**18,
        0,
        200,
        100,
        False,
        phase,
        3,
        4,
        5,
        exists,
    )
    return encode(RECORD, text)
