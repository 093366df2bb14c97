"""Bad days: the whole service with users on it, and one fault after another.

    PYTHONPATH=src:tests python -m sim.bad_days [--only NAME ...] [--seed N]

For each fault: what users saw while it lasted and until all was well again, and how long that took. At the
end nothing may be lost: every alert came once, every trade and every counted call is there, the index is that
of a fresh sync. Exit 1: something was wrong, or did not heal.
"""

import argparse
import asyncio
import importlib.util
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import uvloop

from roundtrip.config.networks import contracts_from
from roundtrip.domain.base.errors import STATUS_BY_CODE
from roundtrip.store.server.connections import DATABASE_FAULTS
from roundtrip.store.server.migrate import migrate
from roundtrip.store.server.rows import Connection
from roundtrip_development.devnet import world
from roundtrip_development.devnet.actors import TRADERS, ActorMarket
from roundtrip_development.devnet.trading import actor_address
from sim import arena
from sim.arena import WentWrong
from sim.bad_faults import FAULTS, Fault
from sim.bad_service import BadDaysService, service
from sim.bad_users import LOST, OK, Crowd, UserAnswer, summed
from sim.digest import Digest, Table, difference
from sim.teller import PARTS
from support.alerting import amiss

PROJECT = Path(__file__).resolve().parents[2]
FAIR, TRAPS = ("six_decimals", "v4_weth"), ("owner_only_sell", "blacklist_after_buy")
MAX_S = 90.0
"""For all to be well again."""
REACHED_S = 60.0
OURS = {code for code, status in STATUS_BY_CODE.items() if status in (502, 503)}
KILLS = {"serving process killed"}
"""Of which connections may be lost."""
CALLS_BEFORE = 3
"""That begin a run, and count."""
LOST_BY_A_CRASH = 20
"""Counts of the last second: their commits do not wait for the disk (docs/decisions/0020-counting.md)."""
_AT_THE_HEAD = (
    "SELECT told.number >= $1 AND known.number >= $1"
    " AND told.rewound >= (SELECT coalesce(max(id), 0) FROM facts.rewound)"
    " FROM accounts.alert_cursor AS told, facts.cursor AS known"
)
_ROUNDS = "SELECT max(extract(epoch FROM run_at)) FROM jobs.job WHERE kind IN ('boards', 'bag', 'winners')"


@dataclass
class Seen:
    """What came of one fault."""

    name: str
    said: list[UserAnswer]
    healed_s: float | None
    wrong: list[str] = field(default_factory=list)

    def line(self) -> str:
        """For a person."""
        healed = "NOT HEALED" if self.healed_s is None else f"{self.healed_s:.1f} s"
        slowest = max((one.took_s for one in self.said if one.who != "live board"), default=0.0)
        text = f"slowest {slowest:.1f} s, {len(self.said)} answers: {summed(self.said)}"
        return f"{self.name}: well after {healed}, {text}"


