"""Blocks of the local chain made by hand."""

import contextlib
from collections.abc import Iterator

from roundtrip.devnet.wire import SyncRpc


@contextlib.contextmanager
def by_hand(rpc: SyncRpc) -> Iterator[None]:
    """Inside, no block is made by itself; what is in none by then never comes into one."""
    rpc.call("evm_setAutomine", False)
    try:
        yield
    finally:
        # Mined by itself it would come into a block while the next test begins.
        rpc.call("anvil_dropAllTransactions")
        rpc.call("evm_setAutomine", True)
