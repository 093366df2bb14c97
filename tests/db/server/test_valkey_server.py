"""A Valkey server of our own: nobody else's, gone at the end, and waited for without holding up the loop."""

import asyncio
from pathlib import Path

import pytest
import redis.asyncio
import uvloop

from roundtrip.domain.base.errors import CannotRun
from roundtrip.store.server import valkey

WAIT_S = 20


async def test_two_at_once_are_two() -> None:
    async with valkey.running() as first:
        one = redis.asyncio.from_url(first)
        async with valkey.running() as second:
            other = redis.asyncio.from_url(second)
            await other.set("whose", "the second's")
            assert await one.get("whose") is None
            await other.aclose()
        assert await one.ping()
        await one.aclose()
    assert not any(Path(url.removeprefix("unix://")).parent.exists() for url in (first, second))


def test_the_loop_goes_on_while_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the loop that commands run in, too: what it waits for comes of this loop."""
    begun, go, slow = tmp_path / "begun", tmp_path / "go", tmp_path / "slow"
    program = valkey._program()
    slow.write_text(
        f'#!/bin/sh\ntouch {begun}\nuntil [ -e {go} ]; do sleep 0.01; done\nexec {program} "$@"\n'
    )
    slow.chmod(0o700)
    monkeypatch.setattr(valkey, "_program", lambda: slow)

    async def lets_go() -> None:
        while not begun.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        go.touch()

    async def main() -> None:
        async with asyncio.timeout(WAIT_S):
            letting = asyncio.create_task(lets_go())
            async with valkey.running() as url:
                one = redis.asyncio.from_url(url)
                assert await one.ping()
                await one.aclose()
            await letting

    uvloop.run(main())


async def test_one_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey, "_SETTINGS", ("--nosuch", "1"))
    with pytest.raises(CannotRun, match=r"(?s)valkey exited at start: .*nosuch"):
        async with valkey.running():
            pass
