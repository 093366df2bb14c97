"""A store that is gone, or is none: each process runs for itself, and everybody is answered."""

import asyncio

import pytest

from roundtrip.api.sharing.single_flight import SharedAnswer, SharedAnswers
from support.answering import PATIENT_S, GatedRuns, SharingProcesses, until_waiting
from support.valkeys import FAULTS, Store, pretending


@pytest.mark.parametrize("when", ["before", "during", "waiting"])
@pytest.mark.parametrize("how", ["dead", "hanging"])
async def test_without_the_store_each_process_runs_for_itself(own_valkey: Store, when: str, how: str) -> None:
    house = SharingProcesses(own_valkey.url)
    one, other, runs = house.process(), house.process(), GatedRuns()
    runs.gate.clear()
    asking: list[asyncio.Task[tuple[SharedAnswer, bool]]] = []
    if when != "before":
        asking += [asyncio.create_task(one.get("k", runs)) for _ in range(5)]
        await runs.began.wait()
    if when == "waiting":
        asking += [asyncio.create_task(other.get("k", runs)) for _ in range(5)]
        await until_waiting(other)
    house.hurry()
    async with asyncio.timeout(PATIENT_S):
        if how == "dead":
            own_valkey.kill()
            await _asked_through(one, other, asking, runs)
        else:
            with own_valkey.hanging():
                await _asked_through(one, other, asking, runs)
    await house.close()


async def _asked_through(
    one: SharedAnswers,
    other: SharedAnswers,
    asking: list[asyncio.Task[tuple[SharedAnswer, bool]]],
    runs: GatedRuns,
) -> None:
    asking += [asyncio.create_task(process.get("k", runs)) for _ in range(5) for process in (one, other)]
    while runs.count < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    runs.gate.set()
    came = await asyncio.gather(*asking)
    assert len({shared.body for shared, _ in came}) == runs.count == 2
    assert [hit for _, hit in came].count(False) == 2
    assert one.find_fresh("k") is not None


@pytest.mark.parametrize("what", FAULTS)
async def test_whatever_the_store_answers_there_is_an_answer(what: str) -> None:
    async with pretending(FAULTS[what]) as pretender:
        house, runs = SharingProcesses(pretender.url, bound_s=0.1), GatedRuns()
        one = house.process()
        for key in "ab":
            assert (await one.get(key, runs))[1] is False
            assert (await one.get(key, runs))[1] is True
        assert runs.count == 2
        await house.close()


async def test_a_store_that_is_back_is_used_again(own_valkey: Store) -> None:
    house = SharingProcesses(own_valkey.url)
    one, other, runs = house.process(), house.process(), GatedRuns()
    asking = await runs.begin(one)
    own_valkey.kill()
    own_valkey.start()
    # Its lease went with the store's memory; what came of it is handed round all the same.
    runs.gate.set()
    await asking
    assert (await other.get("k", runs))[1] is True
    await house.close()
