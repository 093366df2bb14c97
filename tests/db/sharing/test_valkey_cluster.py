"""A cluster whose masters go, hang, move slots and are replaced: counts stay exact where a master answers."""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.crc import key_slot
from structlog.testing import capture_logs

from roundtrip.api.admission.minute_limits import Ticket
from roundtrip.api.sharing.valkey import BadUrl, Script, StoreUnavailable, Valkey
from roundtrip.api.sharing.valkey_cluster import ValkeyCluster, open_shared_store
from support import answering
from support.shared_minutes import PATIENT_S, CountingProcesses, taken
from support.valkey_clusters import StoreCluster, ask, client_of, cluster, wait_until
from support.valkeys import FAULTS, Store, pretending

SUM = Script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
LIMIT = 100_000
"""More than a test calls."""
BOTH = Script("return redis.call('EXISTS', KEYS[1], KEYS[2])")


@pytest.fixture
def own_cluster() -> Iterator[StoreCluster]:
    """With a node that has no slots."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name), spare=1) as found:
        yield found


@pytest.fixture
async def house(valkey_cluster: StoreCluster) -> AsyncIterator[CountingProcesses]:
    with client_of(valkey_cluster.url) as client:
        client.flushall()
    found = CountingProcesses(valkey_cluster.url)
    yield found
    await found.close()


def key_of_minute(caller: str) -> bytes:
    """Under which a store counts a caller."""
    return f"roundtrip::minute:{caller}".encode()


def callers_of(stores: StoreCluster, master: Store) -> Iterator[str]:
    """Whom this master counts."""
    names = map(str, itertools.count())
    return (name for name in names if stores.find_master(key_of_minute(name)) is master)


def as_cluster(store: object) -> ValkeyCluster:
    assert isinstance(store, ValkeyCluster)
    return store


async def until_read(store: object) -> None:
    """Until no map is being read."""
    async with asyncio.timeout(PATIENT_S):
        while as_cluster(store)._reading is not None:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def left(house: CountingProcesses, at: int, caller: str, limit: int = 5) -> int | None:
    """What is left of the minute after a call of this process; None: refused."""
    came = await taken(house.minutes[at], caller, limit)
    return came.remaining if isinstance(came, Ticket) else None


async def test_each_master_has_one_connection_and_gets_a_group_in_one_trip(
    valkey_cluster: StoreCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[Valkey] = []
    execute = Valkey._execute

    async def execute_counted(self: Valkey, group: list) -> list[object]:  # type: ignore[type-arg]
        groups.append(self)
        return await execute(self, group)

    # The name of a host, instead of the address that the map has.
    url = f"redis://localhost:{valkey_cluster.nodes[0].port}/?client_name=us&cluster=true"
    store = as_cluster(open_shared_store(url, bound_s=PATIENT_S))
    keys = [b"%d" % number for number in range(90)]
    with client_of(valkey_cluster.url) as client:
        client.flushall()
    await asyncio.gather(*(store.run(SUM, (key,), (1,)) for key in keys))
    monkeypatch.setattr(Valkey, "_execute", execute_counted)
    assert await asyncio.gather(*(store.run(SUM, (key,), (n,)) for n, key in enumerate(keys))) == [
        n + 1 for n in range(90)
    ]
    assert len(groups) == len(set(groups)) == 3
    assert [ask(node, "CLIENT LIST").count(b"name=us") for node in valkey_cluster.nodes] == [1, 1, 1]
    await store.close()


async def test_keys_of_several_slots_are_an_error_of_the_program(valkey_cluster: StoreCluster) -> None:
    store = open_shared_store(valkey_cluster.url, bound_s=PATIENT_S)
    assert await store.run(BOTH, (b"{k}a", b"{k}b"), ()) == 0
    with pytest.raises(ValueError, match="one slot"):
        await store.run(BOTH, (b"a", b"b"), ())
    assert not store.is_gone()
    await store.close()


async def test_what_was_told_is_done_before_it_closes(valkey_cluster: StoreCluster) -> None:
    store = open_shared_store(valkey_cluster.url, bound_s=PATIENT_S)
    with client_of(valkey_cluster.url) as client:
        client.flushall()
        # The first script of all waits for the map.
        store.send_script(SUM, (b"k",), (7,))
        await store.close()
        assert client.get("k") == b"7"
    with pytest.raises(StoreUnavailable):
        await store.run(SUM, (b"k",), (1,))
    store.send_script(SUM, (b"k",), (7,))
    assert store.is_gone()


async def test_one_of_the_hosts_of_the_url_is_enough(valkey_cluster: StoreCluster) -> None:
    async with pretending(b"") as dead:
        url = f"{dead.url},{valkey_cluster.hosts()[2]}/?cluster=true"
        store = open_shared_store(url, bound_s=PATIENT_S)
        assert await store.run(Script("return 1"), (b"k",), ()) == 1
        await store.close()


async def test_a_slot_is_moved_while_all_of_its_callers_call(
    valkey_cluster: StoreCluster, house: CountingProcesses
) -> None:
    # Two callers of one slot, of whom one comes while the slot is between two masters.
    old, slot = "0", key_slot(key_of_minute("0"))
    new = next(name for name in map(str, itertools.count(1)) if key_slot(key_of_minute(name)) == slot)
    source = valkey_cluster.find_master(key_of_minute(old))
    target = next(node for node in valkey_cluster.nodes if node is not source)
    for _ in range(3):
        house.process()
    found: dict[str, list[int | None]] = {old: [], new: []}

    async def call(*callers: str) -> None:
        for caller in callers:
            found[caller] += await asyncio.gather(
                *(left(house, at, caller, LIMIT) for _ in range(10) for at in range(3))
            )

    async def call_during(step: asyncio.Future[None], *callers: str) -> None:
        while not step.done():
            await call(*callers)
        await step
        await call(*callers)

    def run_step(step: object, *args: object) -> asyncio.Future[None]:
        return asyncio.ensure_future(asyncio.to_thread(step, *args))  # type: ignore[arg-type]

    await call(old)
    await call_during(run_step(valkey_cluster.begin_move, slot, source, target), old)
    await call(old, new)
    await call_during(run_step(valkey_cluster.move_keys, slot, source, target), old, new)
    await call_during(run_step(valkey_cluster.end_move, slot, target), old, new)
    for caller, came in found.items():
        assert sorted(one or 0 for one in came) == list(range(LIMIT - len(came), LIMIT)), caller
    assert not any(store.is_gone() for store in house.stores)
    assert as_cluster(house.stores[0])._owners[slot] == ("127.0.0.1", target.port)
    valkey_cluster.move(slot, target, source)


async def test_while_a_slot_is_on_two_masters_everybody_has_an_answer_and_afterwards_one_run(
    valkey_cluster: StoreCluster,
) -> None:
    house, runs = answering.SharingProcesses(valkey_cluster.url), answering.GatedRuns()
    with house.client() as client:
        client.flushall()
    one, other = house.process(), house.process()
    key = one.others.store_key("lease", "k")  # type: ignore[union-attr]
    source = valkey_cluster.find_master(key.partition(b"{")[2].partition(b"}")[0])
    target = next(node for node in valkey_cluster.nodes if node is not source)
    slot = key_slot(key)
    valkey_cluster.begin_move(slot, source, target)
    async with asyncio.timeout(PATIENT_S):
        came = await asyncio.gather(*(process.get("k", runs) for process in (one, other) for _ in range(5)))
    assert runs.count == len({shared.body for shared, _ in came}) == 2
    assert not any(store.is_gone() for store in house.stores)
    valkey_cluster.end_move(slot, target)
    third, fourth = house.process(), house.process()
    assert [(await process.get("k", runs))[1] for process in (third, fourth)] == [False, True]
    assert runs.count == 3
    await house.close()
    with house.client() as client:
        client.flushall()
    valkey_cluster.move(slot, target, source)


async def test_a_master_that_is_killed_costs_its_own_callers_only(own_cluster: StoreCluster) -> None:
    house = CountingProcesses(own_cluster.url)
    one, other = house.process(), house.process()
    dead, alive = own_cluster.nodes[:2]
    lost, kept = next(callers_of(own_cluster, dead)), next(callers_of(own_cluster, alive))
    for caller in (lost, kept):
        assert [await left(house, at, caller) for at in (0, 1)] == [4, 3]
    with capture_logs() as rows:
        dead.kill()
        # Each process has counted one of them.
        assert [await left(house, at, lost) for at in (0, 1)] == [3, 3]
        for store in house.stores:
            assert store.is_gone(key_of_minute(lost))
            assert not store.is_gone(key_of_minute(kept))
            assert store.is_gone()
        assert [await left(house, at, kept) for at in (0, 1, 0, 1)] == [2, 1, 0, None]
        assert [await left(house, 0, lost) for _ in range(4)] == [2, 1, 0, None]
        dead.start()
        wait_until(lambda: b"cluster_state:ok" in ask(dead, "CLUSTER INFO"))
        house.seconds += 1.0
        house.wall.ms += 60_000
        # It forgot all, which gives no process more than its own limit.
        assert [await left(house, at, lost) for at in (0, 1, 0, 1, 0, 1)] == [4, 3, 2, 1, 0, None]
    assert not one.valkey.is_gone()
    assert not other.valkey.is_gone()
    node = f"127.0.0.1:{dead.port}"
    assert sorted((line["event"].partition(";")[0], line["node"]) for line in rows) == [
        ("valkey failed", node),
        ("valkey failed", node),
        ("valkey works again", node),
        ("valkey works again", node),
    ]
    await house.close()


async def test_a_master_that_hangs_holds_up_its_own_callers_only(
    valkey_cluster: StoreCluster, house: CountingProcesses
) -> None:
    for _ in range(2):
        house.process()
    stuck, fine = valkey_cluster.nodes[:2]
    held, free = next(callers_of(valkey_cluster, stuck)), next(callers_of(valkey_cluster, fine))
    assert [await left(house, at, caller) for caller in (held, free) for at in (0, 1)] == [4, 3, 4, 3]
    with stuck.hanging():
        waiting = asyncio.create_task(left(house, 0, held))
        await asyncio.sleep(0)
        assert [await left(house, at, free) for at in (0, 1, 0, 1)] == [2, 1, 0, None]
        assert not waiting.done()
    assert await waiting == 2
    # Beyond its bound it is gone, for its callers.
    as_cluster(house.stores[0])._masters["127.0.0.1", stuck.port].bound_s = 0.05
    with stuck.hanging():
        assert await left(house, 0, held) == 2
    assert house.stores[0].is_gone(key_of_minute(held))
    assert await left(house, 0, free) is None
    assert not house.stores[0].is_gone(key_of_minute(free))


async def test_a_replica_is_promoted_and_counts_on(own_cluster: StoreCluster) -> None:
    master, replica = own_cluster.nodes[0], own_cluster.nodes[3]
    own_cluster.replicate(master, replica)
    house = CountingProcesses(own_cluster.url)
    for _ in range(2):
        house.process()
    caller, other = (next(callers_of(own_cluster, node)) for node in own_cluster.nodes[:2])
    assert [await left(house, at, one) for one in (caller, other) for at in (0, 1)] == [4, 3, 4, 3]
    offset = "master_repl_offset"
    wait_until(lambda: ask(replica, "INFO")[offset] == ask(master, "INFO")[offset])
    master.kill()
    own_cluster.promote(replica)
    # A second after the first map: the failure makes each process read it again.
    house.seconds += 1.0
    assert [await left(house, at, caller) for at in (0, 1)] == [3, 3]
    for store in house.stores:
        await until_read(store)
        assert not store.is_gone(key_of_minute(caller))
    assert [await left(house, at, caller) for at in (0, 1, 0, 1)] == [2, 1, 0, None]
    assert [await left(house, at, other) for at in (0, 1, 0, 1)] == [2, 1, 0, None]
    await house.close()


async def test_without_a_map_nobody_waits_twice_in_a_second() -> None:
    async with pretending(b"") as pretender:
        house = CountingProcesses(f"{pretender.url}/?cluster=true")
        store = house.process().valkey
        for second in range(1, 4):
            found = await asyncio.gather(*(left(house, 0, str(caller), 9) for caller in range(20)))
            assert found == [9 - second] * 20
            assert store.is_gone(b"k")
            with pytest.raises(StoreUnavailable):
                # Not even a turn of the loop.
                store.run(SUM, (b"k",), (1,)).send(None)
            assert pretender.connections == second
            house.seconds += 1.0
            assert not store.is_gone(b"k")
        await house.close()


RANGE = b"*1\r\n*3\r\n:%d\r\n:%d\r\n*2\r\n%b\r\n:%d\r\n"
REPLIES = FAULTS | {
    "no slots": b"*0\r\n",
    "too many slots": RANGE % (0, 16_384, b"$9\r\n127.0.0.1", 1),
    "no port": RANGE % (0, 16_383, b"$9\r\n127.0.0.1", 0),
    "not its host": RANGE % (0, 16_383, b"$1\r\n?", 1),
    "nobody there": RANGE % (0, 16_383, b"$-1", 1),
    "no cluster": b"-ERR This instance has cluster support disabled\r\n",
    "down": b"-CLUSTERDOWN Hash slot not served\r\n",
    "elsewhere": b"-MOVED 1 127.0.0.1:1\r\n",
    "nowhere": b"-MOVED somewhere\r\n",
    "once elsewhere": b"-ASK 1 127.0.0.1:1\r\n",
    "not now": b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
}


@pytest.mark.parametrize("what", REPLIES)
async def test_whatever_is_there_instead_nobody_fails_and_all_are_limited(what: str) -> None:
    async with pretending(REPLIES[what]) as pretender:
        house = CountingProcesses(f"{pretender.url}/?cluster=true", bound_s=0.1)
        house.process()
        assert [await left(house, 0, "a", 3) for _ in range(4)] == [2, 1, 0, None]
        assert house.stores[0].is_gone(b"k")
        await house.close()


@pytest.mark.parametrize(
    ("word", "times"),
    [
        ("MOVED 1 :{}", 8),
        ("ASK 1 :{}", 8),
        ("MOVED 1 [:1", 1),
        ("ASK 1 127.0.0.1:99999", 1),
        ("TRYAGAIN of two masters", 8),
    ],
)
async def test_who_is_sent_round_in_circles_or_nowhere_gives_up(word: str, times: int) -> None:
    asked, maps = 0, 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked, maps
        while data := await reader.read(65_536):
            count = data.count(b"\r\nEVAL")
            asked += count
            maps += data.count(b"SLOTS")
            redirection = f"-{word}\r\n".format(port).encode()
            writer.write(
                map_ if b"SLOTS" in data else data.count(b"\r\nASKING") * b"+OK\r\n" + count * redirection
            )
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    map_ = RANGE % (0, 16_383, b"$-1", port)
    store = open_shared_store(f"redis://127.0.0.1:{port}/?cluster=true", lambda: 0.0, PATIENT_S)
    async with server:
        with pytest.raises(StoreUnavailable):
            await store.run(SUM, (b"k",), (1,))
        await until_read(store)
        # The clock stands still, and a second has one map.
        assert (asked, maps) == (times, 1)
        # Whoever redirects answers.
        assert not store.is_gone()
        await store.close()


async def test_a_connection_to_a_master_without_slots_is_closed_with_the_second_map() -> None:
    """A redirected script may be on its way to it when the first one comes."""
    store = as_cluster(open_shared_store("redis://127.0.0.1:1,127.0.0.1:2/?cluster=true"))
    for port, kept in ((1, {1}), (3, {1, 3}), (3, {3}), (1, {1, 3}), (3, {1, 3}), (3, {3})):
        store._use_map([("127.0.0.1", port)] * 16_384)
        store._master(("127.0.0.1", port))
        assert {known for _, known in store._masters} == kept
    await store.close()


async def test_slots_without_a_master_are_logged_once() -> None:
    store = as_cluster(open_shared_store("redis://127.0.0.1:1/?cluster=true"))
    with capture_logs() as rows:
        for missing in (0, 3, 3, 0, 3):
            owner = ("127.0.0.1", 1)
            store._use_map([*[None] * missing, *[owner] * (16_384 - missing)])
    assert [line["slots"] for line in rows] == [3, 3]
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret@host:port?cluster=true",
        "redis://:secret@host:1,:2?cluster=true",
        "redis://:secret@?cluster=true",
        "redis://:secret@host/1?cluster=true",
        "redis://:secret@host?db=1&cluster=true",
        "redis://:secret@host?cluster=maybe",
        "redis://:secret@host?cluster=true&cluster=true",
        "redis://:secret@host?cluster=true&nosuch=1",
        "rediss://:secret@host?cluster=true&ssl_ca_certs=/no/such/file",
        "unix://:secret@/socket?cluster=true",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_at_once_and_not_shown(url: str) -> None:
    with pytest.raises(BadUrl) as caught:
        open_shared_store(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("redis://host/0?cluster=true", [("host", 6379)]),
        ("rediss://us:secret@one:1,[::1]:2/?ssl_cert_reqs=none&cluster=true", [("one", 1), ("::1", 2)]),
    ],
)
def test_a_url_of_a_cluster_asks_nobody_yet(url: str, hosts: list[tuple[str, int]]) -> None:
    store = as_cluster(open_shared_store(url))
    assert list(store._masters) == hosts
    assert not store.is_gone()
    assert not store.is_gone(b"k")


@pytest.mark.parametrize("url", ["redis://host", "redis://host?cluster=false", "unix:///socket?db=1"])
def test_a_url_without_a_cluster_is_one_store(url: str) -> None:
    assert isinstance(open_shared_store(url), Valkey)
