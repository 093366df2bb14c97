"""One seeded run: a chain that lives and forks, a node that lies, a sync that is killed, a database
that ends.

At the end the faults are over, and the index has to be the one that a fresh sync makes of the same chain.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip_development.devnet.world import Built, DevnetFolders
from sim import arena
from sim.arena import Database, Program, WentWrong
from sim.digest import Digest, difference
from sim.play import DEEPEST, Play
from sim.proxy import Proxy

EVENTS_A_RUN = 8
STANDS_BY = "this one waits"
_FOLLOWS_S = 3.0
_LOCKED_S, _REACHED_S, _COMMAND_S = 15.0, 40.0, 40.0
_IS_LOCKED = (
    "SELECT count(*) FROM pg_locks JOIN pg_database AS d ON d.oid = database"
    " WHERE locktype = 'advisory' AND granted AND d.datname = current_database()"
)
_IS_ACTIVE = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'"
    # What waits for a client that stands still does nothing, either.
    " AND wait_event_type IS DISTINCT FROM 'Client' AND pid <> pg_backend_pid()"
)
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid()"
)


@dataclass(slots=True)
class Outcome:
    """What came of a run. ``undone``: blocks that the index had when a fork took them back. ``wrong``: what
    is not as it should be, for a person; nothing: all is well."""

    seed: int
    blocks: int = 0
    rows: int = 0
    forks: int = 0
    undone: int = 0
    kills: int = 0
    restarts: int = 0
    faults: int = 0
    digest: str = ""
    script: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        """All of it in a line."""
        counts = ("blocks", "rows", "forks", "undone", "kills", "restarts", "faults")
        text = "  ".join(f"{name} {getattr(self, name)}" for name in counts)
        return f"seed {self.seed}  {text}  {self.digest or '-'}  {'WRONG' if self.wrong else 'equal'}"

    def report(self) -> list[str]:
        """What a person needs to know of a run that went wrong; nothing of one that did not."""
        return [*self.script, *self.wrong] if self.wrong else []


@dataclass(slots=True)
class Run:
    """A run at work."""

    rng: Random
    play: Play
    proxy: Proxy
    server: EmbeddedPostgres
    database: Database
    sync: Program
    outcome: Outcome
    began_s: float = field(default_factory=time.monotonic)

    def note(self, what: str) -> None:
        """A line of the script, with the seconds since the run began."""
        self.outcome.script.append(f"{time.monotonic() - self.began_s:4.1f} s  {what}")

    # --- events ---------------------------------------------------------------------------------

    async def turns(self) -> None:
        """The chain goes on."""
        await self._played(self.rng.randrange(2, 10))

    async def turns_unseen(self) -> None:
        """The sync is ended in order, and started when the chain is further."""
        await self.sync.stop()
        await self._played(self.rng.randrange(2, 20))
        await self.sync.start()

    async def kill(self) -> None:
        """The sync is killed in the middle of whatever it does, and started again."""
        self.outcome.kills += 1
        async with self._at_some_moment():
            await self.sync.kill()
        await self.sync.start()

    async def second(self) -> None:
        """A second sync is started while the first one stands still: it stands by and changes nothing."""
        await self._locked()
        first = self.sync.process
        assert first is not None
        first.send_signal(signal.SIGSTOP)
        try:
            await self._still()
            before = await arena.digest_of(self.database)
            await self._stood_by()
            after = await arena.digest_of(self.database)
        finally:
            first.send_signal(signal.SIGCONT)
        if before != after:
            raise WentWrong(
                "a second sync wrote: " + "; ".join(difference(before, after, ("before", "after")))
            )

    async def _stood_by(self) -> None:
        """A sync is started, says that it stands by, and is ended."""
        text = self.sync.log.read_text().count(STANDS_BY)

        async def it_does() -> bool:
            return self.sync.log.read_text().count(STANDS_BY) > text

        second = await self.sync.launched("sync")
        stood_by = await arena.until(it_does, _COMMAND_S)
        second.send_signal(signal.SIGTERM)
        code = await arena.ended(second, arena.STOP_S)
        if not stood_by or code != 0:
            raise WentWrong(f"a second sync did not stand by, and ended with {code}: {self.sync.tail()}")

    async def database_stops(self) -> None:
        """The database is ended in order, and started again."""
        self.outcome.restarts += 1
        await self.sync.begin_index()
        await arena.restart(self.server, at_once=False)

    async def database_crashes(self) -> None:
        """The database ends as in a crash, in the middle of whatever it does, and is started again."""
        self.outcome.restarts += 1
        await self.sync.begin_index()
        async with self._at_some_moment():
            await arena.restart(self.server, at_once=True)

    async def connections_cut(self) -> None:
        """The database ends every connection."""
        async with arena.connected(self.database) as connection:
            await connection.execute(CUT)

    async def fork(self) -> None:
        """Other blocks take the place of the last ones, and more of them."""
        await self._forked(longer=True)

    async def shorter_fork(self) -> None:
        """Other blocks take the place of the last ones, and fewer of them."""
        await self._forked(longer=False)

    async def drop(self) -> None:
        """The last blocks are made again with nothing in them."""
        await self._taken_back(self.play.drop)

    async def shorten(self) -> None:
        """The last blocks are gone."""
        await self._taken_back(self.play.shorten)

    async def faults(self) -> None:
        """The node gets worse, or better."""
        self.proxy.rate = self.rng.choice((0.0, 0.1, 0.3, 0.6))

    # --- parts of events ------------------------------------------------------------------------

    async def _played(self, turns: int) -> None:
        await asyncio.to_thread(self.play.turns, turns)

    @contextlib.asynccontextmanager
    async def _at_some_moment(self) -> AsyncIterator[None]:
        """While the chain goes on and the sync asks for it."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._played(self.rng.randrange(1, 5)))
            await self.proxy.more(self.rng.randrange(1, 12), _FOLLOWS_S)
            yield

    async def _forked(self, longer: bool) -> None:
        blocks = self.rng.randrange(1, DEEPEST)
        fork = await asyncio.to_thread(self.play.head)
        await asyncio.to_thread(self.play.branch_off, blocks)
        await self.follow()
        self.outcome.forks += 1
        at = await arena.cursor(self.database)
        self.outcome.undone += max(0, at[0] - fork) if at else 0
        await asyncio.to_thread(self.play.come_back, longer)

    async def _taken_back(self, take: Callable[[], int]) -> None:
        await self.follow()
        head = await asyncio.to_thread(self.play.head)
        at = await arena.cursor(self.database)
        depth = await asyncio.to_thread(take)
        if depth:
            self.outcome.forks += 1
            self.outcome.undone += max(0, at[0] - (head - depth)) if at else 0

    async def follow(self) -> None:
        """Gives the sync time to come to the head, where it can: a fork that it never saw is none."""
        await self.sync.reach(*await asyncio.to_thread(self.play.tip), _FOLLOWS_S)

    async def _locked(self) -> None:
        """Waits for the first sync to be at work."""

        async def holds() -> bool:
            async with arena.connected(self.database) as connection:
                return bool(await connection.fetchval(_IS_LOCKED))

        if not await arena.until(holds, _LOCKED_S):
            raise WentWrong(f"the sync locks nothing: {self.sync.tail()}")

    async def _still(self) -> None:
        """Waits until the database does nothing."""

        async def holds() -> bool:
            async with arena.connected(self.database) as connection:
                return not await connection.fetchval(_IS_ACTIVE)

        if not await arena.until(holds, _LOCKED_S):
            raise WentWrong("the database does not come to rest")


