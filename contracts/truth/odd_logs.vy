# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A token whose Transfer logs have an odd shape
@notice Balances are those of any ERC-20. Its logs bear the topic of Transfer,
        with every value as a topic (four topics, as of ERC-721) or with none
        (one topic).
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

_TRANSFER: constant(bytes32) = keccak256("Transfer(address,address,uint256)")

topics: immutable(uint256)


@deploy
def __init__(name: String[64], symbol: String[32], supply: uint256, count: uint256):
    erc20.__init__(name, symbol, 18, 0)
    topics = count
    erc20.totalSupply = supply
    erc20.balanceOf[msg.sender] = supply
    self._tell(empty(address), msg.sender, supply)


@internal
def _tell(source: address, to: address, amount: uint256):
    if topics == 4:
        raw_log(
            [_TRANSFER, convert(source, bytes32), convert(to, bytes32), convert(amount, bytes32)], b""
        )
    else:
        raw_log([_TRANSFER], abi_encode(source, to, amount))


@internal
def _move(source: address, to: address, amount: uint256):
    assert erc20.balanceOf[source] >= amount, "balance too low"
    erc20.balanceOf[source] -= amount
    erc20.balanceOf[to] += amount
    self._tell(source, to, amount)


@external
def transfer(to: address, amount: uint256) -> bool:
    self._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    erc20._spend(source, msg.sender, amount)
    self._move(source, to, amount)
    return True
