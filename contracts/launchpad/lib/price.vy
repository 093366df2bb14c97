# pragma version 0.4.3
"""
@title A pool's opening price
"""


@internal
@pure
def _sqrt_price_x96(amount0: uint256, amount1: uint256) -> uint160:
    # floor(sqrt(amount1 * 2**192 / amount0)), the quotient by long division, 64 bits at a time.
    assert amount0 != 0 and amount0 < 2**128 and amount1 < 2**128, "no price"
    ratio: uint256 = amount1 // amount0
    rest: uint256 = amount1 % amount0
    assert ratio < 2**64, "no price"
    for _: uint256 in range(3):
        rest = rest << 64
        ratio = (ratio << 64) + rest // amount0
        rest = rest % amount0
    return convert(isqrt(ratio), uint160)
