"""Blocks of the local chain made by hand."""

import contextlib
from collections.abc import Iterator

from roundtrip_development.devnet.sync_rpc import SyncRpc


@contextlib.contextmanager
def by_hand(rpc: SyncRpc) -> Iterator[None]:
    """Inside, no block is made by itself; what is in none by then never comes into one."""
    rpc.call("evm_setAutomine", False)
    _await_empty_pool(rpc)
    try:
        yield
    finally:
        # Mined by itself it would come into a block while the next test begins.
        rpc.call("anvil_dropAllTransactions")
        rpc.call("evm_setAutomine", True)


def settle(rpc: SyncRpc) -> None:
    """What was sent is in its block afterwards; what comes into none is dropped."""
    for _ in range(2000):
        if int(rpc.call("txpool_status")["pending"], 16) == 0:
            break
    rpc.call("anvil_dropAllTransactions")


def _await_empty_pool(rpc: SyncRpc) -> None:
    """A receipt can be read a moment before its transaction leaves the pool (one of 400, measured).

    In that moment the node gives the sender's next transaction a number too high, and with the old one
    drops every new one of the same number.
    """
    for _ in range(2000):
        waiting = rpc.call("txpool_status")
        if int(waiting["pending"], 16) + int(waiting["queued"], 16) == 0:
            return
    raise AssertionError("transactions stayed in the pool")
