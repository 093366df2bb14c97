# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A fee between wallets
@notice The buyer buys and sells in the pool without any fee. Sending the token
        from one wallet to another costs a part of it, which goes to the owner.
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

# Hundredths of a percent.
TAX_BPS: public(immutable(uint256))


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, tax_bps: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    assert tax_bps <= 10_000, "more than everything"
    TAX_BPS = tax_bps


@internal
def _move(source: address, to: address, amount: uint256):
    if owned._is_holder(source) and owned._is_holder(to):
        erc20._move_with_fee(source, to, amount, TAX_BPS, owned.owner)
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
