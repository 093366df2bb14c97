# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An honest token that answers nothing
@notice The buyer gets an ordinary token and can sell it at any time. Its transfer,
        transferFrom and approve return no value, as some early tokens do.
"""

from .lib import erc20

initializes: erc20

exports: (
    erc20.name,
    erc20.symbol,
    erc20.decimals,
    erc20.totalSupply,
    erc20.balanceOf,
    erc20.allowance,
)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)


@external
def approve(spender: address, amount: uint256):
    erc20._approve(msg.sender, spender, amount)


@external
def transfer(to: address, amount: uint256):
    erc20._move(msg.sender, to, amount)


@external
def transferFrom(source: address, to: address, amount: uint256):
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
