# pragma version 0.4.3
# pragma evm-version cancun
"""
@title An honest token whose transfers are expensive
@notice Every transfer hashes a number of times and writes to a number of
        storage slots. Both numbers never change, and nobody is refused.
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

HASHES: public(immutable(uint256))
WRITES: public(immutable(uint256))
noise: public(bytes32)
transfers: public(uint256)
written: HashMap[uint256, uint256]


@deploy
def __init__(
    name: String[64], symbol: String[32], supply: uint256, hashes: uint256, writes: uint256
):
    erc20.__init__(name, symbol, 18, supply)
    owned.__init__()
    HASHES = hashes
    WRITES = writes
    self._work()


@internal
def _work():
    noise: bytes32 = self.noise
    for i: uint256 in range(HASHES, bound=max_value(uint256)):
        noise = keccak256(noise)
    self.noise = noise
    self.transfers += 1
    for i: uint256 in range(WRITES, bound=max_value(uint256)):
        self.written[i] = self.transfers


@external
def transfer(to: address, amount: uint256) -> bool:
    self._work()
    erc20._move(msg.sender, to, amount)
    return True


@external
def transferFrom(source: address, to: address, amount: uint256) -> bool:
    self._work()
    erc20._spend(source, msg.sender, amount)
    erc20._move(source, to, amount)
    return True
