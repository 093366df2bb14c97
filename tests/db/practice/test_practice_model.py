"""Practice against a model: no order of trades, repeats, cuts and weeks makes or loses a wei, and nothing is
gained by splitting."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from roundtrip.store.server import connections
from support.practice_machine import DEEP, THIN, Practices
from support.tables import own_database

WHAT = [
    "buy", "sell", "repeat", "cut", "cut after the commit", "priced once more", "the same at once",
    "buy in parts", "sell in parts", "upstream", "would_fail", "nothing_to_sell", "gift written",
    "written_off written",     f"closed where it was, {THIN}", f"closed where it was, {DEEP}",
]  # fmt: skip
"""That has to have come to pass somewhere."""


@pytest.mark.timeout(120)
async def test_no_order_of_anything_makes_or_loses_a_wei(database_url: str) -> None:
    """The machine is not asynchronous: it runs in a thread and asks this loop."""
    async with own_database(database_url, "practice_model") as url:
        seen = Counter[str]()
        async with connections.create_pool(url, min_size=0, max_size=6) as pool:
            here: dict[str, Any] = {"real": pool, "loop": asyncio.get_running_loop(), "seen": seen}
            machine = type("Machine", (Practices,), here)
            limits = settings(
                max_examples=40,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            )
            await asyncio.to_thread(run_state_machine_as_test, machine, settings=limits)
    for what in WHAT:
        assert seen[what], f"nothing of it went through: {what}"
