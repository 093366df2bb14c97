# pragma version 0.4.3
# pragma evm-version cancun
# pragma optimize none
"""
@title A token of the launchpad's first generation
@notice An ordinary ERC-20 without an owner. In its launch block its pool hands
        tokens to the creator only; in that block and the two after it no buyer
        may come to hold more than a twentieth of the supply. Selling is never
        limited.
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

MAX_WALLET_BPS: constant(uint256) = 500
LIMITED_BLOCKS: constant(uint256) = 2

FACTORY: immutable(address)
deployer: public(immutable(address))
launchBlock: public(immutable(uint256))
restrictionEndBlock: public(immutable(uint256))
maxWalletAmount: public(immutable(uint256))

liquidityPool: public(address)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, creator: address):
    erc20.__init__(name, symbol, 18, supply)
    FACTORY = msg.sender
    deployer = creator
    launchBlock = block.number
    restrictionEndBlock = block.number + LIMITED_BLOCKS
    maxWalletAmount = supply * MAX_WALLET_BPS // 10_000


@external
def open(pool: address):
    """
    @notice Names the pool. Its buyers are limited from then on.
    """
    assert msg.sender == FACTORY, "not the factory"
    assert self.liquidityPool == empty(address), "open already"
    self.liquidityPool = pool


@internal
def _move(source: address, to: address, amount: uint256):
    if source == self.liquidityPool and block.number <= restrictionEndBlock:
        assert block.number > launchBlock or to == deployer, "launch block: only the creator buys"
        assert erc20.balanceOf[to] + amount <= maxWalletAmount, "more than a wallet may hold yet"
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
