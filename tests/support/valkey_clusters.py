"""A real Valkey cluster on loopback, and a client for tests of whatever ROUNDTRIP_REDIS_URL names."""

import contextlib
import functools
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import redis
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from support.valkeys import Store

WAIT_S = 30.0
_CONFIG = {
    "cluster-enabled": "yes",
    # Other masters answer when one is away.
    "cluster-require-full-coverage": "no",
    # Nobody is replaced unless a test says so.
    "cluster-node-timeout": 60_000,
    "repl-diskless-sync-delay": 0,
}


def client_of(url: str) -> redis.Redis:
    """A cluster's client has the same methods."""
    if "cluster=true" not in url:
        return redis.Redis.from_url(url)
    return cast(redis.Redis, redis.RedisCluster.from_url(url.partition("?")[0].partition(",")[0]))


class StoreCluster:
    """``nodes``: three masters, each with a third of the slots; others, that have none. All answer."""

    def __init__(self, nodes: list[Store]) -> None:
        self.nodes = nodes
        _form(nodes[:3], nodes)

    @property
    def url(self) -> str:
        """As ROUNDTRIP_REDIS_URL takes it."""
        return f"{','.join([self.nodes[0].url, *self.hosts()[1:]])}/?cluster=true"

    def hosts(self) -> list[str]:
        return [f"127.0.0.1:{node.port}" for node in self.nodes]

    def find_master(self, key: bytes) -> Store:
        """Of the first three nodes the one that had this key's slot at first."""
        return self.nodes[key_slot(key) * 3 // REDIS_CLUSTER_HASH_SLOTS]

    def replicate(self, master: Store, replica: Store) -> None:
        """Comes back when the replica has what the master has."""
        ask(replica, "CLUSTER REPLICATE", find_id(master))
        wait_until(lambda: ask(replica, "INFO")["master_link_status"] == "up")

    def promote(self, replica: Store) -> None:
        """Comes back when all others that answer send callers to it. Its master is away."""
        others = [node for node in self.nodes if node is not replica and node.is_running()]
        ask(replica, "CLUSTER FAILOVER", "TAKEOVER")
        wait_until(lambda: ask(replica, "INFO")["role"] == "master")
        for node in others:
            wait_until(functools.partial(_sends_to, node, replica))

    def move(self, slot: int, source: Store, target: Store) -> None:
        self.begin_move(slot, source, target)
        self.move_keys(slot, source, target)
        self.end_move(slot, target)

    def begin_move(self, slot: int, source: Store, target: Store) -> None:
        """From now on the source sends new keys of the slot to the target (ASK)."""
        ask(target, "CLUSTER SETSLOT", slot, "IMPORTING", find_id(source))
        ask(source, "CLUSTER SETSLOT", slot, "MIGRATING", find_id(target))

    def move_keys(self, slot: int, source: Store, target: Store) -> None:
        for key in ask(source, "CLUSTER GETKEYSINSLOT", slot, 1_000):
            ask(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 10_000)

    def end_move(self, slot: int, target: Store) -> None:
        """From now on everybody sends callers to the target (MOVED)."""
        owner = find_id(target)
        for node in sorted(self.nodes, key=lambda node: node is not target):
            ask(node, "CLUSTER SETSLOT", slot, "NODE", owner)


@contextlib.contextmanager
def cluster(folder: Path, spare: int = 0) -> Iterator[StoreCluster]:
    """Three masters that run, and ``spare`` nodes without slots; nothing of them outlives it."""
    ports = _find_ports(2 * (3 + spare))
    with contextlib.ExitStack() as stack:
        nodes = [
            Store(folder / str(port), port, bus_port, **_CONFIG)
            for port, bus_port in zip(ports[::2], ports[1::2], strict=True)
        ]
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        yield StoreCluster(nodes)


def ask(node: Store, command: str, *args: str | int | bytes) -> Any:
    """``command``: its first words."""
    with redis.Redis.from_url(node.url) as client:
        return client.execute_command(*command.split(), *args)


def find_id(node: Store) -> str:
    return cast(bytes, ask(node, "CLUSTER MYID")).decode()


def wait_until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end_s, "it did not come"
        time.sleep(0.005)


def _form(masters: list[Store], nodes: list[Store]) -> None:
    """Comes back when each node knows all the others, and every slot has a master."""
    for number, node in enumerate(nodes, start=1):
        ask(node, "CLUSTER SET-CONFIG-EPOCH", number)
    for number, node in enumerate(masters):
        first, end = (-(-REDIS_CLUSTER_HASH_SLOTS * at // len(masters)) for at in (number, number + 1))
        ask(node, "CLUSTER ADDSLOTSRANGE", first, end - 1)
    for node in nodes[1:]:
        ask(node, "CLUSTER MEET", "127.0.0.1", nodes[0].port, nodes[0].bus_port)
    for node in nodes:
        wait_until(functools.partial(_is_whole, node, len(nodes)))


def _is_whole(node: Store, count: int) -> bool:
    state = dict(line.split(b":", 1) for line in ask(node, "CLUSTER INFO").split() if b":" in line)
    known, slots = int(state[b"cluster_known_nodes"]), int(state[b"cluster_slots_assigned"])
    return state[b"cluster_state"] == b"ok" and (known, slots) == (count, REDIS_CLUSTER_HASH_SLOTS)


def _sends_to(node: Store, master: Store) -> bool:
    return master.port in {owner[1] for _, _, owner, *_ in ask(node, "CLUSTER SLOTS")}


def _find_ports(count: int) -> list[int]:
    """Ports of loopback that had no listener a moment ago."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
