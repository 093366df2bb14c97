"""Shows how soon callers are told of overload: the load of ``soak`` at twice and at ten times what is borne,
and beside attacks.

    PYTHONPATH=src:tests python -m bench.soak_overload [--rate 0] [--seconds 24] [--beside FOLDER]

The service and the load are those of ``bench.soak``, without wallets that trade. The load that is **borne**
is the highest at which for twelve seconds p95 of all answers stays under half a second, nothing is lost, and
at most one answer in fifty is busy. **Unloaded** is a quarter of it. Then, unloaded again, the attacks of
``bench.attackers``: one account with eight and with sixteen checks of tokens that burn gas in flight, and a
crowd of 128 on one cached check; at most one answer in fifty of the others may be busy. ``--beside``: the
folder of another version of the project, which gets the same load first; what is borne is then what it bears.

Prints a table; ends with 1 where the version in this folder misses an aim: p95 of busy answers at most
``BUSY_MS``, p95 of all others at most ``SLOWER`` times the unloaded one, callers with a key answered at least
as often as others, and nothing wrong or lost. Times hold the load's own wait for a processor.
"""

import argparse
import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import uvloop

from roundtrip_development.devnet import world

from .attackers import CROWD, KEY_PER_MINUTE, Attacker, Door, attack
from .attackers import Phase as AttackPhase
from .soak import PROJECT, SLOW, STREAMS, Answers, Loading, loading, service, sustainable, tell_log
from .soak_plan import plan_for

UNLOADED, TIMES = 1 / 4, (2.0, 10.0)
BUSY_MS, SLOWER = 50.0, 3.0
MAX_BUSY = 0.02
WARM_S, REST_S = 12.0, 3.0
Attack = Callable[[float], Awaitable[None]]
CALLERS = ("with a key", "without a key", "a page")


@dataclass(frozen=True, slots=True)
class Phase:
    """One load on one version. ``name``: how many times what is borne."""

    version: str
    name: str
    rate: float
    answers: Answers

    def p95_ms(self, of: str) -> float | None:
        """p95 of ``answered_ms`` or ``busy_ms``, the median of the windows; None: there was none."""
        found = self.answers.middle_ms(of)
        return found[1] if found else None

    def answered(self, caller: str) -> float | None:
        """The share of a sort of callers that was not told busy; None: none of them asked."""
        counts = self.answers.callers
        answered, busy = counts[f"{caller}: answered"], counts[f"{caller}: busy"]
        return answered / (answered + busy) if answered + busy else None


async def measure(
    load: Loading, version: str, rate: float, seconds: float, slow: int, attacks: Mapping[str, Attack]
) -> list[Phase]:
    """The phases of one version, from the unloaded one on."""
    phases = []
    for times in (UNLOADED, *TIMES):
        if times > 1:
            # Until as many connections are kept as will be.
            await load.offer(times * rate, WARM_S, streams=STREAMS, slow=slow)
        answers = await load.offer(times * rate, seconds, streams=STREAMS, slow=slow)
        phases.append(Phase(version, f"{times:g}" if times > 1 else "unloaded", times * rate, answers))
        print(_row(phases[-1], phases[0]), flush=True)
        await asyncio.sleep(REST_S)
    for name, begin in attacks.items():
        attacking = asyncio.ensure_future(begin(seconds))
        answers = await load.offer(UNLOADED * rate, seconds, streams=STREAMS)
        await attacking
        phases.append(Phase(version, name, UNLOADED * rate, answers))
        print(_row(phases[-1], phases[0]), flush=True)
    return phases


@contextlib.asynccontextmanager
async def attacks_on(port: int, folder: Path) -> AsyncIterator[dict[str, Attack]]:
    """The attacks, by name: each runs for so many seconds."""
    tokens: dict[str, str] = json.loads((folder / "devnet.json").read_text())["tokens"]
    burning = [address for name, address in tokens.items() if name.startswith("loops")]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        door = Door(session, f"http://127.0.0.1:{port}")
        account = {"x-api-key": await door.key("203.0.113.99"), "x-forwarded-for": "203.0.113.99"}

        def by(attacker: Attacker) -> Attack:
            async def run(seconds: float) -> None:
                until_s, phase = time.monotonic() + seconds, AttackPhase("")
                await asyncio.gather(
                    *(attack(door, attacker, phase, until_s) for _ in range(attacker.in_flight))
                )

            return run

        yield {
            **{f"{n} burners": by(Attacker(account, n, KEY_PER_MINUTE, burning=burning)) for n in (8, 16)},
            f"a crowd of {CROWD}": by(Attacker({}, CROWD, 10**9, cached=tokens["plain"])),
        }


