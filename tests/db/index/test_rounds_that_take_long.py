"""Rounds that wait for many times as long as they took do not take the time of day for that."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from roundtrip.jobs.kinds import bag, names
from roundtrip.store.server import jobs
from support.flagged import FlagGround

HOUR_S = 3600.0
ROUNDS = [("bag", bag.bag, bag.EVERY_S, bag.IDLE), ("names", names.names, names.EVERY_S, names.IDLE)]


async def waits_s(ground: FlagGround, kind: str, handler: Any, clock: Callable[[], float]) -> float:
    """Until its next round, of one in which the time of day steps an hour forward at every look."""
    began_s = ground.ctx.now_s()
    day = iter(began_s + n * HOUR_S for n in range(100))
    stepping = replace(ground.ctx, now_s=lambda: next(day))
    await jobs.enqueue(ground.index, kind, "round")
    (job,) = await jobs.claim(ground.index, [kind], 1, 30, datetime.fromtimestamp(began_s, UTC))
    effect = await handler(stepping, job, clock)
    async with ground.index.transaction():
        await effect(ground.index)
        assert await jobs.finish(ground.index, job)
    wished = await jobs.to_come(ground.index, kind, "round")
    assert wished is not None
    return wished[0].timestamp() - began_s


@pytest.mark.parametrize(("kind", "handler", "every_s", "idle"), ROUNDS, ids=["bag", "names"])
async def test_a_clock_that_steps_forward_makes_no_round_long(
    ground: FlagGround, kind: str, handler: Any, every_s: int, idle: int
) -> None:
    assert await waits_s(ground, kind, handler, lambda: 7.0) == every_s


@pytest.mark.parametrize(("kind", "handler", "every_s", "idle"), ROUNDS, ids=["bag", "names"])
async def test_a_round_that_took_long_waits_for_many_times_as_long(
    ground: FlagGround, kind: str, handler: Any, every_s: int, idle: int
) -> None:
    assert await waits_s(ground, kind, handler, iter((7.0, 7.0 + every_s)).__next__) == every_s * idle
