# pragma version 0.4.3
# pragma evm-version cancun
"""
@title Blacklisted after the purchase
@notice The buyer can sell in the very block of the purchase. From the next block
        on the wallet is on a blacklist and its tokens never move again.
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

# Block of a wallet's first purchase, 0 for none.
boughtInBlock: public(HashMap[address, uint256])


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()


@internal
def _move(source: address, to: address, amount: uint256):
    first: uint256 = self.boughtInBlock[source]
    assert first == 0 or block.number == first, "blacklisted"

    # Tokens that come out of a contract are a purchase. The first one counts;
    # a later purchase does not open a new block to sell in.
    if source.is_contract and owned._is_holder(to) and self.boughtInBlock[to] == 0:
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
