"""Which wallets hold enough of the service's own token: read from the token, at most once a minute each."""

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
"""How long an answer is valid while the node fails."""
FIRST_WAIT_S = 0.3
"""How long a caller waits for the answer about a wallet that is not known yet."""
_MAX_WALLETS = 50_000
_MAX_READS = 16
_MAX_DECIMALS = 77
"""10 to the 78th is no uint256."""

IsHolder = Callable[[Address], Awaitable[bool]]
"""Whether a wallet holds enough of the service's own token. Never raises."""


async def nobody_holds(wallet: Address) -> bool:
    """For a service without a token of its own."""
    return False


@dataclass(slots=True)
class _TierWallet:
    """``asked_s``: time of the last read. ``answered_s``: time of the last answer."""

    asked_s: float
    holds: bool = False
    answered_s: float | None = None


@dataclass(slots=True)
class HolderTier:
    """``min_whole``: whole tokens that are enough. ``clock``: seconds from an arbitrary start."""

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
        """Whether the wallet holds enough. Never raises. A known answer is returned at once and refreshed in
        the background; for an unknown wallet this waits ``first_wait_s``, then answers no until the read
        completes."""
        stored = self._wallets.get(wallet)
        if (stored is None or self.clock() - stored.asked_s >= READ_EVERY_S) and len(
            self._reads
        ) < _MAX_READS:
            self._start_read(wallet, stored)
        reading = self._reads.get(wallet)
        if reading is not None and self._stored_answer(wallet) is None:
            await asyncio.wait({reading}, timeout=self.first_wait_s)
        return self._stored_answer(wallet) or False

    async def wait_for_reads(self) -> None:
        """Waits for the reads that are running."""
        await asyncio.gather(*self._reads.values())

    def _stored_answer(self, wallet: Address) -> bool | None:
        stored = self._wallets.get(wallet)
        if stored is None or stored.answered_s is None or self.clock() - stored.answered_s >= BELIEVED_S:
            return None
        return stored.holds

    def _start_read(self, wallet: Address, stored: _TierWallet | None) -> None:
        if wallet in self._reads:
            return
        if stored is None:
            stored = self._wallets[wallet] = _TierWallet(self.clock())
            if len(self._wallets) > _MAX_WALLETS:
                self._wallets.popitem(last=False)
        stored.asked_s = self.clock()
        self._wallets.move_to_end(wallet)
        self._reads[wallet] = asyncio.create_task(self._read(wallet, stored), name="own token")

    async def _read(self, wallet: Address, stored: _TierWallet) -> None:
        try:
            pinned = self.heads.current().block
            calls = holding_calls(self.token, wallet, pinned, self.gas_limit)
            stored.holds = holds(await self.node.batch(calls), self.min_whole)
            stored.answered_s = self.clock()
        except RoundtripError:
            pass  # The last answer stays valid for BELIEVED_S.
        finally:
            del self._reads[wallet]


def holding_calls(token: Address, wallet: Address, pinned: BlockRef, gas_limit: int) -> list[RpcCall]:
    """The calls for balance and decimals, at the pinned block."""
    call_data = (abi.call(erc20.BALANCE_OF, wallet), erc20.DECIMALS)
    return [
        RpcCall("eth_call", [{"to": token, "data": data, "gas": hex(gas_limit)}, {"blockHash": pinned.hash}])
        for data in call_data
    ]


def holds(answers: list[msgspec.Raw | RpcError], min_whole: int) -> bool:
    """Whether at least ``min_whole`` tokens are held; no if the token does not answer. Raises NodeFault when
    the node, not the token, failed."""
    balance, decimals = (abi.uint_at(bytes_or_empty(answer), 0) for answer in answers)
    if balance is None or decimals is None or decimals > _MAX_DECIMALS:
        return False
    return balance >= min_whole * int(10**decimals)
