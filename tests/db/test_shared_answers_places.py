"""Places for runs are each process's own, and so is what it has run out of."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from roundtrip.api.answers import NoPlace
from roundtrip.api.shared_answers import SharedInValkey
from roundtrip.domain.errors import ServiceFull
from support.answering import LONG_MS, PATIENT_S, House, Runs, until_waiting


@pytest.fixture
async def house(valkey_url: str) -> AsyncIterator[House]:
    found = House(valkey_url)
    yield found
    await found.close()


async def test_where_there_is_no_place_the_other_process_runs(house: House) -> None:
    full, other, runs = house.process(most_running=1), house.process(), Runs()
    with full.alone(keyed=True):
        with pytest.raises(ServiceFull) as caught:
            await full.get("k", runs)
        assert (caught.value.code, caught.value.retry_after_s) == ("busy", 1)
        assert (await other.get("k", runs))[1] is False
        # Who waits, or finds it there, needs no place.
        assert (await full.get("k", runs))[1] is True


async def test_that_one_process_is_full_is_told_to_nobody_elsewhere(house: House) -> None:
    full, other = house.process(), house.process()
    none, runs = Runs(fault=NoPlace()), Runs()
    none.gate.clear()
    asking = asyncio.create_task(full.get("k", none))
    await none.began.wait()
    waiting = asyncio.create_task(other.get("k", runs))
    await until_waiting(other)
    none.gate.set()
    assert (await waiting)[1] is False
    with pytest.raises(NoPlace):
        await asking


async def test_who_waits_for_another_process_takes_no_place_and_is_one_of_so_many(house: House) -> None:
    one, other, runs = house.process(), house.process(most_running=2), Runs()
    runs.gate.clear()
    keys = [str(number) for number in range(16)]
    asking = [asyncio.create_task(one.get(key, runs)) for key in keys]
    async with asyncio.timeout(PATIENT_S):
        while runs.count < len(keys):  # noqa: ASYNC110
            await asyncio.sleep(0)
    waiting = [asyncio.create_task(other.get(key, runs, keyed=True)) for key in keys]
    await until_waiting(other, keys[-1])
    with other.alone(), other.alone(keyed=True):
        pass
    with pytest.raises(ServiceFull):
        await other.get("one more", runs, keyed=True)
    runs.gate.set()
    assert {hit for _, hit in await asyncio.gather(*waiting)} == {True}
    await asyncio.gather(*asking)


async def test_who_waits_with_others_has_the_place_of_the_best_of_them(house: House) -> None:
    one, runs = house.process(most_running=4), Runs()
    across = one.across
    assert isinstance(across, SharedInValkey)
    with house.client() as client:
        client.set(across._key("lease", "k"), "them", px=LONG_MS)
        asking = [asyncio.create_task(one.get("k", runs))]
        await until_waiting(one)
        asking.append(asyncio.create_task(one.get("k", runs, keyed=True)))
        await asyncio.sleep(0)
        with one.alone(), one.alone(), one.alone():
            client.delete(across._key("lease", "k"))
            assert [hit for _, hit in await asyncio.gather(*asking)] == [False, True]
