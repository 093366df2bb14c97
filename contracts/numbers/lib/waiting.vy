# pragma version 0.4.3
"""
@title A ledger whose buyers wait some block numbers
"""

from ...tokens.lib import erc20

uses: erc20

# The wallet that got the supply, and never waits.
maker: address

# Block of a wallet's last receipt, 0 for none.
receivedInBlock: HashMap[address, uint256]


@internal
def _move(source: address, to: address, amount: uint256, blocks: uint256):
    if source != self.maker and not source.is_contract and self.receivedInBlock[source] != 0:
        assert block.number >= self.receivedInBlock[source] + blocks, "cooldown"
    self.receivedInBlock[to] = block.number
    erc20._move(source, to, amount)
