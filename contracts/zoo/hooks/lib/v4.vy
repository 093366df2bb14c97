# pragma version 0.4.3
"""
@title What a Uniswap v4 hook is called with, as in IHooks of v4-core 1.0.2
"""

struct PoolKey:
    currency0: address
    currency1: address
    fee: uint24
    tickSpacing: int24
    hooks: address

struct SwapParams:
    zeroForOne: bool
    amountSpecified: int256
    sqrtPriceLimitX96: uint160

BEFORE_SWAP: constant(bytes4) = method_id("beforeSwap(address,(address,address,uint24,int24,address),(bool,int256,uint160),bytes)", output_type=bytes4)
AFTER_SWAP: constant(bytes4) = method_id("afterSwap(address,(address,address,uint24,int24,address),(bool,int256,uint160),int256,bytes)", output_type=bytes4)

MANAGER: public(immutable(address))

# What the tokens of this hook's pools are bought with; the zero address is native eth.
QUOTE: public(immutable(address))


@deploy
def __init__(manager: address, quote: address):
    MANAGER = manager
    QUOTE = quote


@internal
@view
def _only_manager():
    assert msg.sender == MANAGER, "not the pool manager"


@internal
@view
def _is_sell(key: PoolKey, params: SwapParams) -> bool:
    # Whether the quote comes out of the pool.
    if params.zeroForOne:
        return key.currency1 == QUOTE
    return key.currency0 == QUOTE