@dataclass
class Day:
    """A run at work."""

    service: BadDaysService
    crowd: Crowd
    seen: list[Seen] = field(default_factory=list)

    async def through(self, name: str, fault: Fault) -> None:
        """Puts it on, takes it off, waits until all is well."""
        began_s = time.monotonic()
        async with fault.put_on(self.service):
            await asyncio.sleep(fault.lasts_s)
        over_s = time.monotonic()
        wanted = await self.service.on_chain(self.service.play.head)

        async def is_well() -> bool:
            return self.crowd.is_well_since(over_s) and await self._is_told(wanted)

        is_healed = await arena.until(is_well, MAX_S)
        healed_s = time.monotonic() - over_s if is_healed else None
        seen = Seen(name, self.crowd.since(began_s), healed_s)
        seen.wrong = [*self._wrong(seen), *([] if is_healed else [await self._ails(over_s)])]
        self.seen.append(seen)
        print(seen.line(), *(f"    WRONG: {one}" for one in seen.wrong), sep="\n", flush=True)

    async def _is_told(self, number: int) -> bool:
        """Whether sync and alerts are up to there, and what is done again and again is to be done soon."""
        try:
            async with arena.connected(self.service.index) as connection:
                if not await connection.fetchval(_AT_THE_HEAD, number):
                    return False
                return float(await connection.fetchval(_ROUNDS)) <= time.time() + 60
        except DATABASE_FAULTS:
            return False

    def _wrong(self, seen: Seen) -> list[str]:
        messages = []
        for one in seen.said:
            if one.level not in ("", "unknown", self.crowd.levels.get(one.token)):
                messages.append(f"{one.token} is {one.level}, and not {self.crowd.levels[one.token]}")
            if one.code not in {OK, "not well", "reconnected", LOST, *OURS}:
                messages.append(f"{one.who} was told {one.code}")
        lost = Counter(one.who for one in seen.said if one.code == LOST)
        return messages + ([] if seen.name in KILLS or not lost else [f"lost: {dict(lost)}"])

    async def _ails(self, over_s: float) -> str:
        late = [f"{one.who} {one.code} {one.level}" for one in self.crowd.since(over_s)][-12:]
        log = (self.service.folder / "log").read_text()[-1500:]
        return f"not well: {late}, live {self.crowd.is_live}; {log}"


async def _begun(at_work: BadDaysService, crowd: Crowd) -> None:
    """An account that follows and is told, and what is said of each token while all is well."""

    async def is_well() -> bool:
        return await crowd.health()

    if not await arena.until(is_well, REACHED_S):
        raise WentWrong("it is not well before anything befell it")
    await crowd.sign_up()
    hooked = await crowd.tool("account", "set_webhook", key=True, url=at_work.hook.at.url)
    at_work.hook.secret = hooked["secret"]
    await crowd.tool("account", "create_rule", key=True, rule="any buying")
    followed = actor_address(TRADERS[0])
    await crowd.tool("account", "follow_wallet", key=True, address=followed, name="trader")
    for story, token in crowd.tokens.items():
        crowd.levels[token] = await crowd.check(token)
        expected = "danger" if story in TRAPS else "ok"
        if crowd.levels[token] != expected:
            raise WentWrong(f"{story} is {crowd.levels[token]} before anything befell it")
    crowd.said.clear()


async def _lost(day: Day) -> list[str]:
    """What should be there at the end and is not."""
    at_work, wrong = day.service, []
    play, database = at_work.play, at_work.index
    await at_work.on_chain(play.outgrow)
    head, head_hash = await at_work.on_chain(play.tip)

    async def is_told() -> bool:
        async with arena.connected(database) as connection:
            waits = await connection.fetchval(
                "SELECT count(*) FROM accounts.delivery WHERE state = 'waiting'"
            )
        return waits == 0 and await arena.cursor(database) == (head, head_hash) and await day._is_told(head)

    if not await arena.until(is_told, REACHED_S):
        wrong.append("not everything was told")
    async with arena.connected(database) as connection:
        wrong += await amiss(connection, contracts_from(at_work.built.contracts), play.given_up, PARTS)
        wrong += await _untold(connection, at_work)
        wrong += await _uncounted(connection, day.crowd)
    found = _by_sync(await arena.digest_of(database))
    async with arena.fresh(at_work.database, "sim_fresh", "template1") as other:
        async with arena.connected(other) as connection:
            await migrate(connection)
        program = arena.program(
            at_work.places, at_work.built, other, at_work.node_url, at_work.folder / "fresh"
        )
        async with program as sync:
            await sync.start()
            if not await sync.reach(head, head_hash, REACHED_S):
                wrong.append("a fresh sync does not come to the head")
            await sync.end()
            whole = _by_sync(await arena.digest_of(other))
    if found != whole:
        wrong += difference(found, whole, ("the index", "a fresh one"))
    print(f"index: {found.rows} rows, digest {found.short}, a fresh one {whole.short}", flush=True)
    return wrong


