"""A chain of few blocks in which wallets are funded, on a node that keeps old states, or lets them go."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from roundtrip.domain.base.types import Address
from roundtrip_development.devnet import world
from roundtrip_development.devnet.node import NodeOptions, find_anvil, running
from roundtrip_development.devnet.sync_rpc import SyncRpc

EARLY, LATE, NOBODY = (Address("0x" + pair * 20) for pair in ("c0", "c1", "de"))
FUNDED, FUNDED_LATE, BLOCKS, START = 21, 35, 50, 31
"""EARLY and LATE are funded in these blocks; an index that begins with START saw one of them."""
FIRST_S = 1_700_000_000
_WAIT_S = 30


@dataclass(frozen=True, slots=True)
class Archive:
    """A node's url, who funded EARLY and LATE there, and when EARLY was funded."""

    url: str
    funder: Address
    busy: Address
    funded_s: int


@contextlib.contextmanager
def archive(places: world.DevnetFolders, kept_blocks: int = 600) -> Iterator[Archive]:
    """Blocks of one transaction each."""
    options = NodeOptions(prune_history=kept_blocks, timestamp_s=FIRST_S)
    with running(find_anvil(places.project), options) as node, SyncRpc(node.url) as rpc:
        busy, funder = (Address(one.lower()) for one in rpc.call("eth_accounts")[:2])
        for number in range(1, BLOCKS + 1):
            to = {FUNDED: EARLY, FUNDED_LATE: LATE}.get(number, busy)
            sender = funder if number == FUNDED else busy
            rpc.call("eth_sendTransaction", {"from": sender, "to": to, "value": "0x5"})
            _await_block(rpc, number)
        block = rpc.call("eth_getBlockByNumber", hex(FUNDED), True)
        yield Archive(node.url, funder, busy, int(block["timestamp"], 16))


def _await_block(rpc: SyncRpc, number: int) -> None:
    """A transaction is taken before its block is made."""
    deadline_s = time.monotonic() + _WAIT_S
    while int(rpc.call("eth_blockNumber"), 16) < number:
        assert time.monotonic() < deadline_s
