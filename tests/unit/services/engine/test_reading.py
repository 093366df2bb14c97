"""Contracts that are slow to read hold up nothing but other contracts' reading."""

import asyncio
import threading

import pytest

from roundtrip.chain.owner import owner_setters
from roundtrip.domain.check.evidence import Missing
from roundtrip.services.engine.hostile_calls import MAX_WAITING, CodeReading


async def test_slow_reading_leaves_threads_to_everybody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def slow(*codes: bytes) -> owner_setters.OwnerSetters:
        assert over.wait(30)
        return owner_setters.OwnerSetters((), len(codes))

    monkeypatch.setattr(owner_setters, "find", slow)
    reading, waits = CodeReading(), []
    try:
        for _ in range(MAX_WAITING):
            assert not reading.full()
            waits.append(asyncio.create_task(reading.find(b"slow", b"")))
            await asyncio.sleep(0)
        assert reading.full()
        async with asyncio.timeout(10):
            await asyncio.gather(*(asyncio.to_thread(int) for _ in range(20)))
        assert not any(wait.done() for wait in waits)
    finally:
        over.set()
    assert await asyncio.gather(*waits) == [owner_setters.OwnerSetters((), 2)] * MAX_WAITING
    assert not reading.full()


async def test_without_the_package_that_reads_code_nothing_is_known() -> None:
    missing = await CodeReading("no_such_reader").find(b"code")
    assert missing == Missing(
        "node", "no_such_reader, which reads functions from code, is not installed here"
    )
