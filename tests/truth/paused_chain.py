"""The local chain while wallets trade: blocks are made by hand, so that time passes as a trade needs it."""

import contextlib
from collections.abc import Iterator

from roundtrip_development.devnet.sync_rpc import SyncRpc

SECONDS_A_BLOCK = 12
"""How fast the number that contracts see counts on the real chain."""


class PausedChain:
    """The local chain while wallets trade: time stands still between the blocks they make. ``bypass``: what
    moves a token into the pool manager and out again. ``counted_blocks``: the most blocks that the token can
    tell apart while a wallet waits; 0: it counts none."""

    def __init__(
        self,
        rpc: SyncRpc,
        contracts: dict[str, str],
        token: str,
        usdg_an_eth_raw: int,
        hooks: dict[str, str],
        bypass: str,
        counted_blocks: int = 0,
    ) -> None:
        self.rpc = rpc
        self.hooks = hooks
        self.bypass = bypass
        self._counted_blocks = counted_blocks
        self.contracts = contracts
        self.token = token
        self._usdg_an_eth_raw = usdg_an_eth_raw
        latest = rpc.call("eth_getBlockByNumber", "latest", False)
        self.now_s = int(latest["timestamp"], 16)
        self.base_fee_wei = int(latest["baseFeePerGas"], 16)

    @contextlib.contextmanager
    def by_hand(self) -> Iterator[None]:
        """Inside, blocks are made by hand only."""
        self.rpc.call("evm_setAutomine", False)
        try:
            yield
        finally:
            self.rpc.call("evm_setAutomine", True)

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Undoes what happens inside."""
        snapshot = self.rpc.call("evm_snapshot")
        yield
        assert self.rpc.call("evm_revert", snapshot)

    @contextlib.contextmanager
    def passed(self, seconds: int) -> Iterator[None]:
        """Inside, it is so much later."""
        self.now_s += seconds
        yield
        self.now_s -= seconds

    def wait(self, until_s: int) -> None:
        """Makes the blocks that come until just before this second, at most those that are counted. What is
        queued already comes into the first of them."""
        if not self._counted_blocks:
            return
        last_s = int(self.rpc.call("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
        count = (until_s - last_s) // SECONDS_A_BLOCK - 1
        for number in range(1, min(count, self._counted_blocks) + 1):
            self.mine(last_s + SECONDS_A_BLOCK * number)

    def mine(self, at_s: int) -> None:
        """One block of what is queued, at this second."""
        self.rpc.call("evm_mine", hex(at_s))

    def quote_raw(self, wei: int, quote: str) -> int:
        """What so much eth is worth in the money side's units."""
        return wei * self._usdg_an_eth_raw // 10**18 if quote == "usdg" else wei

    def wei(self, raw: int, quote: str) -> int:
        """What so much of the money side is worth."""
        return raw * 10**18 // self._usdg_an_eth_raw if quote == "usdg" else raw
