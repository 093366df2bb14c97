"""One seeded run of alerts: a chain that forks, a sync and two processes that tell, any of them killed at any
moment, rules that are set meanwhile. At the end what was told is what the facts alone come to."""

import asyncio
import contextlib
import functools
import pickle
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from roundtrip.config.networks import contracts_from
from roundtrip.domain.base.types import Address
from roundtrip.domain.watch.rules import Over, Rule, Who
from roundtrip.store.server.postgres import EmbeddedPostgres
from roundtrip.store.server.rows import Connection
from roundtrip.store.watch import alert_cursor, watches
from roundtrip.sync.run import DATABASE_FAULTS
from roundtrip_development.devnet.actors import TRADERS
from roundtrip_development.devnet.trading import actor_address
from roundtrip_development.devnet.world import Built, DevnetFolders
from sim import arena
from sim.arena import Database, Program, WentWrong
from sim.play import Play
from sim.proxy import Proxy
from sim.run import Outcome, Run
from sim.teller import PARTS
from support.alerting import accounts, amiss

EVENTS_A_RUN = 6
TELLERS, ACCOUNTS, MAX_RULES = 2, 3, 12
RETURNING = (10, 30)
"""Blocks of a branch that is left, and returned to."""
HOLDERS = TRADERS[:ACCOUNTS]
"""Whose the accounts' wallets are: their bags are guarded."""
FOLLOWED = "sim_followed"
"""A database that has the chain as it was built."""
_REACHED_S, _SET_S, _FOLLOWS_S = 40.0, 20.0, 8.0
_AT_THE_HEAD = (
    "SELECT EXISTS (SELECT FROM accounts.alert_cursor AS told JOIN facts.cursor AS known USING (number, at_s)"
    " WHERE told.rewound >= (SELECT coalesce(max(id), 0) FROM facts.rewound))"
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Teller:
    """A process that tells."""

    sync: Program
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Begins, and ends with this one."""
        contracts = pickle.dumps(contracts_from(self.sync.built.contracts)).hex()
        with self.sync.log.open("ab") as out:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "sim.teller", self.sync.database.url, contracts),
                env=self.sync.environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                preexec_fn=arena.end_with_parent,
            )

    async def kill(self) -> None:
        """As by the kernel. Raises WentWrong when it ended by itself."""
        assert self.process is not None
        if self.process.returncode is not None:
            code = self.process.returncode
            raise WentWrong(f"a process that tells ended by itself with {code}: {self.sync.tail()}")
        self.process.kill()
        await self.process.wait()


@dataclass(slots=True)
class AlertRun(Run):
    """A run at work."""

    tellers: list[Teller] = field(default_factory=list)
    accounts: list[int] = field(default_factory=list)
    rules: list[tuple[int, int]] = field(default_factory=list)

    async def teller_killed(self) -> None:
        """One of those that tell is killed in the middle of whatever it does, and started again."""
        self.outcome.kills += 1
        teller = self.rng.choice(self.tellers)
        async with self._at_some_moment():
            await teller.kill()
        await teller.start()

    async def teller_away(self) -> None:
        """Both are away while the chain goes on."""
        for teller in self.tellers:
            await teller.kill()
        await self._played(self.rng.randrange(2, 8))
        for teller in self.tellers:
            await teller.start()

    async def teller_stands_still(self) -> None:
        """One stands still, perhaps with the cursor in its hand; the other has to wait, or goes on."""
        process = self.rng.choice(self.tellers).process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        await self._played(self.rng.randrange(1, 5))
        process.send_signal(signal.SIGCONT)

    async def busy(self) -> None:
        """More than a minute has room for."""
        await self._played(self.rng.randrange(15, 35))

    async def fork_returns(self) -> None:
        """Other blocks take the place of the last ones, and then those are back. Notes of forks are forgotten
        between, as every start of a worker does it."""
        await asyncio.to_thread(self.play.branch_to_return_to, self.rng.randrange(*RETURNING))
        for change in (self.play.leave_branch, self.play.return_to_branch):
            await self.follow()
            await self.watch(_forgot_forks)
            self.outcome.forks += 1
            await asyncio.to_thread(change)
        await self.follow()
        await self.watch(_forgot_forks)

    async def follow(self) -> None:
        """Gives the sync time to come to the head; and mostly those that tell: else nothing is to be taken
        back."""
        await self.sync.reach(*await asyncio.to_thread(self.play.tip), _FOLLOWS_S)
        if self.rng.randrange(4):
            async with arena.connected(self.database) as connection:
                await arena.until(functools.partial(connection.fetchval, _AT_THE_HEAD), _FOLLOWS_S)

    async def set_some(self) -> None:
        """Rules are set and wallets followed, and a rule is ended."""
        for _ in range(self.rng.randrange(1, 5)):
            account, wallet = self.rng.choice(self.accounts), Address(actor_address(self.rng.choice(TRADERS)))
            if self.rng.randrange(3) == 0:
                await self.watch(functools.partial(_followed, account=account, wallet=wallet))
            elif len(self.rules) < MAX_RULES:
                rule, meant = _some_rule(self.rng, wallet)
                made = await self.watch(functools.partial(_set, account=account, rule=rule, wallet=meant))
                self.rules.append((account, made))
        if len(self.rules) > 3 and self.rng.randrange(3) == 0:
            account, number = self.rules.pop(self.rng.randrange(len(self.rules)))
            await self.watch(functools.partial(_ended, account=account, rule_id=number))

    async def watch(self, change: Callable[[Connection], Awaitable[int]]) -> int:
        """A change in a transaction of its own, while nobody tells: else who is just being told of the next
        block may or may not know of it. Tried again where the database is away."""
        found = 0

        async def done() -> bool:
            nonlocal found
            try:
                async with arena.connected(self.database) as connection, connection.transaction():
                    await connection.execute("SELECT FROM accounts.alert_cursor FOR UPDATE")
                    found = await change(connection)
            except DATABASE_FAULTS:
                return False
            return True

        if not await arena.until(done, _SET_S):
            raise WentWrong("nothing can be set")
        return found


async def _set(connection: Connection, account: int, rule: Rule, wallet: Address | None) -> int:
    return await watches.add_rule(connection, account, rule, wallet, -1, NOW)


async def _followed(connection: Connection, account: int, wallet: Address) -> int:
    return await watches.add_follow(connection, account, wallet, "somebody", -1, NOW)


async def _ended(connection: Connection, account: int, rule_id: int) -> int:
    return int(await watches.end_rule(connection, account, rule_id, NOW))


async def _forgot_forks(connection: Connection) -> int:
    await alert_cursor.forget(connection)
    return 0


def _some_rule(rng: Random, wallet: Address) -> tuple[Rule, Address | None]:
    over = rng.choice((None, Over("eth", rng.randrange(1, 300) * 10**15)))
    verb = rng.choice(("buying", "buying", "selling"))
    kind = rng.choice(("any", "any", "follow", "wallet"))
    who = Who("wallet", wallet) if kind == "wallet" else Who(kind)  # type: ignore[arg-type]
    return Rule(who, verb, over), wallet if kind == "wallet" else None  # type: ignore[arg-type]


EVENTS: dict[str, int] = {
    "turns": 2,
    "busy": 3,
    "set_some": 5,
    "kill": 1,
    "teller_killed": 5,
    "teller_away": 2,
    "teller_stands_still": 1,
    "database_stops": 1,
    "database_crashes": 2,
    "connections_cut": 1,
    "fork": 4,
    "shorter_fork": 2,
    "drop": 2,
    "shorten": 2,
}
"""Methods of ``AlertRun``, and how often each is drawn."""


@contextlib.asynccontextmanager
async def followed(
    places: DevnetFolders, built: Built, server: EmbeddedPostgres, folder: Path
) -> AsyncIterator[None]:
    """Makes FOLLOWED: a run begins with what it copies."""
    with arena.chain(places, built) as (node, rpc):
        head = rpc.call("eth_getBlockByNumber", "latest", False)
        async with arena.fresh(server, FOLLOWED) as database:
            async with arena.program(places, built, database, node.url, folder / "followed") as sync:
                await sync.start()
                if not await sync.reach(int(head["number"], 16), head["hash"], _REACHED_S):
                    raise WentWrong(f"the sync does not come to the head: {sync.tail()}")
                await sync.end()
            async with arena.connected(database) as connection:
                await _traders_deployed(connection)
            yield


async def _traders_deployed(connection: Connection) -> None:
    """Whoever deploys there seldom sells: the index takes for the deployer who holds most of those who trade,
    but for those whom the bag guard tells."""
    others = [bytes.fromhex(actor_address(name)[2:]) for name in TRADERS if name not in HOLDERS]
    await connection.execute(
        "UPDATE facts.launch AS launch SET deployer_id = most.wallet_id FROM ("
        "SELECT DISTINCT ON (held.token_id) held.token_id, held.wallet_id FROM facts.position AS held"
        " JOIN facts.address AS wallet ON wallet.id = held.wallet_id WHERE wallet.address = ANY($1::bytea[])"
        " ORDER BY held.token_id, held.held_raw DESC) AS most WHERE most.token_id = launch.token_id",
        others,
    )


async def run(
    seed: int, places: DevnetFolders, built: Built, server: EmbeddedPostgres, folder: Path
) -> Outcome:
    """One run. ``folder``: for its files, one at a time. FOLLOWED is there. Never raises for what those that
    it is about do."""
    outcome = Outcome(seed)
    with arena.chain(places, built) as (node, rpc):
        async with contextlib.AsyncExitStack() as stack:
            proxy = await stack.enter_async_context(Proxy(node.url, Random(f"{seed} faults")).running())
            database = await stack.enter_async_context(arena.fresh(server, "sim_alerts", FOLLOWED))
            program = arena.program(places, built, database, proxy.url, folder)
            sync = await stack.enter_async_context(program)
            play = Play(rpc, built, Random(f"{seed} chain"))
            given = Random(f"{seed} script"), play, proxy, server, database, sync, outcome
            at_work = AlertRun(*given, tellers=[Teller(sync) for _ in range(TELLERS)])
            try:
                await _through(at_work)
                await _compared(at_work, built)
            except WentWrong as wrong:
                outcome.wrong.append(str(wrong))
            finally:
                for teller in at_work.tellers:
                    with contextlib.suppress(WentWrong, AssertionError):
                        await teller.kill()
            outcome.blocks = play.head()
    return outcome


async def _through(at_work: AlertRun) -> None:
    """The script, and after it a chain without forks until all of it was told."""
    play, sync, rng = at_work.play, at_work.sync, at_work.rng
    async with arena.connected(at_work.database) as connection:
        at_work.accounts = await accounts(connection, ACCOUNTS, [actor_address(one) for one in HOLDERS])
        # As when a key is made: what happened before does not concern it.
        await connection.execute(
            "UPDATE accounts.account SET guarded_from = (SELECT number FROM facts.cursor)"
        )
    await sync.start()
    for teller in at_work.tellers:
        await teller.start()
    for verb in ("buying", "selling"):
        rule = Rule(Who("any"), verb)
        await at_work.watch(functools.partial(_set, account=at_work.accounts[0], rule=rule, wallet=None))
    await at_work.set_some()
    for name in rng.choices(list(EVENTS), list(EVENTS.values()), k=EVENTS_A_RUN):
        at_work.note(f"{name} at {play.head()}")
        await getattr(at_work, name)()
    at_work.note(f"fork_returns at {play.head()}")
    await at_work.fork_returns()
    await asyncio.to_thread(play.outgrow)
    at_work.note(f"no more faults, at {play.head()}")
    if not await sync.reach(*play.tip(), _REACHED_S):
        raise WentWrong(f"the index does not come to {play.tip()}: {sync.tail()}")
    await _told(at_work.database, sync)
    at_work.note("all was told")
    await sync.end()


async def _told(database: Database, sync: Program) -> None:
    async with arena.connected(database) as connection:

        async def is_at_the_head() -> bool:
            return bool(await connection.fetchval(_AT_THE_HEAD))

        if not await arena.until(is_at_the_head, _REACHED_S):
            at = await connection.fetchrow("SELECT * FROM accounts.alert_cursor")
            raise WentWrong(f"alerts do not come to the head, they are at {at}: {sync.tail()}")


async def _compared(at_work: AlertRun, built: Built) -> None:
    """What was told beside what should have been."""
    contracts, outcome = contracts_from(built.contracts), at_work.outcome
    async with arena.connected(at_work.database) as connection:
        outcome.wrong += await amiss(connection, contracts, at_work.play.given_up, PARTS)
        [counts] = await connection.fetch(
            "SELECT count(*) AS told, count(retracted_at) AS taken_back,"
            " count(*) FILTER (WHERE kind = 'bag_guard') AS guarded, ("
            "SELECT count(*) FROM accounts.alert AS gone JOIN accounts.alert AS live"
            " USING (account_id, kind, source_id, block_number, log_index, verb, tx_hash)"
            " WHERE gone.retracted_at IS NOT NULL AND live.retracted_at IS NULL) AS again FROM accounts.alert"
        )
    outcome.rows, outcome.digest = (
        counts["told"],
        f"taken back {counts['taken_back']}, told again {counts['again']}, guarded {counts['guarded']}",
    )
