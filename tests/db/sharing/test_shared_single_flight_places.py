"""Places for runs are each process's own, and so is what it has run out of."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from roundtrip.api.sharing.places import FlightCaller
from roundtrip.domain.base.errors import ServiceFull
from support.answering import GatedRuns, SharingProcesses, until_waiting


@pytest.fixture
async def house(shared_url: str) -> AsyncIterator[SharingProcesses]:
    found = SharingProcesses(shared_url)
    yield found
    await found.close()


async def test_where_there_is_no_place_the_other_process_runs(house: SharingProcesses) -> None:
    full, other, runs = house.process(places=1), house.process(), GatedRuns()
    hurried = FlightCaller("hurried", wait_s=0.0)
    async with full.places.hold(FlightCaller("first")):
        with pytest.raises(ServiceFull) as caught:
            await full.get("k", runs, hurried)
        assert (caught.value.code, caught.value.retry_after_s) == ("busy", 1)
        assert (await other.get("k", runs))[1] is False
        # Who finds it there needs no place.
        assert (await full.get("k", runs, hurried))[1] is True


@pytest.mark.parametrize(
    "fault",
    [
        ServiceFull("busy", "Too many requests are running. Retry in 1 second.", 1),
        ServiceFull("busy", "All nodes are at their rate limits. Retry in 1 second.", 1),
        ServiceFull(
            "budget_spent", "Today's budget of chain calls is used up. It renews at 00:00 UTC.", 3_600
        ),
        ServiceFull("holders_busy", "Too many tokens' holders are being read.", 5),
        ServiceFull("holders_budget", "Today's budget for reading holders is used up.", 3_600),
    ],
    ids=lambda fault: fault.message,
)
async def test_what_one_process_has_run_out_of_is_told_to_nobody_elsewhere(
    house: SharingProcesses, fault: ServiceFull
) -> None:
    full, other = house.process(), house.process()
    none, runs = GatedRuns(fault=fault), GatedRuns()
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
