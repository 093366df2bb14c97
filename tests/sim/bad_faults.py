"""What can befall the service, by name: each is put on, stays for a while, and is taken off again."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from sim import arena
from sim.arena import WentWrong
from sim.bad_service import BadDaysService, bound, fill
from sim.run import CUT

HOUR_S, DAY_S = 3600.0, 86_400.0
NO_TABLES, NO_LOG = 2**20, 2**14
"""Bytes: segments of the log are a mebibyte here, so that it goes on while tables cannot grow."""
LIES_RATE = 0.5
Puts = Callable[[BadDaysService], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """``lasts_s``: how long it stays."""

    put_on: Puts
    lasts_s: float = 10.0


# --- the node --------------------------------------------------------------------------------------


def _nodes(how: str, count: int = 2) -> Puts:
    """Every request to the first so many nodes is met so."""

    @contextlib.asynccontextmanager
    async def put_on(service: BadDaysService) -> AsyncIterator[None]:
        for proxy in service.proxies[:count]:
            proxy.always = how
        yield
        for proxy in service.proxies[:count]:
            proxy.always = None

    return put_on


@contextlib.asynccontextmanager
async def _flaps(service: BadDaysService) -> AsyncIterator[None]:
    async def flapping() -> None:
        while True:
            for how in ("closed", None):
                for proxy in service.proxies:
                    proxy.always = how
                await asyncio.sleep(1.0)

    async with _beside(flapping()):
        yield
    for proxy in service.proxies:
        proxy.always = None


@contextlib.asynccontextmanager
async def _lies(service: BadDaysService) -> AsyncIterator[None]:
    for proxy in service.proxies:
        proxy.rate = LIES_RATE
    yield
    for proxy in service.proxies:
        proxy.rate = 0.0


@contextlib.asynccontextmanager
async def _forks(service: BadDaysService) -> AsyncIterator[None]:
    async def forking() -> None:
        while True:
            await service.on_chain(service.play.branch_off, 6)
            await asyncio.sleep(1.0)
            await service.on_chain(service.play.come_back, True)
            await asyncio.sleep(1.0)

    async with _beside(forking()):
        yield
    await service.on_chain(service.play.outgrow)


@contextlib.asynccontextmanager
async def _goes_back(service: BadDaysService) -> AsyncIterator[None]:
    await service.on_chain(service.play.shorten)
    yield
    await service.on_chain(service.play.outgrow)


# --- the database ----------------------------------------------------------------------------------


def _ended(how: signal.Signals) -> Puts:
    @contextlib.asynccontextmanager
    async def put_on(service: BadDaysService) -> AsyncIterator[None]:
        service.database.away = True
        os.kill(service.database.pids()[-1], how)
        yield
        service.database.away = False

    return put_on


@contextlib.asynccontextmanager
async def _cut(service: BadDaysService) -> AsyncIterator[None]:
    async def cutting() -> None:
        while True:
            async with arena.connected(service.index) as connection:
                await connection.execute(CUT)
            await asyncio.sleep(1.0)

    async with _beside(cutting()):
        yield


def _signalled(service: BadDaysService, what: signal.Signals) -> None:
    for pid in service.database.pids():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


@contextlib.asynccontextmanager
async def _frozen(service: BadDaysService) -> AsyncIterator[None]:
    _signalled(service, signal.SIGSTOP)
    yield
    _signalled(service, signal.SIGCONT)


def _full(most_bytes: int) -> Puts:
    @contextlib.asynccontextmanager
    async def put_on(service: BadDaysService) -> AsyncIterator[None]:
        service.database.bound(most_bytes)
        yield
        service.database.bound(None)

    return put_on


@contextlib.asynccontextmanager
async def _tables_full(service: BadDaysService) -> AsyncIterator[None]:
    """That of what checks saw."""
    async with _full(NO_TABLES)(service):
        await fill(service.index.url)
        yield


# --- Valkey, our own files, clocks, processes ------------------------------------------------------


@contextlib.asynccontextmanager
async def _valkey_killed(service: BadDaysService) -> AsyncIterator[None]:
    await asyncio.to_thread(service.valkey.kill)
    yield
    await asyncio.to_thread(service.valkey.start)


@contextlib.asynccontextmanager
async def _valkey_restarts(service: BadDaysService) -> AsyncIterator[None]:
    async def restarting() -> None:
        while True:
            await asyncio.to_thread(service.valkey.kill)
            await asyncio.to_thread(service.valkey.start)
            await asyncio.sleep(1.0)

    async with _beside(restarting()):
        yield


@contextlib.asynccontextmanager
async def _valkey_frozen(service: BadDaysService) -> AsyncIterator[None]:
    with service.valkey.hanging():
        yield


@contextlib.asynccontextmanager
async def _log_full(service: BadDaysService) -> AsyncIterator[None]:
    """And something to log: the node flaps."""
    for role in ("serve", "sync", "work"):
        for pid in service.pids(role):
            bound(pid, 1)
    async with _flaps(service):
        yield
    for role in ("serve", "sync", "work"):
        for pid in service.pids(role):
            bound(pid, None)


def _clock(ahead_s: float) -> Puts:
    @contextlib.asynccontextmanager
    async def put_on(service: BadDaysService) -> AsyncIterator[None]:
        service.set_clock(ahead_s)
        yield
        service.set_clock(0.0)

    return put_on


def _killed(role: str) -> Puts:
    @contextlib.asynccontextmanager
    async def put_on(service: BadDaysService) -> AsyncIterator[None]:
        pids = service.pids(role)
        # Which of two syncs leads is not asked: both in turn.
        for pid in pids if role == "sync" else pids[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        yield

    return put_on


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
        if task.done():
            raise WentWrong(f"a fault ended by itself: {task.exception()!r}")
    finally:
        task.cancel()
        await asyncio.wait({task})


FAULTS: dict[str, Fault] = {
    "node flaps": Fault(_flaps),
    "node stalls": Fault(_nodes("stalls"), 20.0),
    "node slow": Fault(_nodes("hangs")),
    "first node away": Fault(_nodes("closed", 1)),
    "all nodes away": Fault(_nodes("closed"), 20.0),
    "node lies": Fault(_lies),
    "forks": Fault(_forks),
    "chain goes back": Fault(_goes_back, 5.0),
    "database restarts": Fault(_ended(signal.SIGINT), 5.0),
    "database crashes": Fault(_ended(signal.SIGQUIT), 5.0),
    "connections cut": Fault(_cut, 5.0),
    "database frozen": Fault(_frozen, 20.0),
    "disk full, tables": Fault(_tables_full, 20.0),
    "disk full, database log": Fault(_full(NO_LOG)),
    "disk full, our logs": Fault(_log_full, 6.0),
    "valkey restarts": Fault(_valkey_restarts, 5.0),
    "valkey killed": Fault(_valkey_killed, 8.0),
    "valkey frozen": Fault(_valkey_frozen, 8.0),
    "clock an hour ahead": Fault(_clock(HOUR_S), 8.0),
    "clock an hour behind": Fault(_clock(-HOUR_S), 8.0),
    "clock a day ahead": Fault(_clock(DAY_S), 8.0),
    "clock a day behind": Fault(_clock(-DAY_S), 8.0),
    "worker killed": Fault(_killed("work"), 2.0),
    "serving process killed": Fault(_killed("serve"), 2.0),
    "syncs killed": Fault(_killed("sync"), 2.0),
}
"""By the name in docs/load.md."""