def _row(phase: Phase, unloaded: Phase) -> str:
    answers = phase.answers
    spent_s = sum(window["spent_s"] for window in answers.windows)
    busy = sum(count for name, count in answers.callers.items() if name.endswith("busy"))
    done = sum(answers.callers.values()) - busy
    slower, usual = phase.p95_ms("answered_ms"), unloaded.p95_ms("answered_ms")
    cells = [
        phase.version,
        phase.name,
        f"{phase.rate:.0f}",
        f"{done / spent_s:.0f}",
        _times(answers, "answered_ms"),
        f"{slower / usual:.1f}" if slower and usual else "-",
        f"{busy / spent_s:.0f}",
        _times(answers, "busy_ms"),
        _times(answers, "sent_late_ms"),
        *("-" if (share := phase.answered(caller)) is None else f"{share:.0%}" for caller in CALLERS),
        f"{answers.outcomes['upstream']}",
        f"{answers.total('lost')}, {answers.total('unsent')}",
    ]
    return f"| {' | '.join(cells)} |"


def _times(answers: Answers, name: str) -> str:
    return ", ".join(f"{value:.0f}" for value in answers.middle_ms(name)) or "-"


HEAD = (
    "| version | times | offered a second | answered a second | p50, p95, p99, ms | of the unloaded p95"
    " | busy a second | p50, p95, p99, ms | sent late by, ms | answered, with a key | without | pages"
    " | `upstream` | lost, not sent |\n" + "|---" * 14 + "|"
)


def misses(phases: list[Phase]) -> list[str]:
    """The aims that these phases miss, in words."""
    found = []
    unloaded, *loaded = phases
    for phase in loaded:
        busy, answered = phase.p95_ms("busy_ms"), phase.p95_ms("answered_ms")
        usual = unloaded.p95_ms("answered_ms")
        if busy is not None and busy > BUSY_MS:
            found.append(f"at {phase.name} times: p95 of busy answers is {busy:.0f} ms")
        if answered and usual and answered > SLOWER * usual:
            found.append(f"at {phase.name} times: p95 is {answered / usual:.1f} times the unloaded one")
        if phase.name not in map("{:g}".format, TIMES):
            found += [
                f"beside {phase.name}: {caller} is answered {share:.0%}"
                for caller in CALLERS
                if (share := phase.answered(caller)) is not None and share < 1 - MAX_BUSY
            ]
            continue
        keyed, others = phase.answered("with a key"), phase.answered("without a key")
        if keyed is not None and others is not None and keyed < others:
            found.append(f"at {phase.name} times: callers with a key are answered less often than others")
        found += [
            f"at {phase.name} times: {what}, {count} times" for what, count in phase.answers.wrong.items()
        ]
        if phase.answers.total("lost"):
            found.append(f"at {phase.name} times: {phase.answers.total('lost')} lost")
    return found


async def run_version(asked: argparse.Namespace, version: str, code: Path, rate: float) -> list[Phase]:
    """The service of one version, from its start to its end. ``rate``: what is borne; 0: it is looked for."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        async with service(folder, asked.processes, code, actors=False) as (demo, port, watch):
            plan = await plan_for(port, watch.database_url, folder)
            async with loading(plan, folder, asked.seed) as load:
                rate = rate or await sustainable(load, MAX_BUSY)
                print(f"{version}: {rate:.0f} requests a second are borne", flush=True)
                async with attacks_on(port, folder) as attacks:
                    phases = await measure(load, version, rate, asked.seconds, asked.slow, attacks)
            demo.check()
            tell_log(demo.log)
    return phases


async def main(asked: argparse.Namespace) -> list[str]:
    """Measures the versions, one after the other; the aims that this folder's version misses."""
    before: list[Phase] = []
    rate = asked.rate
    if asked.beside is not None:
        before = await run_version(asked, "before", asked.beside.resolve(), rate)
        rate = before[0].rate / UNLOADED
    phases = await run_version(asked, "now", PROJECT, rate)
    print(f"\n{HEAD}")
    for own in (before, phases):
        for phase in own:
            print(_row(phase, own[0]))
    return misses(phases)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=0.0, help="what is borne, where it is known")
    parser.add_argument("--seconds", type=float, default=24.0, help="of each load")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--slow", type=int, default=SLOW, help="slow clients beside it")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--beside", type=Path, help="the folder of another version of the project")
    options = parser.parse_args()
    world.build(world.DevnetFolders(PROJECT, PROJECT / "var"), print)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        missed = runner.run(main(options))
    for miss in missed:
        print(f"NOT WELL: {miss}")
    raise SystemExit(1 if missed else 0)
