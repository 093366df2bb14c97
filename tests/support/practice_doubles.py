"""Practice is modelled with these: pools by arithmetic, connections that are cut, who waits for another."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

_KEEP = 997


class Pool:
    """A constant product that keeps three thousandths."""

    def __init__(self, eth_wei: int, token_raw: int) -> None:
        self.eth_wei, self.token_raw = eth_wei, token_raw

    def buys(self, eth_wei: int) -> int:
        paid = eth_wei * _KEEP
        return self.token_raw * paid // (self.eth_wei * 1000 + paid)

    def sells(self, token_raw: int) -> int:
        given = token_raw * _KEEP
        return self.eth_wei * given // (self.token_raw * 1000 + given)

    def trade(self, share: int) -> None:
        """Somebody else's buy, or sell below zero, in hundredths of what there is."""
        if share > 0:
            got = self.buys(self.eth_wei * share // 100)
            self.eth_wei, self.token_raw = self.eth_wei + self.eth_wei * share // 100, self.token_raw - got
        else:
            sold_raw = self.token_raw * -share // 100
            self.eth_wei, self.token_raw = self.eth_wei - self.sells(sold_raw), self.token_raw + sold_raw


class Cut(OSError):
    """The connection is gone."""


class CutConnection:
    """Passes on what it is told until it is cut: before a statement of this number, or after the commit."""

    def __init__(self, real: Any, before: int | None, after_commit: bool) -> None:
        self._real, self._left, self._after_commit = real, before, after_commit

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in ("execute", "fetch", "fetchrow", "fetchval"):
            return found

        async def answer_call(*given: Any, **how: Any) -> Any:
            if self._left is not None:
                self._left -= 1
                if self._left < 0:
                    raise Cut("before a statement")
            return await found(*given, **how)

        return answer_call

    @contextlib.asynccontextmanager
    async def transaction(self, **how: Any) -> AsyncIterator[None]:
        async with self._real.transaction(**how):
            yield
        if self._after_commit and not how.get("readonly"):
            raise Cut("after the commit")


class CutPool:
    """A pool whose next connections that write are cut."""

    def __init__(self, real: asyncpg.Pool) -> None:
        self.real = real
        self.before: int | None = None
        self.after_commit = False

    @contextlib.asynccontextmanager
    async def acquire(self, **how: Any) -> AsyncIterator[CutConnection]:
        async with self.real.acquire(**how) as connection:
            yield CutConnection(connection, self.before, self.after_commit)


class Meeting:
    """Of so many nobody goes on before the others are there too, or have left."""

    def __init__(self, count: int) -> None:
        self._missing, self._full = count, asyncio.Event()
        self._here = set[asyncio.Task[Any] | None]()

    async def arrive(self) -> None:
        self.leave()
        async with asyncio.timeout(20):
            await self._full.wait()

    def leave(self) -> None:
        """Whoever arrived before counts once."""
        if asyncio.current_task() not in self._here:
            self._here.add(asyncio.current_task())
            self._missing -= 1
        if self._missing == 0:
            self._full.set()
