"""The newest block, as a check begins with it."""

from roundtrip.chain.blocks.heads import ChainHead
from roundtrip.domain.base.types import Address, BlockRef
from unit.domain.builders import MARKET

COINBASE = Address("0x" + "c0" * 20)


HEAD = ChainHead(
    BlockRef(100, "0x" + "ab" * 32, 1_700_000_000), 10**7, COINBASE, "0x" + "cd" * 32, MARKET, 0.0
)
