"""Made-up blocks in which more happens to launches than trades."""

from collections.abc import Sequence

from roundtrip.domain.base.types import ZERO_ADDRESS, Address
from roundtrip.venues.base import Log
from support.told_blocks import (
    DEAD,
    MadeUp,
    moved,
    v3_at,
    v3_burnt,
    v3_minted,
    v3_opened,
    v4_at,
    v4_moved,
    v4_opened,
)


class Busy(MadeUp):
    """With more of what signals are about: liquidity of the tokens' pools, and tokens given away."""

    def _logs(self, opened: set[tuple[str, ...]]) -> Sequence[Log]:
        roll, token = self._random.random(), self._random.choice(self._tokens)
        if roll < 0.1:
            taker = self._random.choice((*self._wallets, DEAD, DEAD))
            return (moved(token, self._wallet(), taker, self._amount()),)
        return self._provides(token, opened) if roll < 0.35 else super()._logs(opened)

    def _provides(self, token: Address, opened: set[tuple[str, ...]]) -> Sequence[Log]:
        """Into a pool that is opened where there is none, or out of it."""
        quote, adds = self._random.choice(self._quotes), self._random.random() < 0.6
        amounts = [self._random.randrange(10**21) for _ in range(3)]
        if quote == ZERO_ADDRESS:
            opening = v4_opened(token, quote)
            change = v4_moved(v4_at(token, quote), self._wallet(), amounts[0] if adds else -amounts[0])
        else:
            tell = v3_minted if adds else v3_burnt
            opening, change = v3_opened(token, quote), tell(v3_at(token, quote), self._wallet(), *amounts)
        if opening.topics in opened:
            return (change,)
        opened.add(opening.topics)
        return opening, change
