"""A Valkey (or Redis) cluster that serving processes share, and the choice between it and one server."""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

import structlog
from redis.cluster import parse_cluster_slots
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from redis.exceptions import AskError, MovedError, TryAgainError

from roundtrip.api.request.callers import start_detached_task

from .valkey import BOUND_S, RETRY_S, Argument, BadUrl, Script, StoreUnavailable, Valkey

log = structlog.get_logger(__name__)

_EXAMPLE = "redis://127.0.0.1:7000,127.0.0.1:7001/?cluster=true"
_DEFAULT_PORT = 6379
_MAX_TRIES = 8
"""Tries of one script: a master that redirects a script has not run it."""
_PAUSE_S = 0.01
"""Before the second try of a script whose keys are on two masters; it grows by as much with each try."""

_Address = tuple[str, int]


class ValkeyCluster:
    """Sends each script to the master that has its keys' slot. Each master is a ``Valkey`` of its own, with
    one connection, its own groups, its own time limits and its own failures: one that is away costs only the
    keys of its slots.

    A master that does not have a slot (any more) redirects the script without running it, and the script is
    sent where that reply says. The map of slots is read with the first script, and again after a redirection
    or a failure, at most once a second; only scripts whose slot has no master in it wait for it.

    ``clock``: seconds from any origin.
    """

    def __init__(
        self, url: str, clock: Callable[[], float] = time.monotonic, bound_s: float = BOUND_S
    ) -> None:
        """``url``: without the option ``cluster``; it may name several hosts. Raises BadUrl. Connects with
        the first script."""
        self._clock = clock
        self._bound_s = bound_s
        self._masters: dict[_Address, Valkey] = {}
        self._closed = False
        try:
            # Some Pythons refuse an IPv6 host that stands behind another host.
            scheme, named, after = _split_hosts(url)
            parts = urlsplit(f"{scheme}://host{after}")
            database = dict(parse_qsl(parts.query)).get("db", parts.path.strip("/"))
            if parts.scheme == "unix" or database not in ("", "0"):
                raise ValueError("a cluster has neither a socket nor databases")
            user, at, hosts = named.rpartition("@")
            self._seeds = [_parse_address(host) for host in hosts.split(",")]
        except ValueError:
            raise BadUrl(_EXAMPLE) from None
        self._url_before, self._url_after = f"{parts.scheme}://{user}{at}", f"/?{parts.query}"
        for seed in self._seeds:
            self._master(seed)
        self._owners: list[_Address | None] = []
        """The master of each slot; empty before the first map."""
        self._unused: set[_Address] = set()
        self._reading: asyncio.Task[None] | None = None
        self._read_again_s: float | None = None
        self._ending: set[asyncio.Task[None]] = set()

    def batch_of(self, key: bytes) -> bytes:
        """Keys with the same batch may be in one script. Here each key is its own: a slot that is moved
        leaves one master key by key."""
        return key

    def is_gone(self, key: bytes = b"") -> bool:
        """Whether a script with this key now would raise StoreUnavailable at once; without a key: with any
        key."""
        if self._closed:
            return True
        owners = {self._owner(key_slot(key))} if key else set(self._owners or [None])
        return any(self._is_owner_gone(owner) for owner in owners)

    async def run(self, script: Script, keys: Sequence[bytes], args: Sequence[Argument]) -> object:
        """Runs a script whose keys have one slot; returns its reply. Raises StoreUnavailable; ValueError if
        the keys have several slots."""
        slot = _find_slot(keys)
        address, is_asking = await self._find_owner(slot), False
        for tries in range(1, _MAX_TRIES + 1):
            try:
                return await self._master(address).run(script, keys, args, is_asking)
            except MovedError as moved:
                address, is_asking = (moved.host or address[0], moved.port), False
                self._owners[slot] = address
                self._begin_reading()
            except AskError as asked:
                address, is_asking = (asked.host or address[0], asked.port), True
            except TryAgainError:
                await asyncio.sleep(_PAUSE_S * tries)
                address, is_asking = await self._find_owner(slot), False
            # BadUrl: of an address that a master gave.
            except (StoreUnavailable, BadUrl):
                self._begin_reading()
                raise StoreUnavailable from None
        raise StoreUnavailable

    def send_script(self, script: Script, keys: Sequence[bytes], args: Sequence[Argument]) -> None:
        """Sends a script without waiting for its reply; does nothing if its master is unavailable."""
        if not self.is_gone(keys[0]):
            self._end_later(self._send(script, keys, args))

    def mark_unavailable(self, why: str, key: bytes) -> None:
        """Treats an impossible answer as a failure of the master that has this key."""
        owner = self._owner(key_slot(key))
        if owner in self._masters:
            self._masters[owner].mark_unavailable(why)

    async def close(self) -> None:
        """Sends the queued scripts if possible, then closes. Later scripts raise StoreUnavailable."""
        while self._ending:
            await asyncio.wait(self._ending)
        self._closed = True
        if self._reading is not None:
            await asyncio.wait({self._reading})
        await asyncio.gather(*(master.close() for master in self._masters.values()))

    def _owner(self, slot: int) -> _Address | None:
        return self._owners[slot] if self._owners else None

    def _is_owner_gone(self, owner: _Address | None) -> bool:
        if owner is not None:
            return owner in self._masters and self._masters[owner].is_gone()
        if self._read_again_s is None:
            return False
        return self._reading is not None or self._clock() < self._read_again_s

    def _master(self, address: _Address) -> Valkey:
        """The client of a master, made at its first use. Raises StoreUnavailable after ``close``; BadUrl."""
        master = self._masters.get(address)
        if self._closed:
            raise StoreUnavailable
        if master is None:
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            name = f"{host}:{address[1]}"
            try:
                master = Valkey(
                    f"{self._url_before}{name}{self._url_after}", self._clock, self._bound_s, name
                )
            except BadUrl:
                raise BadUrl(_EXAMPLE) from None
            self._masters[address] = master
        return master

    async def _find_owner(self, slot: int) -> _Address:
        owner = self._owner(slot)
        if owner is None and not self._closed and not self._is_owner_gone(None):
            self._begin_reading()
            if self._reading is not None:
                await asyncio.shield(self._reading)
            owner = self._owner(slot)
        if owner is None or self._closed:
            raise StoreUnavailable
        return owner

    def _begin_reading(self) -> None:
        is_early = self._read_again_s is not None and self._clock() < self._read_again_s
        if self._reading is None and not is_early and not self._closed:
            self._reading = start_detached_task(self._read_map(), "valkey map")

    async def _read_map(self) -> None:
        """Reads the map of slots from a master, or from a host of the url if no master answers."""
        try:
            if not await self._read_map_from(self._masters):
                await self._read_map_from(self._seeds)
        finally:
            self._read_again_s = self._clock() + RETRY_S
            self._reading = None

    async def _read_map_from(self, addresses: Collection[_Address]) -> bool:
        """Asks all addresses at once and uses the first map, since one may hang. False: none has a map."""
        asking = [asyncio.create_task(self._ask_map(address)) for address in addresses]
        try:
            for answered in asyncio.as_completed(asking):
                owners = await answered
                if owners:
                    self._use_map(owners)
                    return True
        finally:
            for task in asking:
                task.cancel()
        return False

    async def _ask_map(self, address: _Address) -> list[_Address | None]:
        """The master of each slot; empty: this host does not answer, or has no map."""
        try:
            return _parse_map(await self._master(address).ask("CLUSTER", "SLOTS"), address[0])
        except StoreUnavailable:
            return []
        # Reading another program's words may raise anything.
        except Exception:
            self._masters[address].mark_unavailable("a map that is none")
            return []

    def _use_map(self, owners: list[_Address | None]) -> None:
        """Keeps the map, and closes the clients of masters without a slot. A redirected script may be on its
        way to one of them, so one is closed only if the map before had no slot for it either, or if this is
        the first map."""
        unused = self._masters.keys() - set(owners)
        for address in unused & self._unused if self._owners else unused:
            self._end_later(self._masters.pop(address).close())
        self._unused = unused
        missing = owners.count(None)
        if missing and missing != self._owners.count(None):
            log.warning(
                "valkey has slots without a master; their limits and answers are per process", slots=missing
            )
        self._owners = owners

    async def _send(self, script: Script, keys: Sequence[bytes], args: Sequence[Argument]) -> None:
        try:
            await self.run(script, keys, args)
        except StoreUnavailable:
            return

    def _end_later(self, work: Coroutine[object, object, None]) -> None:
        task = start_detached_task(work, "valkey")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