EVENTS: dict[str, int] = {
    "turns": 3,
    "turns_unseen": 1,
    "kill": 3,
    "second": 1,
    "database_stops": 1,
    "database_crashes": 2,
    "connections_cut": 1,
    "fork": 4,
    "shorter_fork": 2,
    "drop": 2,
    "shorten": 2,
    "faults": 2,
}
"""Methods of ``Run``, and how often each is drawn."""


async def run(
    seed: int, places: DevnetFolders, built: Built, server: EmbeddedPostgres, folder: Path
) -> Outcome:
    """One run. ``folder``: for its files, one at a time. Never raises for what the sync does."""
    outcome = Outcome(seed)
    with arena.chain(places, built) as (node, rpc):
        async with contextlib.AsyncExitStack() as stack:
            proxy = await stack.enter_async_context(Proxy(node.url, Random(f"{seed} faults")).running())
            database = await stack.enter_async_context(arena.fresh(server, "sim_run"))
            program = arena.program(places, built, database, proxy.url, folder)
            sync = await stack.enter_async_context(program)
            play = Play(rpc, built, Random(f"{seed} chain"))
            at_work = Run(Random(f"{seed} script"), play, proxy, server, database, sync, outcome)
            try:
                await _through(at_work)
                await _compared(at_work, places, built, node.url, folder)
            except WentWrong as wrong:
                outcome.wrong.append(str(wrong))
            outcome.faults, outcome.blocks = proxy.faults, play.head()
    return outcome


