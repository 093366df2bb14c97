"""Blocks folded without a database: what was not read before is not there."""

from dataclasses import dataclass, field

from roundtrip.chain.blocks.spans import BlockRead
from roundtrip.domain.base.types import Address
from roundtrip.sync.batch import Batch, FoldContext
from roundtrip.sync.ledger import BatchFold, decode_blocks, list_missing
from roundtrip.venues.base import Contracts
from roundtrip.venues.decode import Decoder
from support.told_blocks import Chain, Sent
from unit.venues.logs import NETWORK
from unit.venues.network import address

ALICE, BOB, CAROL, DEV = (address(0xA11CE), address(0xB0B), address(0xCA401), address(0xDE4))
LOW, HIGH = address(0x0B), address(0xAB << 152)
"""Tokens whose addresses lie below and above those of all money but eth."""
CURVE = address(0xC04E)
NVDA, SPY = address(0x57), address(0xF5 << 140)
"""Launches are made against them; below weth, and above usdg."""


@dataclass(slots=True)
class Story:
    """A chain and what is known at its end."""

    contracts: Contracts = NETWORK
    known: FoldContext = field(default_factory=FoldContext)
    chain: Chain = field(default_factory=Chain)
    eth_usd_pool: Address | None = None

    def block(self, *transactions: Sent, after_s: int = 1, transfers_from_s: int = 0) -> Batch:
        """What one more block adds."""
        return self.read([self.chain.block(*transactions, after_s=after_s)], transfers_from_s)

    def read(self, blocks: list[BlockRead], transfers_from_s: int = 0) -> Batch:
        """What these add."""
        answer = decode_blocks(blocks, Decoder(self.contracts))
        want = list_missing(answer, self.known)
        self.known.pools |= dict.fromkeys(want.pools)
        self.known.launched |= dict.fromkeys(want.tokens, False)
        parent_hash = blocks[0].parent_hash
        return BatchFold(self.known, self.contracts, parent_hash, transfers_from_s, self.eth_usd_pool).fold(
            answer
        )


def traders(batch: Batch) -> list[Address]:
    return [trade.trader for trade in batch.trades]
