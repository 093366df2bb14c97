"""Contracts that are slow to read hold up nothing but other contracts' reading."""

import asyncio

import pytest

from roundtrip.chain import functions
from roundtrip.services.third_trip import _MOST_WAITING, _Reading


async def test_slow_reading_leaves_threads_to_everybody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_PROGRAM", "import signal; signal.pause()")
    monkeypatch.setattr(functions, "_MOST_S", 0.5)
    reading, waits = _Reading(), []
    for number in range(_MOST_WAITING):
        assert not reading.full()
        waits.append(asyncio.create_task(reading.find(f"slow {number}".encode(), b"")))
        await asyncio.sleep(0)
    assert reading.full()
    await asyncio.gather(*(asyncio.to_thread(int) for _ in range(20)))
    assert not all(wait.done() for wait in waits), "the others were not waited for"
    async with asyncio.timeout(30):
        found = await asyncio.gather(*waits, return_exceptions=True)
    assert {type(one) for one in found} == {functions.Unreadable}
    assert not reading.full()
