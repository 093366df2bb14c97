"""Each client against a live service, as a bot uses it: what it gets is the same in both languages."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest

from roundtrip_client import AsyncClient, Client, ServiceError, models
from support.live_service import Live
from support.typescript_client import build, run_node

NOBODY = "0x12"


def expected(live: Live) -> dict[str, Any]:
    """What each program returns."""
    return {
        "level": "ok",
        "lines": {live.plain: "ok", live.trap: "cannot_sell", NOBODY: "bad_address"},
        "events": sorted([f"verdict {live.plain} ok", f"verdict {live.trap} danger"]),
        "history": "ok",
        "holders": live.plain,
        "liquidity": live.plain,
        "unlocks": 0,
        "evidence": "ok",
        "keys": 1,
        "sign": "personal_sign",
        "health": True,
        "errors": [["bad_address", True], ["bad_signature", True]],
    }


async def test_the_typescript_client(live: Live) -> None:
    built = await build()
    printed = await run_node(str(built / "test" / "live.js"), live.url, live.key, live.plain, live.trap)
    assert json.loads(printed) == expected(live)


async def test_the_blocking_python_client(live: Live) -> None:
    assert await asyncio.to_thread(use, live) == expected(live)


def use(live: Live) -> dict[str, Any]:
    params = models.KeyParams(address=live.plain, signature="0x" + "11" * 65)
    with Client(live.url, live.key) as client, ThreadPoolExecutor(1) as readers:
        stream = client.stream([live.plain, live.trap], ["verdict"])
        reading = readers.submit(lambda: [describe(event) for event in islice(stream, 2)])
        while not stream.last_event_id:
            client.health()
        found: dict[str, Any] = {
            "level": client.check(live.plain, deep=True, amount="0.2").verdict.level,
            "lines": dict(code_of(line) for line in client.checks([live.plain, live.trap, NOBODY])),
            "events": sorted(reading.result(timeout=30)),
            "history": client.history(live.plain).changes[0].code,
            "holders": client.holders(live.plain).address,
            "liquidity": client.liquidity(live.plain).address,
            "unlocks": len(client.unlocks().unlocks),
            "evidence": client.proof(live.plain).verdict.level,
            "keys": len(client.keys().live),
            "sign": client.key_text(live.plain).sign,
            "health": client.health().ok,
        }
        with pytest.raises(ServiceError) as unknown:
            client.check(NOBODY)
        with pytest.raises(ServiceError) as unsigned:
            client.make_key(params)
    return found | {"errors": [error_of(unknown.value), error_of(unsigned.value)]}


async def test_the_async_python_client(live: Live) -> None:
    async with AsyncClient(live.url, live.key) as client:
        stream = client.stream([live.plain, live.trap], ["verdict"])

        async def read() -> list[str]:
            events: list[str] = []
            async for event in stream:
                events.append(describe(event))
                if len(events) == 2:
                    break
            return events

        reading = asyncio.create_task(read())
        while not stream.last_event_id:
            await client.health()
        wanted = expected(live)
        check = await client.check(live.plain, deep=True, amount="0.2")
        assert check.verdict.level == wanted["level"]
        lines = [code_of(line) async for line in client.checks([live.plain, live.trap, NOBODY])]
        assert dict(lines) == wanted["lines"]
        async with asyncio.timeout(30):
            assert sorted(await reading) == wanted["events"]
        with pytest.raises(ServiceError) as unknown:
            await client.check(NOBODY)
    assert error_of(unknown.value) == wanted["errors"][0]


def describe(event: models.StreamEvent) -> str:
    return f"{event.kind} {event.token} {event.verdict.level if event.verdict else None}"


def code_of(line: models.CheckLine) -> tuple[str, str]:
    if line.check is not None:
        return line.address, line.check.verdict.code
    assert line.error is not None
    return line.address, line.error.code


def error_of(error: ServiceError) -> list[object]:
    return [error.code, bool(error.request_id)]
