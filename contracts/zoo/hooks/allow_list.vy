# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A hook with a list of sellers
@notice Everybody may buy the token; a sale passes only through a router on the owner's
        list, or with the address of a listed account as hook data.
@dev Low 14 bits of the address: 0x0080 (BEFORE_SWAP).
"""

from .lib import v4

initializes: v4

exports: (v4.MANAGER, v4.QUOTE)

# Given, because the deployer is the contract that made the address.
owner: public(address)
allowed: public(HashMap[address, bool])


@deploy
def __init__(manager: address, quote: address, owner: address):
    v4.__init__(manager, quote)
    self.owner = owner


@external
def allow(account: address, listed: bool):
    assert msg.sender == self.owner, "not the owner"
    self.allowed[account] = listed


@internal
@view
def _may_sell(sender: address, hook_data: Bytes[1024]) -> bool:
    if len(hook_data) == 32 and self.allowed[abi_decode(slice(hook_data, 0, 32), address)]:
        return True
    return self.allowed[sender]


@external
@view
def beforeSwap(sender: address, key: v4.PoolKey, params: v4.SwapParams, hook_data: Bytes[1024]) -> (bytes4, int256, uint24):
    v4._only_manager()
    if v4._is_sell(key, params):
        assert self._may_sell(sender, hook_data), "not on the list"
    return v4.BEFORE_SWAP, 0, 0
