"""Names into addresses, by the system's own resolver, which blocks a thread for as long as a stranger's name
server likes."""

import asyncio
import socket
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

MOST_THREADS = 16
MOST_THREADS_OF_ONE = 4
"""Of names that share their last two labels: their owner is one, and the slowness is his."""
MOST_ADDRESSES = 8
"""Of one name that are tried."""

LookUp = Callable[[str, int], list[tuple[int, str]]]
"""Host and port into families and addresses. Raises OSError, and UnicodeError for what is no name."""


def system_look_up(host: str, port: int) -> list[tuple[int, str]]:
    """The system's resolver."""
    found: list[Any] = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(info[0], info[4][0]) for info in found if info[0] in (socket.AF_INET, socket.AF_INET6)]


class NoTurn(OSError):
    """There was no turn to look the name up: a bound of ours, and no word on the name."""


class Lookups(AbstractResolver):
    """At most ``MOST_THREADS`` lookups at once, and ``MOST_THREADS_OF_ONE`` of one owner's names; others wait
    for their turn, half of ``timeout_s`` at most; altogether a name takes that at most. A thread
    that is stuck counts until it ends.
    The threads are daemons: none keeps the process from ending."""

    def __init__(self, timeout_s: float, look_up: LookUp = system_look_up) -> None:
        self._timeout_s = timeout_s
        self._look_up = look_up
        self._turns = asyncio.Semaphore(MOST_THREADS)
        self._turns_of: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Of either family. Raises OSError, also where it took too long; NoTurn."""
        try:
            async with asyncio.timeout(self._timeout_s):
                found = await self._in_turn(host, port)
        except TimeoutError:
            raise OSError(None, "the name took too long") from None
        except UnicodeError:
            raise OSError(None, "that is no name") from None
        return [
            ResolveResult(hostname=host, host=address, port=port, family=version, proto=0, flags=0)
            for version, address in found[:MOST_ADDRESSES]
        ]

    async def close(self) -> None:
        """Nothing is held but threads, which end by themselves."""

    async def _in_turn(self, host: str, port: int) -> list[tuple[int, str]]:
        owner = ".".join(host.split(".")[-2:])
        of_owner = self._turns_of.get(owner)
        if of_owner is None:
            of_owner = self._turns_of[owner] = asyncio.Semaphore(MOST_THREADS_OF_ONE)
        try:
            async with asyncio.timeout(self._timeout_s / 2):
                await of_owner.acquire()
                try:
                    await self._turns.acquire()
                except BaseException:
                    of_owner.release()
                    raise
        except TimeoutError:
            raise NoTurn(None, "there was no turn to look the name up") from None
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[tuple[int, str]]] = loop.create_future()

        def done(found: list[tuple[int, str]] | OSError | UnicodeError) -> None:
            self._turns.release()
            of_owner.release()
            if answer.done():
                return
            if isinstance(found, list):
                answer.set_result(found)
            else:
                answer.set_exception(found)

        def run() -> None:
            found: list[tuple[int, str]] | OSError | UnicodeError
            try:
                found = self._look_up(host, port)
            except (OSError, UnicodeError) as error:
                found = error
            with suppress(RuntimeError):  # the loop has closed meanwhile
                loop.call_soon_threadsafe(done, found)

        threading.Thread(target=run, name="lookup", daemon=True).start()
        return await answer
