"""Whose wallet holds enough of the service's own token: asked of the token itself, once a minute at most."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from roundtrip.chain.blocks.heads import Heads
from roundtrip.chain.holders.token_views import bytes_or_empty
from roundtrip.chain.rpc.client import RpcCall, RpcError, RpcNode
from roundtrip.domain.base.errors import RoundtripError
from roundtrip.domain.base.types import Address, BlockRef
from roundtrip.venues import abi, erc20

READ_EVERY_S = 60.0
BELIEVED_S = 300.0
"""So long a node that fails leaves what was known."""
FIRST_WAIT_S = 0.3
_MOST_WALLETS = 50_000
_MOST_READS = 16
_MOST_DECIMALS = 77
"""10 to the 78th is no uint256."""

IsHolder = Callable[[Address], Awaitable[bool]]
"""Whether a wallet holds enough of the service's own token. Never raises."""


async def nobody_holds(wallet: Address) -> bool:
    """Of a service without a token of its own."""
    return False


@dataclass(slots=True)
class _TierWallet:
    """``begun_s``: when it was last asked for. ``told_s``: when that was last answered."""

    begun_s: float
    holds: bool = False
    told_s: float | None = None


@dataclass(slots=True)
class HolderTier:
    """``min_whole``: whole tokens that are enough. ``clock``: seconds, of any beginning."""

    token: Address
    min_whole: int
    node: RpcNode
    heads: Heads
    gas_limit: int
    clock: Callable[[], float]
    first_wait_s: float = FIRST_WAIT_S
    _wallets: OrderedDict[Address, _TierWallet] = field(default_factory=OrderedDict)
    _reads: dict[Address, asyncio.Task[None]] = field(default_factory=dict)

    async def is_holder(self, wallet: Address) -> bool:
        """Never raises. What is known is told at once and asked again beside; of a wallet nobody knows of yet
        the answer is waited for a moment, and without one it holds nothing until it comes."""
        known = self._wallets.get(wallet)
        if (known is None or self.clock() - known.begun_s >= READ_EVERY_S) and len(self._reads) < _MOST_READS:
            self._begin(wallet, known)
        reading = self._reads.get(wallet)
        if reading is not None and self._known_holder(wallet) is None:
            await asyncio.wait({reading}, timeout=self.first_wait_s)
        return self._known_holder(wallet) or False

    async def settle(self) -> None:
        """Waits for what is under way."""
        await asyncio.gather(*self._reads.values())

    def _known_holder(self, wallet: Address) -> bool | None:
        known = self._wallets.get(wallet)
        if known is None or known.told_s is None or self.clock() - known.told_s >= BELIEVED_S:
            return None
        return known.holds

    def _begin(self, wallet: Address, known: _TierWallet | None) -> None:
        if wallet in self._reads:
            return
        if known is None:
            known = self._wallets[wallet] = _TierWallet(self.clock())
            if len(self._wallets) > _MOST_WALLETS:
                self._wallets.popitem(last=False)
        known.begun_s = self.clock()
        self._wallets.move_to_end(wallet)
        self._reads[wallet] = asyncio.create_task(self._read(wallet, known), name="own token")

    async def _read(self, wallet: Address, known: _TierWallet) -> None:
        try:
            pinned = self.heads.current().block
            calls = holding_calls(self.token, wallet, pinned, self.gas_limit)
            known.holds = holds(await self.node.batch(calls), self.min_whole)
            known.told_s = self.clock()
        except RoundtripError:
            pass  # What was known holds for a while.
        finally:
            del self._reads[wallet]


def holding_calls(token: Address, wallet: Address, pinned: BlockRef, gas_limit: int) -> list[RpcCall]:
    """The reads, at the pinned block."""
    heads = (abi.call(erc20.BALANCE_OF, wallet), erc20.DECIMALS)
    return [
        RpcCall("eth_call", [{"to": token, "data": data, "gas": hex(gas_limit)}, {"blockHash": pinned.hash}])
        for data in heads
    ]


def holds(answers: list[msgspec.Raw | RpcError], min_whole: int) -> bool:
    """Whether ``min_whole`` tokens are held. A token that does not tell: no. Raises NodeFault when the node,
    not the token, left it open."""
    balance, decimals = (abi.uint_at(bytes_or_empty(answer), 0) for answer in answers)
    if balance is None or decimals is None or decimals > _MOST_DECIMALS:
        return False
    return balance >= min_whole * int(10**decimals)
