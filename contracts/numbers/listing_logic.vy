# pragma version 0.4.3
# pragma evm-version cancun
"""
@title The logic of a token that blacklists its buyers by the block's number
@notice A proxy fills it once and runs it as its own. A buyer can sell in the block
        of the purchase; from the next number on it is on the list.
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

initialized: bool

# Block of a wallet's first purchase, 0 for none.
boughtInBlock: HashMap[address, uint256]


@deploy
def __init__():
    erc20.__init__("", "", 18, 0)
    self.initialized = True


@external
def initialize(name: String[64], symbol: String[32], supply: uint256, receiver: address):
    assert not self.initialized, "initialized"
    self.initialized = True
    erc20.name = name
    erc20.symbol = symbol
    erc20._mint(receiver, supply)


@internal
def _move(source: address, to: address, amount: uint256):
    first: uint256 = self.boughtInBlock[source]
    assert first == 0 or block.number == first, "blacklisted"
    if source.is_contract and not to.is_contract and self.boughtInBlock[to] == 0:
        self.boughtInBlock[to] = block.number
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
