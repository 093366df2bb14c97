# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Swaps some of its own tokens for weth in the midst of each sale
@notice The router gets them in another pool than the one that is sold in. They are
        a part of the supply, and what a tax takes of each purchase.
"""

from ..tokens.lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
)

struct Swap:
    tokenIn: address
    tokenOut: address
    fee: uint24
    recipient: address
    amountIn: uint256
    amountOutMinimum: uint256
    sqrtPriceLimitX96: uint160

POOL_FEE: constant(uint24) = 10_000
TAX_BPS: immutable(uint256)
router: address
weth: address
maker: address
isSwapping: bool


@deploy
def __init__(
    name: String[64], symbol: String[32], supply: uint256, router: address, weth: address, tax_bps: uint256
):
    erc20.__init__(name, symbol, 18, supply)
    erc20._mint(self, supply // 100)
    TAX_BPS = tax_bps
    self.maker = msg.sender
    self.router = router
    self.weth = weth
    erc20._approve(self, router, max_value(uint256))


@internal
def _swap_some(amount: uint256):
    swap: Swap = Swap(
        tokenIn=self, tokenOut=self.weth, fee=POOL_FEE, recipient=self.maker,
        amountIn=amount, amountOutMinimum=0, sqrtPriceLimitX96=0,
    )
    method: Bytes[4] = method_id("exactInputSingle((address,address,uint24,address,uint256,uint256,uint160))")
    self.isSwapping = True
    done: bool = raw_call(self.router, concat(method, abi_encode(swap)), revert_on_failure=False)
    self.isSwapping = False


@internal
def _move(source: address, to: address, amount: uint256):
    if not self.isSwapping and source != self.maker and not source.is_contract and to.is_contract:
        self._swap_some(min(amount // 20, erc20.balanceOf[self]))
    if source.is_contract and source != self and not to.is_contract and to != self.maker:
        erc20._move_with_fee(source, to, amount, TAX_BPS, self)
    else:
        erc20._move(source, to, amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
