# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An owner who can do no harm
@notice The owner sets who collects a fee and how much that is, of at most three percent
        of purchases, and can make more tokens for anybody. Sales are free.
"""

from ..tokens.lib import erc20
from ..tokens.lib import owned

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

collector: public(address)
buyFee: public(uint256)
pairs: public(HashMap[address, bool])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    self.collector = msg.sender


@external
def setMarketingWallet(collector: address):
    owned._only_owner()
    assert not collector.is_contract, "a wallet"
    self.collector = collector


@external
def setBuyFee(percent: uint256):
    owned._only_owner()
    assert percent <= 3, "too much"
    self.buyFee = percent


@external
def setPair(pair: address, listed: bool):
    owned._only_owner()
    self.pairs[pair] = listed


@external
def mint(to: address, amount: uint256):
    owned._only_owner()
    erc20._mint(to, amount)


@external
def transferOwnership(to: address):
    owned._only_owner()
    owned.owner = to


@internal
def _move(source: address, to: address, amount: uint256):
    if source.is_contract and owned._is_holder(to):
        erc20._move_with_fee(source, to, amount, self.buyFee * 100, self.collector)
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
