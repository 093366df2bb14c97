# pragma version 0.4.3
"""
@title A loop without an end
"""


@internal
@view
def _burn_all_gas():
    # The gas runs out long before the counter does.
    noise: bytes32 = empty(bytes32)
    for i: uint256 in range(max_value(uint256)):
        noise = keccak256(noise)
