# pragma version 0.4.3
# pragma evm-version cancun
"""
@title A position manager of its own kind
@notice It numbers v3 positions as NFTs, and does not tell whose they are. Who made a
        position can take it out at any time.
"""

from .lib import pool_account

initializes: pool_account

exports: pool_account.uniswapV3MintCallback

event Transfer:
    sender: indexed(address)
    receiver: indexed(address)
    tokenId: indexed(uint256)

struct Position:
    holder: address
    pool: address
    lower: int24
    upper: int24
    liquidity: uint128

_count: uint256
_positions: HashMap[uint256, Position]


@external
@view
def ownerOf(tokenId: uint256) -> address:
    raise "nobody's business"


@external
def mint(pool: address, lower: int24, upper: int24, liquidity: uint128) -> uint256:
    """
    @notice Deposits what the contract was sent.
    """
    self._count += 1
    self._positions[self._count] = Position(
        holder=msg.sender, pool=pool, lower=lower, upper=upper, liquidity=liquidity
    )
    pool_account._add(pool, lower, upper, liquidity)
    log Transfer(sender=empty(address), receiver=msg.sender, tokenId=self._count)
    return self._count


@external
def burn(tokenId: uint256):
    found: Position = self._positions[tokenId]
    assert msg.sender == found.holder, "not the holder"
    self._positions[tokenId] = empty(Position)
    pool_account._remove(found.pool, found.lower, found.upper, found.liquidity, msg.sender)
    log Transfer(sender=msg.sender, receiver=empty(address), tokenId=tokenId)