SharedStore = Valkey | ValkeyCluster


def open_shared_store(
    url: str, clock: Callable[[], float] = time.monotonic, bound_s: float = BOUND_S
) -> SharedStore:
    """The store of a url: a cluster if it has the option ``cluster=true``. Raises BadUrl. Connects with the
    first command."""
    before, _, query = url.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    wanted = [value for name, value in options if name == "cluster"]
    if not wanted:
        return Valkey(url, clock, bound_s)
    if wanted not in (["true"], ["false"]):
        raise BadUrl(_EXAMPLE)
    rest = f"{before}?{urlencode([option for option in options if option[0] != 'cluster'])}"
    return ValkeyCluster(rest, clock, bound_s) if wanted == ["true"] else Valkey(rest, clock, bound_s)


def _split_hosts(url: str) -> tuple[str, str, str]:
    """The scheme, the hosts (with user and password before them), and the rest. Raises ValueError."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ValueError("there is no scheme")
    end = min((place for mark in "/?#" if (place := rest.find(mark)) >= 0), default=len(rest))
    return scheme, rest[:end], rest[end:]


def _parse_address(host: str) -> _Address:
    """A host and its port, ``_DEFAULT_PORT`` if there is none. Raises ValueError."""
    parts = urlsplit(f"//{host}")
    if not parts.hostname:
        raise ValueError("there is no host")
    return parts.hostname, parts.port or _DEFAULT_PORT


def _find_slot(keys: Sequence[bytes]) -> int:
    slots = {key_slot(key) for key in keys}
    if len(slots) != 1:
        raise ValueError("the keys of a script have one slot")
    return slots.pop()


def _parse_map(reply: object, host: str) -> list[_Address | None]:
    """The master of each slot; None: not known. ``host``: who replied. Raises anything if it is no map."""
    owners: list[_Address | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
    ranges = parse_cluster_slots(reply, current_host=host)
    if not ranges:
        raise ValueError("it knows no slots")
    for (first, last), nodes in ranges.items():
        name, port = nodes["primary"]
        if not 0 <= first <= last < REDIS_CLUSTER_HASH_SLOTS or not 0 < port < 65_536:
            raise ValueError("not a range of slots")
        # A host that this master does not know yet is "?".
        owners[first : last + 1] = [None if name == "?" else (name, port)] * (last - first + 1)
    return owners
