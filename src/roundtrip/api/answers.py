"""Answers that everyone shares for a while, and one run for all who ask at once. Time comes in."""

import asyncio
import contextlib
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from roundtrip.domain.errors import ServiceFull

_MOST_ANSWERS = 10_000
_LEAST_OF_ACCOUNT = 2


@dataclass(frozen=True, slots=True)
class Shared:
    """An encoded answer that is handed to everyone who asks within its time. ``forms``: what doors made of
    it, by names of their own, so that each form is made once."""

    body: bytes
    ttl_ms: int
    counted: bool
    forms: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)


@dataclass(slots=True)
class SharedAnswers:
    """One run for everyone who asks the same thing at once, and its answer for all until it is old.

    ``most_running`` runs may be under way; one more raises ServiceFull (busy). The last quarter of the places
    is for callers with a key (``keyed``). ``account``: whose run it is; it has an eighth of the
    places at most, since accounts are free.
    """

    clock: Callable[[], float]
    most_running: int = 128
    _kept: OrderedDict[str, tuple[float, Shared]] = field(default_factory=OrderedDict)
    _running: dict[str, asyncio.Task[Shared]] = field(default_factory=dict)
    _alone: int = 0
    _of_account: Counter[int] = field(default_factory=Counter)

    def fresh(self, key: str) -> Shared | None:
        """The kept answer, if it is not too old."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept[0] <= self.clock():
            del self._kept[key]
            return None
        return kept[1]

    async def get(
        self,
        key: str,
        make: Callable[[], Awaitable[Shared]],
        keyed: bool = False,
        account: int | None = None,
    ) -> tuple[Shared, bool]:
        """The answer, and whether it was there already (a run that was under way counts as there).

        A caller that goes away does not end the run: others may be waiting for it.
        """
        kept = self.fresh(key)
        if kept is not None:
            return kept, True
        task = self._running.get(key)
        if task is not None:
            return await asyncio.shield(task), True
        self._check_room(keyed, account)
        task = asyncio.create_task(self._run(key, make))
        self._running[key] = task
        if account is not None:
            self._of_account[account] += 1
            task.add_done_callback(lambda _: self._ended(account))
        return await asyncio.shield(task), False

    @contextlib.contextmanager
    def alone(self, keyed: bool = False, account: int | None = None) -> Iterator[None]:
        """A run that is nobody else's, among as many as may be under way. Raises ServiceFull (busy)."""
        self._check_room(keyed, account)
        self._alone += 1
        if account is not None:
            self._of_account[account] += 1
        try:
            yield
        finally:
            self._alone -= 1
            if account is not None:
                self._ended(account)

    def _ended(self, account: int) -> None:
        self._of_account[account] -= 1
        if not self._of_account[account]:
            del self._of_account[account]

    def _check_room(self, keyed: bool, account: int | None) -> None:
        most_of_one = max(_LEAST_OF_ACCOUNT, self.most_running // 8)
        if account is not None and self._of_account[account] >= most_of_one:
            said = f"{most_of_one} simulations of this account are under way; ask again in a moment."
            raise ServiceFull("busy", said, 1)
        places = self.most_running if keyed else self.most_running - self.most_running // 4
        if len(self._running) + self._alone >= places:
            raise ServiceFull("busy", "Too many simulations are under way; ask again in a moment.", 1)

    async def _run(self, key: str, make: Callable[[], Awaitable[Shared]]) -> Shared:
        try:
            shared = await make()
            if shared.ttl_ms > 0:
                self._kept[key] = (self.clock() + shared.ttl_ms / 1000, shared)
                self._kept.move_to_end(key)
                if len(self._kept) > _MOST_ANSWERS:
                    self._kept.popitem(last=False)
            return shared
        finally:
            del self._running[key]

    async def settle(self) -> None:
        """Waits for what is under way; its results are no longer wanted."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)
