"""Places for runs are each process's own, and so is what it has run out of."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from roundtrip.api.sharing.shared_single_flight import SharedInValkey
from roundtrip.api.sharing.single_flight import FlightCaller, NoPlace
from roundtrip.domain.base.errors import ServiceFull
from support.answering import LONG_MS, PATIENT_S, House, Runs, until_waiting


@pytest.fixture
async def house(shared_url: str) -> AsyncIterator[House]:
    found = House(shared_url)
    yield found
    await found.close()


async def test_where_there_is_no_place_the_other_process_runs(house: House) -> None:
    full, other, runs = house.process(most_running=1), house.process(), Runs()
    with full.reserve_place(FlightCaller(True)):
        with pytest.raises(ServiceFull) as caught:
            await full.get("k", runs)
        assert (caught.value.code, caught.value.retry_after_s) == ("busy", 1)
        assert (await other.get("k", runs))[1] is False
        # Who waits, or finds it there, needs no place.
        assert (await full.get("k", runs))[1] is True


@pytest.mark.parametrize(
    "fault",
    [
        NoPlace(),
        ServiceFull("busy", "All nodes are at their rate limits. Retry in 1 second.", 1),
        ServiceFull(
            "budget_spent", "Today's budget of chain calls is used up. It renews at 00:00 UTC.", 3_600
        ),
        ServiceFull("holders_busy", "Too many tokens' holders are being read.", 5),
        ServiceFull("holders_budget", "Today's budget for reading holders is used up.", 3_600),
    ],
    ids=lambda fault: fault.code if type(fault) is ServiceFull else "no place",
)
async def test_what_one_process_has_run_out_of_is_told_to_nobody_elsewhere(
    house: House, fault: ServiceFull
) -> None:
    full, other = house.process(), house.process()
    none, runs = Runs(fault=fault), Runs()
    none.gate.clear()
    asking = asyncio.create_task(full.get("k", none))
    await none.began.wait()
    waiting = asyncio.create_task(other.get("k", runs))
    await until_waiting(other)
    none.gate.set()
    assert (await waiting)[1] is False
    with pytest.raises(ServiceFull) as caught:
        await asking
    assert caught.value is fault


async def test_who_waits_for_another_process_takes_no_place_and_is_one_of_so_many(house: House) -> None:
    one, other, runs = house.process(), house.process(most_running=2), Runs()
    runs.gate.clear()
    keys = [str(number) for number in range(16)]
    asking = [asyncio.create_task(one.get(key, runs)) for key in keys]
    async with asyncio.timeout(PATIENT_S):
        while runs.count < len(keys):  # noqa: ASYNC110
            await asyncio.sleep(0)
    waiting = [asyncio.create_task(other.get(key, runs, FlightCaller(True))) for key in keys]
    await until_waiting(other, keys[-1])
    with other.reserve_place(), other.reserve_place(FlightCaller(True)):
        pass
    with pytest.raises(ServiceFull):
        await other.get("one more", runs, FlightCaller(True))
    runs.gate.set()
    assert {hit for _, hit in await asyncio.gather(*waiting)} == {True}
    await asyncio.gather(*asking)


async def test_who_waits_with_others_has_the_place_of_the_best_of_them(house: House) -> None:
    one, runs = house.process(most_running=4), Runs()
    others = one.others
    assert isinstance(others, SharedInValkey)
    with house.client() as client:
        client.set(others._store_key("lease", "k"), "them", px=LONG_MS)
        asking = [asyncio.create_task(one.get("k", runs))]
        await until_waiting(one)
        asking.append(asyncio.create_task(one.get("k", runs, FlightCaller(True))))
        await asyncio.sleep(0)
        with one.reserve_place(), one.reserve_place(), one.reserve_place():
            client.delete(others._store_key("lease", "k"))
            assert [hit for _, hit in await asyncio.gather(*asking)] == [False, True]


async def test_the_full_share_of_who_came_first_is_told_to_nobody_who_joined(house: House) -> None:
    one, runs = house.process(most_running=16), Runs()
    with one.reserve_place(FlightCaller(True, 7)), one.reserve_place(FlightCaller(True, 7)):
        for key, whose in (("k", [(True, 7), (True, 8)]), ("l", [(True, 7), (False, None)])):
            came = await asyncio.gather(*(one.get(key, runs, FlightCaller(*who)) for who in whose))
            assert [hit for _, hit in came] == [False, True]
        with pytest.raises(NoPlace, match="of this account"):
            await one.get("m", runs, FlightCaller(True, 7))
    assert runs.count == 2


async def test_a_run_is_in_the_name_of_one_of_those_who_wait_and_has_room(house: House) -> None:
    one, runs = house.process(most_running=16), Runs()
    runs.gate.clear()
    with (
        one.reserve_place(FlightCaller(True, 7)),
        one.reserve_place(FlightCaller(True, 7)),
        one.reserve_place(FlightCaller(True, 8)),
    ):
        asking = [
            asyncio.create_task(one.get("k", runs, FlightCaller(True, account))) for account in (7, 8, 9)
        ]
        await runs.began.wait()
        with pytest.raises(NoPlace), one.reserve_place(FlightCaller(True, 8)):
            pass
        with one.reserve_place(FlightCaller(True, 9)), one.reserve_place(FlightCaller(True, 9)):
            pass
        runs.gate.set()
        await asyncio.gather(*asking)


async def test_where_nobody_who_waits_has_room_no_account_is_named(house: House) -> None:
    one, runs = house.process(most_running=16), Runs()
    with (
        one.reserve_place(FlightCaller(True, 7)),
        one.reserve_place(FlightCaller(True, 7)),
        one.reserve_place(FlightCaller(True, 8)),
        one.reserve_place(FlightCaller(True, 8)),
    ):
        asking = [one.get("k", runs, FlightCaller(True, account)) for account in (7, 8)]
        came = await asyncio.gather(*asking, return_exceptions=True)
    assert {str(error) for error in came} == {str(NoPlace())}
    assert runs.count == 0
