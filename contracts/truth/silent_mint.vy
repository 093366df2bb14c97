# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token whose constructor tells nobody of what it mints
@notice Its maker has all of it, and no log says so. All else is ordinary.
"""

from ..tokens.lib import erc20
initializes: erc20
exports: (erc20.name, erc20.symbol, erc20.decimals, erc20.totalSupply, erc20.balanceOf, erc20.allowance, erc20.approve, erc20.transferFrom, erc20.transfer)

@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256):
    erc20.__init__(name, symbol, 18, 0)
    erc20.totalSupply = supply
    erc20.balanceOf[msg.sender] = supply