def _by_sync(found: Digest) -> Digest:
    """Without what a job reads of tokens."""
    launches = (line.partition(" symbol_key=")[0] for line in found.tables["launch"].lines)
    return Digest({**found.tables, "launch": Table(tuple(launches))})


async def _untold(connection: Connection, at_work: BadDaysService) -> list[str]:
    """Of alerts that did not come by the webhook, or by two messages."""
    rows = await connection.fetch("SELECT id, retracted_at FROM accounts.alert WHERE more = 0")
    wanted = {row["id"] for row in rows}
    back = {row["id"] for row in rows if row["retracted_at"] is not None}
    hook = at_work.hook
    came = {number for number, verb in hook.rows if verb != "retracted"}
    taken = {number for number, verb in hook.rows if verb == "retracted"}
    twice = [key for key, messages in hook.rows.items() if len(messages) > 1]
    print(
        f"alerts: {len(wanted)}, {len(back)} taken back; refused for their time: {hook.refused}", flush=True
    )
    named = {"did not come": wanted - came, "not taken back": back - taken, "in two messages": twice}
    return [f"{what}: {sorted(those)[:5]}" for what, those in named.items() if those]


async def _uncounted(connection: Connection, crowd: Crowd) -> list[str]:
    """Of trades and counted calls; those whose answer was not one may have been made, too."""
    wrong = []
    trades = await connection.fetchval("SELECT count(*) FROM accounts.practice_trade")
    calls = await connection.fetchval("SELECT sum(calls - leased) FROM accounts.day")
    leased = await connection.fetchval("SELECT sum(leased) FROM accounts.day")
    for what, there, whose, spare in (
        ("trades", trades, ("practice",), 0),
        # What killed processes had leased they may have spent.
        ("calls", calls - CALLS_BEFORE, ("practice", "keyed check"), LOST_BY_A_CRASH + leased),
    ):
        answered = sum(one.code == OK for one in crowd.said if one.who in whose)
        open_ones = sum(one.code != OK for one in crowd.said if one.who in whose)
        print(f"{what}: {answered} answered, {open_ones} not, {there} there", flush=True)
        if not answered - spare <= there <= answered + open_ones + spare:
            wrong.append(f"{what}: {answered} were answered, and {there} are there")
    return wrong


def _documented() -> Any:
    path = PROJECT / "docs/receivers/receiver.py"
    spec = importlib.util.spec_from_file_location("documented_receiver", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.verified


def _tokens(built: world.Built) -> dict[str, str]:
    """Those that are asked about; nobody trades them, so that they stay what they are."""
    traded = {listed.token for listed in ActorMarket.unpack(built.market).tokens}
    found = {story: built.tokens[story] for story in (*FAIR, *TRAPS)}
    assert traded.isdisjoint(found.values())
    return found


async def main(names: Iterable[str], seed: int, built: world.Built, folder: Path) -> list[str]:
    """A run; what was wrong."""
    places, wrong = world.DevnetFolders(PROJECT, PROJECT / "var"), []
    limit = aiohttp.ClientTimeout(total=45.0)
    async with (
        service(places, built, folder, seed, _documented()) as at_work,
        aiohttp.ClientSession(timeout=limit) as session,
    ):
        crowd = Crowd(session, at_work.base_url, _tokens(built))
        await _begun(at_work, crowd)
        day = Day(at_work, crowd)
        async with crowd.asking():
            playing = asyncio.create_task(at_work.playing())
            try:
                for name in names:
                    await day.through(name, FAULTS[name])
            finally:
                playing.cancel()
                await asyncio.wait({playing})
        wrong += [f"{seen.name}: {one}" for seen in day.seen for one in seen.wrong]
        wrong += await _lost(day)
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    prepared = world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    with (
        tempfile.TemporaryDirectory() as scratch,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        Path(scratch).chmod(0o711)
        found_wrong = runner.run(main(asked.only, asked.seed, prepared, Path(scratch)))
    print(*(f"WRONG: {one}" for one in found_wrong), sep="\n")
    sys.exit(1 if found_wrong else 0)
