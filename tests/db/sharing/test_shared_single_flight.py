"""One run, and one answer, for whoever asks any of several processes."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
import pytest

from roundtrip.api.sharing.shared_single_flight import (
    MAX_BYTES,
    FlightTimes,
    RunFailedElsewhere,
    SharedInValkey,
)
from roundtrip.api.sharing.single_flight import SharedAnswer, TookTooLong
from roundtrip.domain.base.errors import CallerFault, NodeFault, RoundtripError, ServiceFull
from support.answering import LONG_MS, PATIENT_S, GatedRuns, SharingProcesses, until_waiting
from support.clocks import Clock


@pytest.fixture
async def processes(shared_url: str) -> AsyncIterator[SharingProcesses]:
    started = SharingProcesses(shared_url)
    yield started
    await started.close()


async def test_two_hundred_who_ask_two_processes_at_once_cause_one_run(processes: SharingProcesses) -> None:
    runs = GatedRuns()
    both = [processes.process(), processes.process()]
    asking = [asyncio.create_task(one.get("k", runs)) for _ in range(100) for one in both]
    came = await asyncio.gather(*asking)
    assert {shared for shared, _ in came} == {SharedAnswer(b"body 1", LONG_MS, True)}
    assert [hit for _, hit in came].count(False) == 1
    assert runs.count == 1


async def test_what_one_process_made_another_shares_for_the_rest_of_its_time(
    processes: SharingProcesses,
) -> None:
    one, other, runs = processes.process(), processes.process(), GatedRuns()
    await one.get("k", runs)
    with processes.client() as client:
        (key,) = client.scan_iter("roundtrip:answer:*")
        client.pexpire(key, 20_000)
        assert await other.get("k", runs) == (SharedAnswer(b"body 1", LONG_MS, True), True)
        assert 19 < other._answers["k"][0] - time.monotonic() <= 20
        client.flushall()
    # Kept here: nobody is asked.
    assert other.find_fresh("k") is not None
    assert (await other.get("k", runs))[1] is True
    assert runs.count == 1


async def test_who_waited_shares_it_as_long_as_who_ran(processes: SharingProcesses) -> None:
    one, other, runs = processes.process(), processes.process(), GatedRuns()
    asking = [await runs.begin(one)]
    asking.append(asyncio.create_task(other.get("k", runs)))
    await until_waiting(other)
    runs.gate.set()
    assert [hit for _, hit in await asyncio.gather(*asking)] == [False, True]
    assert abs(one._answers["k"][0] - other._answers["k"][0]) < PATIENT_S
    assert runs.count == 1


@pytest.mark.parametrize("counted", [True, False])
async def test_an_answer_with_ttl_0_is_for_those_who_waited_and_nobody_later(
    processes: SharingProcesses, counted: bool
) -> None:
    one, other, runs = processes.process(), processes.process(), GatedRuns(ttl_ms=0, counted=counted)
    for round_ in (1, 2):
        asking = [await runs.begin(one)]
        asking.append(asyncio.create_task(other.get("k", runs)))
        await until_waiting(other)
        runs.gate.set()
        # The second time the outcome of the first is still there, and is not taken for that of the second.
        expected = SharedAnswer(b"body %d" % round_, 0, counted)
        assert await asyncio.gather(*asking) == [(expected, False), (expected, True)]
    assert runs.count == 2


@pytest.mark.parametrize(
    "fault",
    [
        NodeFault("it took too long"),
        TookTooLong(),
        CallerFault("not_a_token", "There is no token at this address."),
    ],
    ids=lambda fault: fault.code,
)
async def test_a_failure_reaches_all_who_wait_as_what_it_is(
    processes: SharingProcesses, fault: RoundtripError
) -> None:
    one, other, runs = processes.process(), processes.process(), GatedRuns(fault=fault)
    asking = [await runs.begin(one)]
    asking += [asyncio.create_task(other.get("k", runs)) for _ in range(3)]
    await until_waiting(other)
    runs.gate.set()
    came = await asyncio.gather(*asking, return_exceptions=True)
    assert {
        (found.code, found.message, found.retry_after_s, found.status)
        for found in came
        if isinstance(found, RoundtripError)
    } == {(fault.code, fault.message, fault.retry_after_s, fault.status)}
    assert runs.count == 1
    runs.fault = None
    assert (await other.get("k", runs))[0].body == b"body 2"


async def test_a_fault_of_ours_tells_nothing_of_itself_to_others(processes: SharingProcesses) -> None:
    one, other, runs = processes.process(), processes.process(), GatedRuns(fault=KeyError("secret"))
    asking = [await runs.begin(one)]
    asking.append(asyncio.create_task(other.get("k", runs)))
    await until_waiting(other)
    runs.gate.set()
    came = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(found) for found in came] == [KeyError, RunFailedElsewhere]
    with processes.client() as client:
        assert all(b"secret" not in bytes(client.get(key)) for key in client.scan_iter())


async def test_an_unknown_code_is_a_fault_of_ours(processes: SharingProcesses) -> None:
    other, runs = processes.process(), GatedRuns()
    others = other.others
    assert isinstance(others, SharedInValkey)
    with processes.client() as client:
        client.set(others.store_key("lease", "k"), "them", px=LONG_MS)
        failed = msgspec.msgpack.encode(["failed", "made_up", "words", None])
        client.set(others.store_key("outcome", "k", b"them"), failed, px=LONG_MS)
    with pytest.raises(RunFailedElsewhere):
        await other.get("k", runs)
    assert runs.count == 0


async def test_who_ends_without_a_word_is_replaced_by_one_of_those_who_wait(shared_url: str) -> None:
    processes = SharingProcesses(shared_url, spans=FlightTimes(lease_ms=200))
    both, runs = [processes.process() for _ in range(2)], GatedRuns()
    others = both[0].others
    assert isinstance(others, SharedInValkey)
    with processes.client() as client:
        client.set(others.store_key("lease", "k"), "them", px=200)
    async with asyncio.timeout(PATIENT_S):
        came = await asyncio.gather(*(one.get("k", runs) for _ in range(20) for one in both))
    assert {shared.body for shared, _ in came} == {b"body 1"}
    assert runs.count == 1
    await processes.close()


async def test_a_lease_is_renewed_while_its_run_goes_on(shared_url: str) -> None:
    processes = SharingProcesses(shared_url, spans=FlightTimes(lease_ms=500, renew_s=0.02))
    one, other, runs = processes.process(), processes.process(), GatedRuns()
    others = one.others
    assert isinstance(others, SharedInValkey)
    asking = [await runs.begin(one)]
    with processes.client() as client:
        lease = others.store_key("lease", "k")
        async with asyncio.timeout(PATIENT_S):
            for _ in range(5):
                # Cut to 450 ms; a renewal sets it back to 500.
                client.pexpire(lease, 450)
                while int(client.pttl(lease)) <= 450:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
    asking.append(asyncio.create_task(other.get("k", runs)))
    await until_waiting(other)
    runs.gate.set()
    assert [hit for _, hit in await asyncio.gather(*asking)] == [False, True]
    assert runs.count == 1
    await processes.close()


async def test_who_lost_its_lease_takes_nothing_from_who_has_it(processes: SharingProcesses) -> None:
    one, other = processes.process(), processes.process()
    others = one.others
    assert isinstance(others, SharedInValkey)
    old, new = GatedRuns(body=b"old"), GatedRuns(body=b"new")
    old.gate.clear()
    new.gate.clear()
    first = asyncio.create_task(one.get("k", old))
    await old.began.wait()
    with processes.client() as client:
        client.delete(others.store_key("lease", "k"))
        second = asyncio.create_task(other.get("k", new))
        await new.began.wait()
        held = client.get(others.store_key("lease", "k"))
        old.gate.set()
        assert (await first)[0].body == b"old 1"
        assert client.get(others.store_key("lease", "k")) == held
        assert client.exists(others.store_key("answer", "k")) == 0
    assert one.find_fresh("k") is None
    new.gate.set()
    await second
    assert (await one.get("k", old))[0].body == b"new 1"


@pytest.mark.parametrize(
    "kept",
    [b"", b"garbage", b"\x93\xa4made\xc4\x01x\x01", b"\x91" * 5_000],
    ids=["empty", "garbage", "a field is missing", "nested too deeply"],
)
async def test_a_stored_answer_that_cannot_be_read_is_ignored(
    processes: SharingProcesses, kept: bytes
) -> None:
    one, runs = processes.process(), GatedRuns()
    others = one.others
    assert isinstance(others, SharedInValkey)
    with processes.client() as client:
        client.set(others.store_key("answer", "k"), kept, px=LONG_MS)
    assert (await one.get("k", runs))[1] is False
    assert (await processes.process().get("k", runs))[1] is True
    assert runs.count == 1


async def test_an_outcome_that_cannot_be_read_is_run_for_again(processes: SharingProcesses) -> None:
    one, runs = processes.process(), GatedRuns()
    others = one.others
    assert isinstance(others, SharedInValkey)
    with processes.client() as client:
        client.set(others.store_key("lease", "k"), "them", px=100)
        client.set(others.store_key("outcome", "k", b"them"), b"garbage", px=LONG_MS)
    async with asyncio.timeout(PATIENT_S):
        assert (await one.get("k", runs))[1] is False


async def test_processes_of_different_versions_share_nothing(processes: SharingProcesses) -> None:
    runs = GatedRuns()
    assert [(await processes.process(version).get("k", runs))[1] for version in "1221"] == [
        False,
        False,
        True,
        True,
    ]
    assert runs.count == 2


async def test_an_answer_that_is_too_large_stays_here(processes: SharingProcesses) -> None:
    one, other, runs = processes.process(), processes.process(), GatedRuns(body=b"x" * MAX_BYTES)
    assert (await one.get("k", runs))[1] is False
    assert one.find_fresh("k") is not None
    assert (await other.get("k", runs))[1] is False
    with processes.client() as client:
        assert list(client.scan_iter()) == []


async def test_nobody_waits_for_ever(shared_url: str) -> None:
    processes = SharingProcesses(shared_url, spans=FlightTimes(wait_s=0.05))
    one, runs = processes.process(), GatedRuns()
    others = one.others
    assert isinstance(others, SharedInValkey)
    with processes.client() as client:
        client.set(others.store_key("lease", "k"), "them", px=LONG_MS)
    with pytest.raises(ServiceFull) as caught:
        await one.get("k", runs)
    assert (caught.value.code, runs.count) == ("busy", 0)
    await processes.close()


async def test_a_run_that_is_broken_off_is_anothers_at_once(shared_url: str) -> None:
    processes = SharingProcesses(shared_url, spans=FlightTimes(lease_ms=LONG_MS))
    one, other, runs = processes.process(), processes.process(), GatedRuns()
    asking = await runs.begin(one)
    waiting = asyncio.create_task(other.get("k", runs))
    await until_waiting(other)
    run = one._flights["k"].task
    assert run is not None
    run.cancel()
    runs.gate.set()
    async with asyncio.timeout(PATIENT_S):
        assert (await waiting)[1] is False
    with pytest.raises(asyncio.CancelledError):
        await asking
    await processes.close()


async def test_time_spent_waiting_is_taken_off_the_time_of_the_own_run(processes: SharingProcesses) -> None:
    late, other, runs = processes.process(), processes.process(), GatedRuns()
    spans, clock = FlightTimes(), Clock(0.0)
    others = late.others = SharedInValkey(processes.stores[0], "1", lambda: "late", clock, spans)
    endless = GatedRuns()
    endless.gate.clear()
    with processes.client() as client:
        client.set(others.store_key("lease", "k"), "them", px=LONG_MS)
        asking = asyncio.create_task(late.get("k", endless))
        await until_waiting(late)
        clock.now_s += spans.wait_s - 0.3
        client.delete(others.store_key("lease", "k"))
        async with asyncio.timeout(PATIENT_S):
            await endless.began.wait()
            waiting = asyncio.create_task(other.get("k", runs))
            with pytest.raises(ServiceFull) as caught:
                await asking
            # Who came later has time left, and uses it.
            assert (await waiting)[0].body == b"body 1"
    assert caught.value.code == "busy"


async def test_whoever_fetches_an_outcome_late_shares_it_for_as_much_less(shared_url: str) -> None:
    processes = SharingProcesses(shared_url, spans=FlightTimes(outcome_ms=LONG_MS))
    others = processes.process().others
    assert isinstance(others, SharedInValkey)
    made = msgspec.msgpack.encode(["made", b"body", LONG_MS, True])
    with processes.client() as client:
        client.set(others.store_key("lease", "k"), "them", px=LONG_MS)
        client.set(others.store_key("outcome", "k", b"them"), made, px=LONG_MS - 20_000)
    shared, left_ms, hit = await others.get("k", GatedRuns())
    assert (shared, hit) == (SharedAnswer(b"body", LONG_MS, True), True)
    assert 0 < left_ms <= LONG_MS - 20_000
    await processes.close()


async def test_a_run_that_a_stopping_process_breaks_off_is_anothers(processes: SharingProcesses) -> None:
    ending, other, runs = processes.process(), processes.process(), GatedRuns()
    asking = await runs.begin(ending)
    waiting = asyncio.create_task(other.get("k", runs))
    await until_waiting(other)
    async with asyncio.timeout(PATIENT_S):
        await ending.finish_runs(within_s=0.0)
        await processes.stores[0].close()
        runs.gate.set()
        assert (await waiting)[0].body == b"body 2"
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_an_absence_from_another_process_is_not_trusted_without_the_newest_block(
    processes: SharingProcesses,
) -> None:
    """The waiting process runs again, and the absence is not stored for later callers."""
    one, other, runs = processes.process(), processes.process(), GatedRuns(is_absence=True)
    asking = await runs.begin(one)
    waiting = asyncio.create_task(other.get("k", runs))
    await until_waiting(other)
    runs.gate.set()
    assert [(await one_of)[0].body for one_of in (asking, waiting)] == [b"body 1", b"body 2"]
    with processes.client() as client:
        assert list(client.scan_iter("roundtrip:answer:*")) == []
