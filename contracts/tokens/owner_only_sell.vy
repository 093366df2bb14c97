# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Only the owner may sell
@notice The buyer receives the token from the pool as usual, but every attempt
        to sell it or to send it on is refused. Only the owner's tokens move.
"""

from .lib import erc20
from .lib import owned

initializes: erc20
initializes: owned

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
    erc20.approve,
    owned.owner,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@external
def transfer(to: address, amount: uint256) -> bool:
    # A pool is a contract and pays a buyer with `transfer`.
    assert msg.sender == owned.owner or msg.sender.is_contract, "trading not open"
    erc20._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    # A sale takes the seller's tokens with `transferFrom`.
    assert source == owned.owner, "trading not open"
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
