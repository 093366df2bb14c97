"""Minutes that several processes count together, through a real store, beside the same in memory."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundtrip.api.admission.minute_limits import WINDOW_MS, MinuteLimits, Ticket
from roundtrip.api.admission.shared_minute_limits import SharedMinutes
from roundtrip.domain.base.errors import LimitReached
from support.counting import Wall
from support.shared_minutes import CountingProcesses, Told, plain, refused, taken
from support.valkey_clusters import StoreCluster, client_of
from support.valkeys import FAULTS, Store, pretending

PATIENT_S = 10.0


@pytest.fixture
async def house(shared_url: str) -> AsyncIterator[CountingProcesses]:
    found = CountingProcesses(shared_url)
    yield found
    await found.close()


def in_memory(memory: MinuteLimits, caller: str, limit: int) -> Told:
    try:
        return memory.take(caller, limit)
    except LimitReached as error:
        return refused(error)


TURNS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 500, 20_000, 59_999, 60_000]),
        st.integers(0, 2),
        st.sampled_from("ab"),
        st.integers(1, 4),
        st.none() | st.integers(0, 30),
    ),
    max_size=40,
)
"""How long nothing happens, which process is asked, who asks, its limit, and which ticket is handed back
instead."""


async def same_as_in_memory(url: str, turns: list[tuple[int, int, str, int, int | None]], count: int) -> None:
    with client_of(url) as client:
        client.flushall()
    house = CountingProcesses(url)
    processes = [house.process() for _ in range(count)]
    memory = MinuteLimits(house.wall)
    tickets: list[tuple[SharedMinutes, Ticket, Ticket]] = []
    for pause, at, caller, limit, back in turns:
        house.wall.ms += pause
        if count > 1:
            # Who has less than others of the same name is a question of one process alone.
            limit = 3
        minutes = processes[at % count]
        if back is not None:
            if back < len(tickets):
                holder, ticket, own = tickets.pop(back)
                given, expected_back = plain(holder.refund(ticket)), memory.refund(own)
                # What a call of a minute that is over leaves is nothing anybody asks.
                assert given == expected_back or own.taken_ms <= house.wall.ms - WINDOW_MS
                await holder.settle()
            continue
        came = await taken(minutes, caller, limit)
        expected = in_memory(memory, caller, limit)
        if isinstance(came, Ticket) and isinstance(expected, Ticket):
            tickets.append((minutes, came, expected))
            came = plain(came)
        assert came == expected
    await house.close()


@given(TURNS)
async def test_one_process_counts_as_it_would_in_memory(valkey_store: Store, turns: list) -> None:  # type: ignore[type-arg]
    await same_as_in_memory(valkey_store.url, turns, 1)


@given(TURNS)
async def test_three_processes_count_as_one_would_in_memory(valkey_store: Store, turns: list) -> None:  # type: ignore[type-arg]
    await same_as_in_memory(valkey_store.url, turns, 3)


@settings(max_examples=20)
@given(TURNS, st.sampled_from([1, 3]))
async def test_processes_count_over_a_cluster_as_one_would_in_memory(
    valkey_cluster: StoreCluster,
    turns: list,  # type: ignore[type-arg]
    count: int,
) -> None:
    await same_as_in_memory(valkey_cluster.url, turns, count)


async def test_a_clock_put_back_forgets_what_lies_in_the_future_and_nothing_else(
    house: CountingProcesses,
) -> None:
    minutes, memory = house.process(), MinuteLimits(house.wall)
    for pause, let_in in ((0, True), (-300, True), (-59_000, False), (-701, True), (0, True), (0, False)):
        house.wall.ms += pause
        came = await taken(minutes, "a", 2)
        assert (plain(came) if isinstance(came, Ticket) else came) == in_memory(memory, "a", 2)
        assert isinstance(came, Ticket) is let_in


async def test_of_many_at_once_exactly_so_many_are_let_in(house: CountingProcesses) -> None:
    """By the store's clock, and whatever those of the processes say."""
    processes = [house.process(own_clock=False) for _ in range(3)]
    processes[1].limits.now_ms = Wall(house.wall.ms - 10**9)
    came = await asyncio.gather(*(taken(one, "a", 10) for _ in range(100) for one in processes))
    let_in = [one for one in came if isinstance(one, Ticket)]
    assert sorted(one.remaining for one in let_in) == list(range(10))
    assert all(one[0] == 60 for one in came if isinstance(one, tuple))


async def test_two_calls_of_one_millisecond_are_two(house: CountingProcesses) -> None:
    minutes = house.process()
    first, second = [await minutes.take("a", 2) for _ in range(2)]
    assert first.taken_ms == second.taken_ms
    minutes.refund(first)
    await minutes.settle()
    other = house.process()
    assert (await other.take("a", 2)).remaining == 0
    assert isinstance(await taken(other, "a", 2), tuple)


async def test_whose_limit_was_lowered_waits_until_enough_are_over_for_all(house: CountingProcesses) -> None:
    one, other = house.process(), house.process()
    for _ in range(4):
        await one.take("a", 4)
        house.wall.ms += 1_000
    # The third of four has to be over, and it was taken two seconds ago.
    came = await taken(other, "a", 2)
    assert isinstance(came, tuple)
    assert came[0] == 58