async def _through(at_work: Run) -> None:
    """The script, and after it a chain without forks and a node without faults until the index is whole."""
    play, proxy, sync, rng = at_work.play, at_work.proxy, at_work.sync, at_work.rng
    await asyncio.to_thread(play.turns, rng.randrange(5, 30))
    proxy.rate = rng.choice((0.0, 0.1, 0.3))
    await sync.start()
    await proxy.more(rng.randrange(1, 20), arena.START_S)
    for name in rng.choices(list(EVENTS), list(EVENTS.values()), k=EVENTS_A_RUN):
        at_work.note(f"{name} at {play.head()}, faults {proxy.rate}")
        await getattr(at_work, name)()
        if rng.randrange(2):
            await at_work.follow()
    proxy.rate = 0.0
    at_work.note(f"no more faults, at {play.head()}")
    await asyncio.to_thread(play.outgrow)
    if not await sync.reach(*play.tip(), _REACHED_S):
        at = await arena.cursor(at_work.database)
        raise WentWrong(f"the index ends at {at}, the chain at {play.tip()}: {sync.tail()}")
    at_work.note(f"at the head, {play.head()}")
    await sync.end()


async def _compared(at_work: Run, places: DevnetFolders, built: Built, node_url: str, folder: Path) -> None:
    """The index beside that of a fresh sync, and beside itself with its positions made again."""
    outcome = at_work.outcome
    found = await arena.digest_of(at_work.database)
    outcome.rows, outcome.digest = found.rows, found.short
    async with arena.fresh(at_work.server, "sim_fresh") as database:
        whole, again = await asyncio.gather(
            _fresh(places, built, database, node_url, folder, at_work.play), _rebuilt(at_work)
        )
    at_work.note("compared")
    _differ(outcome, found, whole, "the index", "a fresh one")
    _differ(outcome, found, again, "the index", "itself rebuilt")


async def _fresh(
    places: DevnetFolders, built: Built, database: Database, node_url: str, folder: Path, play: Play
) -> Digest:
    async with arena.program(places, built, database, node_url, folder / "fresh") as sync:
        await sync.start()
        if not await sync.reach(*play.tip(), _REACHED_S):
            raise WentWrong(f"a fresh sync does not come to the head: {sync.tail()}")
        await sync.end()
        return await arena.digest_of(database)


async def _rebuilt(at_work: Run) -> Digest:
    code = await arena.ended(await at_work.sync.launched("rebuild"), _COMMAND_S)
    if code != 0:
        raise WentWrong(f"rebuild ended with {code}: {at_work.sync.tail()}")
    return await arena.digest_of(at_work.database)


def _differ(outcome: Outcome, one: Digest, other: Digest, *names: str) -> None:
    if one != other:
        outcome.wrong += difference(one, other, (names[0], names[1]))