async def test_who_is_refused_elsewhere_has_no_place_here(house: CountingProcesses) -> None:
    full, other = house.process(), house.process()
    await full.take("a", 1)
    for _ in range(3):
        assert isinstance(await taken(other, "a", 1), tuple)
    assert other.limits.take("a", 1).remaining == 0


async def test_what_this_process_counted_itself_is_refused_without_asking(house: CountingProcesses) -> None:
    minutes = house.process()
    await minutes.take("a", 1)
    with client_of(house.url) as client:
        client.flushall()
    assert isinstance(await taken(minutes, "a", 1), tuple)


async def test_what_is_kept_goes_by_itself(house: CountingProcesses) -> None:
    await house.process(own_clock=False).take("address:203.0.113.7", 3)
    with client_of(house.url) as client:
        keys = list(client.scan_iter())
        assert keys == [b"roundtrip::minute:address:203.0.113.7"]
        assert 60_000 < int(client.pttl(keys[0])) <= 61_000


@pytest.mark.parametrize("wrong", ["SET {} text", "HSET {} a b", "RPUSH {} text", "RPUSH {} nan"])
async def test_a_key_that_holds_something_else_is_nobodys_fault(house: CountingProcesses, wrong: str) -> None:
    minutes = house.process()
    first = await minutes.take("a", 3)
    with client_of(house.url) as client:
        client.delete("roundtrip::minute:a")
        client.execute_command(*wrong.format("roundtrip::minute:a").split())
        minutes.refund(first)
        await minutes.settle()
        came = await asyncio.gather(*(minutes.take(caller, 3) for caller in "aab"))
        assert [one.remaining for one in came] == [2, 1, 2]
        assert client.llen("roundtrip::minute:a") == 2
    assert not minutes.valkey.is_gone()


async def test_what_is_under_way_is_not_waited_for_for_ever(house: CountingProcesses) -> None:
    minutes = house.process()

    async def never(*_: object) -> object:
        await asyncio.Event().wait()
        raise AssertionError

    minutes.valkey.run = never  # type: ignore[assignment, method-assign]
    asking = asyncio.create_task(minutes.take("a", 3))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENT_S):
        await minutes.settle(within_s=0.0)
    assert not asking.done()
    asking.cancel()
    (queue,) = minutes._queues.values()
    assert queue.flushing is not None
    queue.flushing.cancel()


async def test_who_goes_away_before_it_is_let_in_has_made_no_call(house: CountingProcesses) -> None:
    minutes = house.process()
    asking = asyncio.create_task(minutes.take("a", 1))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    while minutes._queues:
        await minutes.settle()
        await asyncio.sleep(0)
    assert (await minutes.take("a", 1)).remaining == 0


async def test_while_the_store_is_gone_each_process_counts_alone(own_valkey: Store) -> None:
    house = CountingProcesses(own_valkey.url)
    one, two = house.process(), house.process()
    first = await one.take("a", 3)
    own_valkey.kill()
    for minutes, left in ((one, [1, 0]), (two, [2, 1, 0])):
        assert [(await minutes.take("a", 3)).remaining for _ in left] == left
        assert isinstance(await taken(minutes, "a", 3), tuple)
    # What was counted by both is handed back here; the store is not there to hear it.
    assert one.refund(first).remaining == 3
    assert (await one.take("a", 3)).remaining == 0
    own_valkey.start()
    house.seconds += 1.0
    assert isinstance(await taken(two, "a", 3), tuple)
    # It forgot all, which gives no process more than its own limit.
    house.wall.ms += 60_000
    assert [(await minutes.take("a", 3)).remaining for minutes in (one, two, one)] == [2, 1, 0]
    assert isinstance(await taken(two, "a", 3), tuple)
    await house.close()


async def test_a_store_that_hangs_is_as_good_as_none(own_valkey: Store) -> None:
    house = CountingProcesses(own_valkey.url)
    minutes = house.process()
    await minutes.take("a", 20)
    house.hurry()
    with own_valkey.hanging():
        came = await asyncio.gather(*(taken(minutes, "a", 20) for _ in range(30)))
    assert sorted(one.remaining for one in came if isinstance(one, Ticket)) == list(range(19))
    await house.close()


@pytest.mark.parametrize("what", FAULTS)
async def test_whatever_the_store_answers_nobody_fails_and_all_are_limited(what: str) -> None:
    async with pretending(FAULTS[what]) as pretender:
        house = CountingProcesses(pretender.url, bound_s=0.1)
        minutes = house.process()
        came = [await taken(minutes, "a", 3) for _ in range(4)]
        assert [one.remaining for one in came if isinstance(one, Ticket)] == [2, 1, 0]
        await house.close()


async def test_a_ticket_can_be_replaced_like_any_other(house: CountingProcesses) -> None:
    minutes = house.process()
    ticket = msgspec.structs.replace(await minutes.take("a", 1), limit=1)
    minutes.refund(ticket)
    await minutes.settle()
    assert (await house.process().take("a", 1)).remaining == 0
